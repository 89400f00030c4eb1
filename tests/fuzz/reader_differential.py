# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Random data files, written by h5py, xarray, pandas, NumPy and Pillow, and read by them and by the program: the same values, or an
error where a value is missing. Types, layouts, attributes, missing values, header styles and separators are drawn.

CTest runs it with a fixed seed. By hand, with the environment that `ctest -V -R reader_differential` prints:

    reader_differential.py --count 5000 --seed 7               # longer
    reader_differential.py --only netcdf --first 123 --count 1 # one file again: the seed and its number make it
"""
import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from lockstep_run import go_on_with

PACKAGES = ("h5py", "netCDF4", "numpy", "pandas", "PIL", "xarray", "yaml")
if not go_on_with(*PACKAGES):
    print(f"skipped: no Python has {', '.join(PACKAGES)} (scripts/test.sh installs them into build/python)")
    sys.exit(77)

import h5py  # noqa: E402
import netCDF4  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import xarray as xr  # noqa: E402
import yaml  # noqa: E402
from PIL import Image  # noqa: E402

PROGRAM = os.environ["LOCKSTEP_PROGRAM"]
FILL = 7.5
ENDS = "<>"


class Case:
    """What the program is told, and what it must find. `error`: part of the message, where it must find none."""

    def __init__(self, data, features, labels=None, error=None, tolerance=0.0):
        self.data, self.features, self.labels, self.error, self.tolerance = data, features, labels, error, tolerance


def numbers(rng, dtype, shape):
    """Numbers over the whole range of a type; of large integers what a float32 has room for."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        low, high = max(info.min, -2**40), min(info.max, 2**40)
        return rng.integers(low, high, shape, endpoint=True).astype(kind)
    return (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)).astype(kind)


def class_labels(rng, count, types):
    """Labels in a form that programs write, and the classes that they are."""
    classes = rng.integers(0, 3, count)
    classes[:3] = [0, 1, 2]
    form = types[rng.integers(len(types))]
    if form == "text":
        return np.array(["ash", "oak", "yew"])[classes], classes
    if form == "bool":
        return (classes > 0), (classes > 0).astype(int)
    return classes.astype(form), classes


def write_table(folder, choose, rng):
    rows, width = int(rng.integers(4, 30)), int(rng.integers(1, 6))
    frame = pd.DataFrame({f"x{i}": numbers(rng, choose(["f8", "f4", "i4", "i8"]), rows) for i in range(width)})
    with_header = choose([True, False])
    texts, classes = class_labels(rng, rows, ["i8", "text"])
    frame["y"] = texts
    separator = choose([",", ";", "\t", "|"])
    decimal = choose([".", ","]) if separator != "," else "."
    holes = choose([0, 0, 0.1])
    expected = frame[frame.columns[:-1]].copy()
    for column in expected.columns:
        hidden = rng.random(rows) < holes
        if hidden.any():
            expected[column] = expected[column].astype("f8").where(~hidden)
            frame[column] = expected[column]
    name = choose(["table.csv", "table.csv.gz", "table.txt"]) if separator != "\t" else choose(["table.tsv", "table.csv"])
    frame.to_csv(folder / name, sep=separator, decimal=decimal, index=False, header=with_header, na_rep=choose(["", "NA", "nan", "NULL", "<NA>", "N/A"]),
                 lineterminator=choose(["\n", "\r\n"]), encoding=choose(["utf-8", "utf-8-sig"]), quoting=choose([0, 0, 1, 2]))
    read = pd.read_csv(folder / name, sep=separator, decimal=decimal, header=0 if with_header else None, encoding="utf-8-sig")
    features = read[read.columns[:-1]].astype("f8")
    data = {"format": "csv", "path": str(folder / name), "header": with_header, "labels": "y" if with_header else width}
    if texts.dtype.kind == "U":
        data["classes"] = "auto"
    if choose([True, False]):
        data["delimiter"] = separator
        data["decimal"] = decimal
    error = None
    if features.isna().any().any():
        if choose([True, False]):
            data["missing"] = FILL
        else:
            error = "missing"
    return Case(data, features.fillna(FILL).to_numpy().astype("f4"), classes, error, 1.2e-7)


