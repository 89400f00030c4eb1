# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Scans of porous rocks, 12 x 12 x 12 voxels, with the radius of their pores in micrometres.

rocks.py make FILE COUNT SEED      writes scan (uint8) and radius (float32)
rocks.py compare FILE EVALUATED    prints the errors of scikit-learn on the samples of EVALUATED (lockstep predict --set-name eval), trained on the others
rocks.py error FILE PREDICTED      prints the error of predictions of the whole file
rocks.py onnx FILE CHECKPOINT NET PREDICTED    prints the largest difference of onnxruntime's outputs from the predictions; the checkpoint has the mean and
                                   the deviation of the training set
"""
import json
import sys

import h5py
import numpy as np

SIZE, VOXEL = 12, 20.0  # micrometres


def smooth(values, radius):
    squares = sum(np.square(k) for k in np.meshgrid(*[np.fft.fftfreq(SIZE) * 2 * np.pi] * 3, indexing="ij"))
    return np.fft.ifftn(np.fft.fftn(values) * np.exp(-squares * radius**2 / 2)).real


def make(path, count, seed):
    """Pores are where smoothed noise is low. Porosity, brightness and contrast say nothing about their radius."""
    random = np.random.default_rng(int(seed))
    radius = random.uniform(0.5, 2, int(count))
    scans = []
    for one in radius:
        field = smooth(random.standard_normal((SIZE,) * 3), one)
        pores = field < np.quantile(field, random.uniform(0.15, 0.35))
        grey = random.uniform(140, 180) - random.uniform(60, 110) * pores + random.normal(0, 15, pores.shape)
        scans.append(np.clip(np.rint(grey), 0, 255).astype(np.uint8))
    with h5py.File(path, "w") as file:
        file["scan"] = np.stack(scans)
        file["radius"] = (VOXEL * radius).astype(np.float32)
        file["radius"].attrs["units"] = "um"


def compare(path, evaluated):
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR
    with h5py.File(path) as file, h5py.File(evaluated) as predictions:
        scans, radius = file["scan"][...].astype(np.float64), file["radius"][...]
        held_out = np.isin(np.arange(len(radius)), predictions["sample"][...])
        assert np.array_equal(radius[predictions["sample"][...]], predictions["labels"][...].ravel())
    # What an expert computes: the correlation with the neighbour at 1 to 4 voxels along each axis.
    z = (scans - scans.mean((1, 2, 3), keepdims=True)) / scans.std((1, 2, 3), keepdims=True)
    variogram = np.stack([sum((z * np.roll(z, lag, axis)).mean((1, 2, 3)) for axis in (1, 2, 3)) for lag in (1, 2, 3, 4)], 1)
    found = {}
    for name, features, model in (("variogram", variogram, make_pipeline(StandardScaler(), SVR(C=100))),
                                  ("voxels", scans.reshape(len(scans), -1), make_pipeline(StandardScaler(), PCA(20, random_state=0), SVR(C=100)))):
        model.fit(features[~held_out], radius[~held_out])
        found[name] = float(np.sqrt(np.mean((model.predict(features[held_out]) - radius[held_out]) ** 2)))
    print(json.dumps(found))


def error(path, predicted):
    with h5py.File(path) as file, h5py.File(predicted) as predictions:
        print(json.dumps(float(np.sqrt(np.mean((predictions["outputs"][...].ravel() - file["radius"][...]) ** 2)))))


def onnx(path, checkpoint, net, predicted):
    import onnxruntime
    with h5py.File(checkpoint) as file:
        mean, deviation = map(float, bytes(file["data"].attrs["normalization.txt"]).split())
    with h5py.File(path) as file, h5py.File(predicted) as predictions:
        scans, wanted = file["scan"][...].astype(np.float32), predictions["outputs"][...]
    found, = onnxruntime.InferenceSession(net).run(None, {"features": (scans - np.float32(mean)) / np.float32(deviation)})
    print(json.dumps(float(np.abs(found - wanted).max())))


{"make": make, "compare": compare, "error": error, "onnx": onnx}[sys.argv[1]](*sys.argv[2:])
