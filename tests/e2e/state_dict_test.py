# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep import of PyTorch's state dicts: the values, a ResNet's outputs beside PyTorch's own, and hostile pickles that are refused."""
import collections
import io
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import types
import unittest
import zipfile

from lockstep_run import LockstepTest, main

READ_HDF5 = """
import h5py, sys
found = {}
with h5py.File(sys.argv[1], "r") as file:
    file["variables"].visititems(lambda name, item: found.update({name: (item.shape, item[()].ravel().tolist())})
                                 if isinstance(item, h5py.Dataset) else None)
print(found)
"""

# A small ResNet in PyTorch with random weights and statistics; writes its state dict, and outputs for the samples.
RESNET = """
import sys
import numpy as np
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if stride > 1 else None
    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))

class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.layer1, self.layer2, self.fc = nn.Sequential(Block(8, 8, 1)), nn.Sequential(Block(8, 16, 2)), nn.Linear(16, 5)
    def forward(self, x):
        x = self.layer2(self.layer1(torch.relu(self.bn1(self.conv1(x)))))
        return self.fc(x.mean(dim=(2, 3)))

torch.manual_seed(3)
net = ResNet().eval()
for module in net.modules():
    if isinstance(module, nn.BatchNorm2d):
        for values, low in ((module.weight, 0.5), (module.bias, -0.5), (module.running_mean, -0.5), (module.running_var, 0.5)):
            values.data.uniform_(low, low + 1)
torch.save(net.state_dict(), sys.argv[1])
x = torch.from_numpy(np.load(sys.argv[2]).transpose(0, 3, 1, 2).copy())
np.save(sys.argv[3], net(x).detach().numpy())
"""
COMPARE = """
import sys
import numpy as np
wanted, got = np.load(sys.argv[1]), np.load(sys.argv[2])
assert wanted.shape == got.shape and np.ptp(wanted) > 0.1, (wanted.shape, got.shape)
print(float(np.max(np.abs(wanted - got)) / np.max(np.abs(wanted))))
"""
NORM = "batch_norm: {name: %s, epsilon: 1e-5}"
CONV = "conv2d: {name: %s, filters: %d, kernel: %d, stride: %d, padding: %s, bias: false%s}"
LAYERS = [CONV % ("conv1", 8, 3, 1, "[1, 1, 1, 1]", ""), NORM % "bn1", "relu: {name: r1}",
          CONV % ("b1_conv1", 8, 3, 1, "[1, 1, 1, 1]", ""), NORM % "b1_bn1", "relu", CONV % ("b1_conv2", 8, 3, 1, "[1, 1, 1, 1]", ""),
          NORM % "b1_bn2", "add: {inputs: [b1_bn2, r1]}", "relu: {name: r2}",
          CONV % ("b2_conv1", 16, 3, 2, "[1, 1, 1, 1]", ""), NORM % "b2_bn1", "relu", CONV % ("b2_conv2", 16, 3, 1, "[1, 1, 1, 1]", ""),
          NORM % "b2_bn2", CONV % ("down_0", 16, 1, 2, "[0, 0, 0, 0]", ", inputs: [r2]"), NORM % "down_1",
          "add: {inputs: [b2_bn2, down_1]}", "relu", "global_avg_pool", "dense: {name: fc, units: 5}"]
MAP = """
're:layer([12])/0/((conv|bn)[12]/.*)': 'b$1_$2'
're:layer2/0/downsample/(.*)': 'down_$1'
"""


class Storage:
    def __init__(self, key, kind, numbers):
        self.key, self.kind, self.numbers = key, kind, numbers


class Tensor:
    def __init__(self, storage, offset, size, stride):
        self.made = (storage, offset, size, stride, False, collections.OrderedDict())

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.made


def rebuild(*_):
    raise AssertionError("a pickle was executed")


class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        if isinstance(obj, Storage):
            return "storage", getattr(sys.modules["torch"], obj.kind), obj.key, "cpu", obj.numbers
        return None


def pickled(value):
    """A pickle as torch.save writes it, without PyTorch."""
    names = {name: type(name, (), {"__module__": "torch"}) for name in ("FloatStorage", "LongStorage", "BoolStorage")}
    rebuild.__module__, rebuild.__qualname__, rebuild.__name__ = "torch._utils", "_rebuild_tensor_v2", "_rebuild_tensor_v2"
    modules = {"torch": types.ModuleType("torch"), "torch._utils": types.ModuleType("torch._utils")}
    for name, kind in names.items():
        setattr(modules["torch"], name, kind)
    modules["torch._utils"]._rebuild_tensor_v2 = rebuild
    sys.modules.update(modules)
    try:
        file = io.BytesIO()
        Pickler(file, protocol=2).dump(value)
        return file.getvalue()
    finally:
        for name in modules:
            del sys.modules[name]


class StateDictTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "model.pt"
        self.output = self.folder / "weights.h5"

    def write(self, data, storages):
        with zipfile.ZipFile(self.file, "w") as archive:
            archive.writestr("archive/data.pkl", data)
            for key, values in storages.items():
                archive.writestr(f"archive/data/{key}", values)

    def test_values_strides_and_shared_storages_of_a_file_without_pytorch(self):
        floats = Storage("0", "FloatStorage", 8)
        state = collections.OrderedDict([
            ("fc.weight", Tensor(floats, 1, (2, 3), (1, 2))), ("fc.bias", Tensor(floats, 0, (2,), (7,))),
            ("bn.running_mean", Tensor(floats, 3, (1,), (1,))), ("bn.num_batches_tracked", Tensor(Storage("1", "LongStorage", 1), 0, (), ()))])
        state._metadata = collections.OrderedDict(version=1)
        storages = {"0": struct.pack("<8f", *range(8)), "1": struct.pack("<q", 5)}
        for value, prefix in ((state, ""), ({"epoch": 3, "model": state, "best": 0.5, "names": ["a"]}, "model/")):
            self.write(pickled(value), storages)
            self.lockstep("import", self.file, "--layout", "pytorch", "--output", self.output)
            found = self.read_by_h5py(READ_HDF5, self.output)
            # fc.weight[i][j] is number 1 + i + 2 j; the kernel is its transpose.
            self.assertEqual(found, {f"{prefix}fc/kernel": ((3, 2), [1, 2, 3, 4, 5, 6]), f"{prefix}fc/bias": ((2,), [0, 7]),
                                     f"{prefix}bn/moving_mean": ((1,), [3])})

    def test_hostile_pickles_are_refused_and_not_executed(self):
        witness = self.folder / "executed"

        class Evil:
            def __reduce__(self):
                import os
                return os.system, (f"touch {witness}",)

        float_ = Storage("0", "FloatStorage", 4)
        most = 2 ** 62
        cycle = {}
        cycle["a"] = cycle["b"] = cycle
        hostile = {
            r"names (posix|nt)\.system": pickle.dumps({"a": Evil()}, protocol=2),
            r"names builtins\.eval": b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.",
            "names torch.BoolStorage": pickled({"a": Tensor(Storage("0", "BoolStorage", 4), 0, (4,), (1,))}),
            "opcode 0x69": b"\x80\x02(i__main__\nEvil\n.",
            "opcode 0x81": b"\x80\x02ccollections\nOrderedDict\n)\x81.",
            "calls collections.OrderedDict with other": b"\x80\x02ccollections\nOrderedDict\nK\x01\x85R.",
            "ends in the middle": b"\x80\x02X\xff\xff\xff\x7fabc",
            "its stack is empty": b"\x80\x02R.",
            "a mark is missing": b"\x80\x02t.",
            "recalls what": b"\x80\x02h\x07.",
            "not a dict of tensors": b"\x80\x02K\x01.",
            "nested too deeply": pickle.dumps(cycle, protocol=2),
            "lies outside of its storage": pickled({"a": Tensor(float_, 1, (4,), (1,))}),
            "a lies outside": pickled({"a": Tensor(float_, 0, (most, most), (0, 0))}),
            "a lies outside of": pickled({"a": Tensor(float_, 0, (1000,), (0,))}),
            "the shape of a is wrong": pickled({"a": Tensor(float_, 0, (-1,), (1,))}),
            "the storage archive/data/7 is missing": pickled({"a": Tensor(Storage("7", "FloatStorage", 4), 0, (4,), (1,))}),
            "is shorter than it should be": pickled({"a": Tensor(Storage("0", "FloatStorage", 400), 0, (400,), (1,))}),
            "more than 8|at most 8": pickled({"a": Tensor(float_, 0, (1,) * 9, (1,) * 9)}),
        }
        for message, data in hostile.items():
            self.write(data, {"0": bytes(16)})
            result = self.lockstep("import", self.file, "--show", code=3)
            self.assertRegex(result.err, message)
        deep = b"\x80\x02N" + b"\x85" * 3_000_000 + b"."
        self.write(deep, {})
        self.assertIn("not a dict of tensors", self.lockstep("import", self.file, "--show", code=3).err)
        self.assertFalse(witness.exists())
        self.file.write_bytes(b"no archive")
        self.lockstep("import", self.file, "--show", code=3)

    def test_a_resnet_of_pytorch_gives_the_outputs_of_pytorch(self):
        python = next((path for path in (sys.executable, "/usr/bin/python3") if pathlib.Path(path).exists() and subprocess.run(
            [path, "-c", "import torch, numpy"], capture_output=True).returncode == 0), None)
        if python is None:
            self.skipTest("no Python has PyTorch and NumPy")
        chance = random.Random(5)
        for name, shape in (("x", [14, 9, 9, 3]), ("y", [14, 5])):
            text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % "".join(f"{extent}, " for extent in shape)
            text += " " * (-(len(text) + 11) % 64) + "\n"
            count = 14 * 243 if name == "x" else 70
            (self.folder / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode() +
                                                      struct.pack(f"<{count}f", *(chance.gauss(0, 1) for _ in range(count))))
        subprocess.run([python, "-c", RESNET, self.file, self.folder / "x.npy", self.folder / "wanted.npy"], check=True)
        (self.folder / "map.yaml").write_text(MAP)
        config = self.folder / "net.yaml"
        config.write_text("data: {format: npy, features: x.npy, labels: y.npy}\nmodel:\n  loss: mean_squared_error\n  layers:\n" +
                          "".join(f"    - {layer}\n" for layer in LAYERS) +
                          f"warm_start: {{checkpoint: {self.output}}}\ntrain: {{batch_size: 14}}\noptimizer: {{gradient_descent: {{learning_rate: 0.01}}}}\n")
        self.lockstep("import", self.file, "--layout", "pytorch", "--map", self.folder / "map.yaml", "--output", self.output)
        result = self.train("run", config=config, steps=1, sets=["checkpoint.at_start=true"])
        self.assertRegex(result.err, "32 variables taken")
        self.lockstep("predict", self.folder / "run", "--checkpoint", self.folder / "run" / "checkpoints" / "step-00000000.h5", "--input",
                      self.folder / "x.npy", "--output", self.folder / "got.npy")
        out = subprocess.run([python, "-c", COMPARE, self.folder / "wanted.npy", self.folder / "got.npy"], check=True, capture_output=True,
                             text=True).stdout
        self.assertTrue(float(out) <= 1e-5, out)


if __name__ == "__main__":
    main()