FEATURE_TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "b1"]
LABEL_TYPES = ["i1", "i4", "i8", "u1", "u2", "u4", "u8", "bool", "text"]


def typed(choose, dtype):
    return np.dtype(choose(ENDS) + dtype) if dtype != "b1" else np.dtype(bool)


def write_hdf5(folder, choose, rng):
    shape = (int(rng.integers(4, 40)), *(int(rng.integers(1, 6)) for _ in range(rng.integers(0, 4))))
    values = numbers(rng, typed(choose, choose(FEATURE_TYPES)), shape)
    labels, classes = class_labels(rng, shape[0], LABEL_TYPES)
    layout = choose([{}, {"chunks": True}, {"chunks": True, "compression": "gzip"}, {"chunks": True, "shuffle": True, "fletcher32": True},
                     {"chunks": True, "compression": "gzip", "shuffle": True}, {"chunks": True, "maxshape": (None, *shape[1:])}])
    path = folder / choose(["data.h5", "data.hdf5", "data"])
    with h5py.File(path, "w", libver=choose(["earliest", "v108"]), userblock_size=choose([0, 512])) as file:
        group = file.create_group("a/b") if choose([True, False]) else file
        group.create_dataset("x", data=values, **layout)
        if labels.dtype.kind == "U":
            labels = labels.astype("S3") if choose([True, False]) else labels.astype(object)
            group.create_dataset("y", data=labels, dtype=None if labels.dtype.kind == "S" else h5py.string_dtype())
        else:
            group.create_dataset("y", data=labels)
        prefix = group.name.rstrip("/")
    with h5py.File(path) as file:
        read = file[f"{prefix}/x"][...]
    data = {"format": "hdf5", "path": str(path), "features": f"{prefix}/x", "labels": f"{prefix}/y"}
    return Case(data, read, classes)


def write_netcdf(folder, choose, rng):
    rows = int(rng.integers(4, 30))
    shape = (rows, int(rng.integers(1, 6)), int(rng.integers(1, 4)))
    stored = choose(["i1", "i2", "i4", "f4", "f8"])
    packed = stored[0] == "i"
    attributes = {}
    values = rng.integers(-100, 100, shape).astype(stored) if packed else numbers(rng, stored, shape)
    if packed and choose([True, False, True]):
        # With a scale of float32, xarray compares missing values of 32 bits as float32.
        attributes["scale_factor"] = choose([np.float32, np.float64] if stored != "i4" else [np.float64])(choose([0.5, 0.01, 2.0]))
        if choose([True, False]):
            attributes["add_offset"] = choose([np.float32, np.float64])(choose([273.15, -4.0]))
    if packed and choose([True, False, False]):
        attributes["_Unsigned"] = "true"
    missing = choose([None, "_FillValue", "missing_value"])
    mark = None
    if missing and packed:
        mark = -99
        attributes[missing] = np.dtype(stored).type(mark)
        values[values == mark] = 0
    elif missing:
        mark = choose([np.nan, 1e20, -999.0])
        attributes[missing] = np.dtype(stored).type(mark)
    if missing and choose([True, False]):
        values[rng.random(shape) < 0.1] = attributes[missing]
    if "_Unsigned" in attributes and mark is not None:
        # What is stored counts as unsigned, the mark, too.
        attributes[missing] = np.dtype(stored).type(mark)
    path = folder / "data.nc"
    fill = attributes.pop("_FillValue", None)
    raw = xr.Dataset({"t": (("time", "lat", "lon"), values, attributes), "y": (("time",), (np.arange(rows) % 3).astype("i2"))})
    raw.to_netcdf(path, engine="netcdf4", encoding={"t": {"_FillValue": fill, "zlib": choose([True, False])}, "y": {"_FillValue": None}})
    if "_Unsigned" in attributes and missing == "missing_value":  # which xarray does not take for unsigned, too
        with netCDF4.Dataset(path) as opened:
            read = np.ma.filled(opened["t"][...].astype("f8"), np.nan)
    else:
        with xr.open_dataset(path, engine="netcdf4") as opened:
            read = opened["t"].values.astype("f8")
    error = None
    data = {"format": "hdf5", "path": str(path), "features": "t", "labels": "y"}
    if np.isnan(read).any():
        if choose([True, False]):
            fill = FILL if stored[0] == "f" or "scale_factor" in attributes else 7
            data["fill"] = fill
            read = np.where(np.isnan(read), fill, read)
        else:
            error = "missing"
    return Case(data, read, np.arange(rows) % 3, error, 3e-6)


