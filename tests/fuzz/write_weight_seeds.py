# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Writes small files of weights by the packages that make them (Keras, h5py, onnx, safetensors), for tests/fuzz/corpus.

    PYTHONPATH=tests/support build/python/bin/python3 tests/fuzz/write_weight_seeds.py tests/fuzz/corpus

The files of PyTorch are those of tests/reference, which PyTorch wrote, and small ones of the same form (tests/support/torch_files.py)."""
import os
import pathlib
import struct
import sys
import zipfile

os.environ["KERAS_BACKEND"] = "numpy"

import h5py  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

from torch_files import Storage, Tensor, pickled, write_archive  # noqa: E402

CORPUS = pathlib.Path(sys.argv[1])
REFERENCE = pathlib.Path(__file__).parents[1] / "reference"


def folder(name):
    path = CORPUS / name
    path.mkdir(exist_ok=True)
    return path


def keras_files(to):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), keras.layers.BatchNormalization()])
    model.save_weights(to / "keras.weights.h5")
    (to / "keras.weights.h5").rename(to / "keras")
    values = np.arange(12, dtype="f4").reshape(3, 4)
    with h5py.File(to / "old", "w", libver="earliest") as file:
        file["layers/dense/vars/0"] = values
        file["layers/dense/vars/1"] = np.float32(1)
    with h5py.File(to / "new", "w", libver=("earliest", "v110")) as file:
        group = file.create_group("layers/dense/vars")
        group.create_dataset("0", data=values, chunks=(2, 4), compression="gzip", shuffle=True, fletcher32=True)
        group.create_dataset("1", data=values.astype("f2"), chunks=(1, 4), maxshape=(None, 4))
        group["2"] = h5py.SoftLink("/layers/dense/vars/0")
        group["3"] = group["1"]
    with h5py.File(to / "away", "w", libver="latest") as file:
        file["away"] = h5py.ExternalLink("other.h5", "/x")
        file.create_dataset("layers/dense/vars/0", (3, 4), "f4", external=[("values.raw", 0, 48)])
    with h5py.File(to / "virtual", "w", libver=("earliest", "v110")) as file:
        file["part"] = values
        layout = h5py.VirtualLayout((3, 4), "f4")
        layout[:] = h5py.VirtualSource(".", "part", (3, 4))
        file.create_virtual_dataset("layers/dense/vars/0", layout)


def onnx_files(to):
    (to / "pytorch").write_bytes((REFERENCE / "resnet.onnx").read_bytes())
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    kernel, bias = np.arange(12, dtype="f4").reshape(4, 3), np.ones(4, "f4")
    listed = helper.make_tensor("c.bias", TensorProto.FLOAT, [4], [1.0, 2.0, 3.0, 4.0])  # float_data, and no raw data
    half = numpy_helper.from_array(np.ones((3, 2, 1), "f2"), "d.weight")
    graph = helper.make_graph([helper.make_node("Gemm", ["x", "a.weight", "a.bias"], ["h"], transB=1), helper.make_node("Add", ["h", "c.bias"], ["g"]),
                               helper.make_node("Conv", ["g", "d.weight"], ["y"])], "net", [value("x", ["n", 3])], [value("y", ["n", 4])],
                              [numpy_helper.from_array(kernel, "a.weight"), numpy_helper.from_array(bias, "a.bias"), listed, half])
    onnx.save(helper.make_model(graph), to / "onnx")


def safetensors_files(to):
    save_file({"a.weight": np.arange(6, dtype="f4").reshape(2, 3), "a.bias": np.ones(2, "f8"), "n": np.zeros((0, 3), "i8")}, to / "safetensors",
              metadata={"format": "pt"})
    text = b'{"layer/kernel":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},"__metadata__":{"layout":"lockstep"}}'
    (to / "scalar").write_bytes(struct.pack("<Q", len(text)) + text + bytes(2))


def pytorch_files(state, pickles):
    (state / "pytorch").write_bytes((REFERENCE / "resnet.pt").read_bytes())
    with zipfile.ZipFile(REFERENCE / "resnet.pt") as archive:
        (pickles / "pytorch").write_bytes(archive.read("resnet/data.pkl"))
    numbers = Storage("0", "FloatStorage", 64)
    value = {"module.a.weight": Tensor(numbers, 0, (4, 8), (8, 1)), "module.a.bias": Tensor(numbers, 32, (4,), (2,)),
             "module.n.num_batches_tracked": Tensor(Storage("1", "LongStorage", 1), 0, (), ())}
    small = pickled({"epoch": 3, "loss": 0.5, "state_dict": value, "more": [1, (2, None, True), {"x": -7}]})
    (pickles / "small").write_bytes(small)
    write_archive(state / "small", small, {"0": bytes(256), "1": bytes(8)})
    with zipfile.ZipFile(state / "deflated", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in (("a/data.pkl", small), ("a/data/0", bytes(256)), ("a/data/1", bytes(8))):
            archive.writestr(name, contents)
        archive.writestr("a/byteorder", b"little", zipfile.ZIP_STORED)


keras_files(folder("keras"))
onnx_files(folder("onnx"))
safetensors_files(folder("safetensors"))
pytorch_files(folder("state_dict"), folder("pickle"))
