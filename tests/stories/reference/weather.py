# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Days of temperature on a grid around the earth, as netCDF-4 stores them: t2m (time, lat, lon), the difference from the mean of the day, in kelvin.

weather.py make FILE DAYS SEED     writes the grid (h5py writes what the netCDF library would)
weather.py compare FILE FIRST      prints errors of forecasts for the days from FIRST on: persistence, scikit-learn's linear regression on the neighbouring
                                   cells of two days, trained on the days before, and the true law, which only chance parts from the next day
weather.py error FILE PREDICTED    prints the error of predictions of the days from the third one to the one after the last, which nobody knows
"""
import json
import sys

import h5py
import numpy as np

LAT, LON, STEP = 8, 16, 0.002
FAST, SLOW = 0.15, 0.4  # kelvin of chance in each cell, and in neighbouring cells together


def smooth(field):
    field = field + 0.5 * (np.roll(field, 1, 1) + np.roll(field, -1, 1))
    padded = np.pad(field, ((1, 1), (0, 0)), mode="edge")
    return field + 0.5 * (padded[:-2] + padded[2:])


def law(field):
    """Air moves to the east, by one cell where it is cold, by two where it is warm, and goes back to the mean."""
    one, two = np.roll(field, 1, -1), np.roll(field, 2, -1)
    share = 0.5 + 0.5 * np.tanh(2 * one)
    return 0.85 * ((1 - share) * one + share * two)


def make(path, days, seed):
    random = np.random.default_rng(int(seed))
    size = np.std([smooth(random.standard_normal((LAT, LON))) for _ in range(200)])
    field, fields = np.zeros((LAT, LON)), []
    for _ in range(int(days) + 50):
        field = law(field) + FAST * random.standard_normal((LAT, LON)) + SLOW / size * smooth(random.standard_normal((LAT, LON)))
        fields.append(field)
    with h5py.File(path, "w") as file:
        file.attrs["_NCProperties"] = np.bytes_("version=2,netcdf=4.9.0,hdf5=1.10.8")
        axes = {"time": np.arange(int(days)) + 0.5, "lat": np.linspace(-70, 70, LAT), "lon": np.arange(LON) * 360 / LON}
        for name, values in axes.items():
            file.create_dataset(name, data=values).make_scale(name)
        t2m = file.create_dataset("t2m", data=np.rint(np.array(fields[50:]) / STEP).astype("i2"), chunks=(32, LAT, LON), compression="gzip",
                                  shuffle=True, fillvalue=np.int16(-32767))
        for axis, name in enumerate(axes):
            t2m.dims[axis].attach_scale(file[name])
        for name, value in (("scale_factor", np.float64([STEP])), ("add_offset", np.float64([0])), ("_FillValue", np.int16([-32767])),
                            ("units", np.bytes_("K"))):
            t2m.attrs.create(name, value)


def read(path):
    with h5py.File(path) as file:
        return file["t2m"][...] * STEP


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def neighbours(fields):
    padded = np.pad(fields, ((0, 0), (1, 1), (0, 0)))
    return [np.roll(padded[:, 1 + i:1 + i + LAT], -j, 2) for i in (-1, 0, 1) for j in (-2, -1, 0, 1, 2)]


def compare(path, first):
    from sklearn.linear_model import LinearRegression
    fields, first = read(path), int(first)
    cells = np.stack(neighbours(fields[:-2]) + neighbours(fields[1:-1]), -1)  # of yesterday and today
    today, tomorrow, count = fields[1:-1], fields[2:], first - 2
    linear = LinearRegression().fit(cells[:count].reshape(-1, cells.shape[-1]), tomorrow[:count].ravel())
    forecast = linear.predict(cells[count:].reshape(-1, cells.shape[-1])).reshape(tomorrow[count:].shape)
    print(json.dumps({"persistence": rms(today[count:] - tomorrow[count:]), "linear regression": rms(forecast - tomorrow[count:]),
                      "the true law": rms(law(today[count:]) - tomorrow[count:])}))


def error(path, predicted):
    with h5py.File(predicted) as file:
        outputs = file["field/outputs"][...]
    print(json.dumps(rms(outputs.reshape(-1, LAT, LON)[:-1] - read(path)[2:])))


{"make": make, "compare": compare, "error": error}[sys.argv[1]](*sys.argv[2:])