def write_numpy(folder, choose, rng):
    shape = (int(rng.integers(4, 40)), *(int(rng.integers(1, 6)) for _ in range(rng.integers(0, 4))))
    values = numbers(rng, typed(choose, choose(FEATURE_TYPES)), shape)
    values = np.asfortranarray(values) if choose([True, False]) else values
    labels, classes = class_labels(rng, shape[0], LABEL_TYPES)
    if labels.dtype.kind == "U" and choose([True, False]):
        labels = labels.astype("S3")
    if choose([True, False]):
        np.save(folder / "x.npy", values)
        np.save(folder / "y.npy", labels)
        data = {"format": "npy", "features": str(folder / "x.npy"), "labels": str(folder / "y.npy")}
    else:
        (np.savez if choose([True, False]) else np.savez_compressed)(folder / "data.npz", x=values, y=labels)
        data = {"format": "npy", "path": str(folder / "data.npz"), "features": "x", "labels": "y"}
    return Case(data, values, classes)


def write_images(folder, choose, rng):
    height, width = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    mode = choose(["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
    channels = 3 if mode in ("P", "RGB", "RGBA") else 1
    bits = choose([8, 16]) if mode == "I;16" else 8
    index = mode == "P" and choose([True, False])
    features, labels = [], []
    for number in range(6):
        kind = ("cat", "dog", "emu")[number % 3]
        (folder / "set" / kind).mkdir(parents=True, exist_ok=True)
        if mode == "I;16":
            pixels = rng.integers(0, 65536, (height, width)).astype("u2")
            image, expected = Image.fromarray(pixels), pixels
            if bits == 8:
                expected = np.floor(pixels.astype("f8") * 255 / 65535 + 0.5).astype("u1")
        elif mode == "P":
            pixels = rng.integers(0, 200, (height, width)).astype("u1")
            image = Image.frombytes("P", (width, height), pixels.tobytes())
            image.putpalette(rng.integers(0, 256, 768).astype("u1").tolist())
            expected = pixels if index else np.asarray(image.convert("RGB"))
        elif mode == "1":
            image = Image.fromarray(rng.integers(0, 2, (height, width)).astype("u1") * 255).convert("1")
            expected = np.asarray(image.convert("L"))
        else:
            pixels = rng.integers(0, 256, (height, width, len(mode))).astype("u1")
            image = Image.fromarray(pixels if len(mode) > 1 else pixels[..., 0])
            expected = pixels[..., :channels]
        image.save(folder / "set" / kind / f"{number}.png")
        features.append(expected.reshape(height, width, -1))
        labels.append(number % 3)
    order = sorted(range(6), key=lambda number: (labels[number], number))
    data = {"format": "images", "path": str(folder / "set"), "channels": 1 if index else channels}
    if mode == "I;16":
        data["bits"] = bits
    if index:
        data["palette"] = "index"
    return Case(data, np.stack([features[number] for number in order]), np.array([labels[number] for number in order]))


def write_jsonl(folder, choose, rng):
    rows = int(rng.integers(4, 30))
    labels, classes = class_labels(rng, rows, ["i8", "text"])
    values = numbers(rng, choose(["f8", "i4"]), (rows, 3))
    hidden = rng.random((rows, 3)) < choose([0, 0, 0.2])
    lines = []
    for row in range(rows):
        record = {f"x{i}": values[row, i].item() for i in range(3) if not hidden[row, i]}
        for i in np.flatnonzero(hidden[row]):
            if choose([True, False]):
                record[f"x{i}"] = None
        record["y"] = labels[row].item()
        record["other"] = choose(["text", 1, [1, 2], {"a": None}])
        keys = list(record)
        random.Random(int(rng.integers(1 << 30))).shuffle(keys)
        lines.append(json.dumps({key: record[key] for key in keys}))
    (folder / "data.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = {"format": "jsonl", "path": str(folder / "data.jsonl"), "features": ["x0", "x1", "x2"], "labels": "y"}
    read = pd.read_json(folder / "data.jsonl", lines=True)[["x0", "x1", "x2"]].to_numpy().astype("f8") if not hidden.all(axis=0).any() else \
        np.where(hidden, np.nan, values.astype("f8"))
    error = None
    if hidden.any():
        if choose([True, False]):
            data["missing"] = FILL
        else:
            error = "x[012]"
    return Case(data, np.where(np.isnan(read), FILL, read).astype("f4"), classes, error, 1.2e-7)


KINDS = {"table": write_table, "hdf5": write_hdf5, "netcdf": write_netcdf, "numpy": write_numpy, "images": write_images, "jsonl": write_jsonl}


def difference(case, folder):
    """What is wrong with a case; None: nothing."""
    config = folder / "data.yaml"
    config.write_text(yaml.safe_dump({"data": case.data}), encoding="utf-8")
    result = subprocess.run([PROGRAM, "convert", str(config), str(folder / "out.npz")], capture_output=True, text=True, timeout=60)
    if case.error is not None:
        if result.returncode == 0:
            return "values are missing, and nobody says so"
        return None if re.search(case.error, result.stderr) else f"the message is no word about '{case.error}': {result.stderr}"
    if result.returncode != 0:
        return f"ended with {result.returncode}: {result.stderr}"
    with np.load(folder / "out.npz") as out:
        features, labels = out["features"], out["labels"]
    expected = np.asarray(case.features)
    if features.size != expected.size or len(features) != len(expected):
        return f"shape {features.shape} in the place of {expected.shape}"
    found = features.astype("f8").reshape(expected.shape)
    expected = expected.astype("f8")
    scale = np.abs(expected).max() if case.tolerance > 1e-6 else np.abs(expected)
    wrong = ~(np.abs(found - expected) <= case.tolerance * scale)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        return f"{wrong.sum()} values differ, the first at {place}: {found[place]} in the place of {expected[place]}"
    if case.labels is not None and not np.array_equal(labels.reshape(-1), case.labels):
        return f"labels {labels.reshape(-1)[:10]} in the place of {case.labels[:10]}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=int(os.environ.get("LOCKSTEP_FUZZ_CASES", "40")), help="files of each kind")
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the files that are read differently")
    arguments = parser.parse_args()
    failed = 0
    for kind in [arguments.only] if arguments.only else KINDS:
        for number in range(arguments.first, arguments.first + arguments.count):
            seed = [arguments.seed, number, sum(kind.encode())]
            choice = random.Random(f"{seed}")
            with tempfile.TemporaryDirectory(prefix="lockstep-differential-") as name:
                folder = pathlib.Path(name)
                case = KINDS[kind](folder, choice.choice, np.random.default_rng(seed))
                wrong = difference(case, folder)
                if wrong is None:
                    continue
                failed += 1
                print(f"{kind} {number} (--seed {arguments.seed} --only {kind} --first {number} --count 1): {wrong}\n  {case.data}\n")
                if arguments.keep:
                    (arguments.keep / f"{kind}-{number}").mkdir(parents=True, exist_ok=True)
                    subprocess.run(["cp", "-r", f"{folder}/.", arguments.keep / f"{kind}-{number}"], check=True)
    print(f"{failed} files are read differently")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
