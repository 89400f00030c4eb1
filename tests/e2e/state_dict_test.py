# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep import of PyTorch's state dicts and ONNX files: the values, a ResNet's outputs compared with PyTorch's own, and hostile pickles that are
refused."""
import ast
import collections
import pickle
import re
import struct
import subprocess

from lockstep_run import DIGITS_DATA, SOURCE, LockstepTest, main, python_with
from torch_files import Storage, Tensor, pickled, write_archive

READ_HDF5 = """
import h5py, sys
found = {}
with h5py.File(sys.argv[1], "r") as file:
    file["variables"].visititems(lambda name, item: found.update({name: (item.shape, item[()].ravel().tolist())})
                                 if isinstance(item, h5py.Dataset) else None)
print(found)
"""

# After the loader of docs/export.md: what it left out of the model, and the largest error of its outputs.
LOADED = """
import sys
import numpy as np
assert all(name.endswith("num_batches_tracked") for name in missing), missing
assert not unexpected, unexpected
table = np.loadtxt(sys.argv[1], delimiter=",", dtype=np.float32)
wanted = np.load(sys.argv[2])
with torch.no_grad():
    got = model(torch.from_numpy(table[:, :64].reshape(-1, 1, 8, 8) / 16)).numpy()
assert wanted.shape == got.shape and np.ptp(wanted) > 1, (wanted.shape, got.shape)
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
're:b([12])_((conv|bn)[12]/.*)': 'layer$1/0/$2'
're:down_([01]/.*)': 'layer2/0/downsample/$1'
"""


PYTHON_WITH_TORCH = python_with("torch", "numpy", "safetensors")


def write_npy(path, shape, values):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % "".join(f"{extent}, " for extent in shape)
    text += " " * (-(len(text) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode() + struct.pack(f"<{len(values)}f", *values))


def read_npy(path):
    """(shape, numbers) of a file of float32."""
    contents = path.read_bytes()
    end = 10 + struct.unpack("<H", contents[8:10])[0]
    header = ast.literal_eval(contents[10:end].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    return header["shape"], struct.unpack(f"<{(len(contents) - end) // 4}f", contents[end:])


class StateDictTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "model.pt"
        self.output = self.folder / "weights.h5"

    def write(self, data, storages):
        write_archive(self.file, data, storages)

    def test_values_strides_and_shared_storages_of_a_file_without_pytorch(self):
        floats = Storage("0", "FloatStorage", 8)
        state = collections.OrderedDict([
            ("fc.weight", Tensor(floats, 1, (2, 3), (1, 2))), ("fc.bias", Tensor(floats, 0, (2,), (7,))),
            ("bn.running_mean", Tensor(floats, 3, (1,), (1,))), ("bn.num_batches_tracked", Tensor(Storage("1", "LongStorage", 1), 0, (), ()))])
        state._metadata = collections.OrderedDict(version=1)
        storages = {"0": struct.pack("<8f", *range(8)), "1": struct.pack("<q", 5)}
        for value, prefix in ((state, ""), ({"epoch": 3, "model": state, "best": 0.5, "names": ["a"]}, ""),
                              ({"encoder": state, "names": ["a"]}, "encoder/")):
            self.write(pickled(value), storages)
            self.lockstep("import", self.file, "--output", self.output)
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
            r"'a' has the extents \[\d+, \d+\], which are too large": pickled({"a": Tensor(float_, 0, (most, most), (0, 0))}),
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
        deep = b"\x80\x02N" + b"\x85" * 2_000_000 + b"."
        self.write(deep, {})
        self.assertIn("not a dict of tensors", self.lockstep("import", self.file, "--show", code=3).err)
        self.assertFalse(witness.exists())
        self.file.write_bytes(b"no archive")
        self.lockstep("import", self.file, "--show", code=3)

    def write_config(self, folder, layers, name="net.yaml"):
        write_npy(self.folder / "y.npy", [14, 5], [1.0] * 70)
        config = self.folder / name
        config.write_text(f"data: {{format: npy, features: {folder / 'resnet_x.npy'}, labels: y.npy}}\nmodel:\n  loss: mean_squared_error\n  layers:\n" +
                          "".join(f"    - {layer}\n" for layer in layers) +
                          "train: {batch_size: 14, steps: 1}\noptimizer: {gradient_descent: {learning_rate: 0.01}}\n")
        return config

    def assert_outputs(self, folder, config, variables):
        """The net with the imported weights gives folder/resnet_y.npy for folder/resnet_x.npy."""
        run = self.folder / "imported"
        result = self.train(run.name, config=config, steps=1, sets=["checkpoint.at_start=true", f"warm_start.checkpoint={self.output}"])
        self.assertRegex(result.err, f"{variables} variables taken")
        self.lockstep("predict", run, "--checkpoint", run / "checkpoints" / "step-00000000.h5", "--input", folder / "resnet_x.npy", "--output",
                      self.folder / "got.npy")
        shape, wanted = read_npy(folder / "resnet_y.npy")
        self.assertGreater(max(wanted) - min(wanted), 0.1)
        got_shape, got = read_npy(self.folder / "got.npy")
        self.assertEqual(got_shape, shape)
        error = max(abs(a - b) for a, b in zip(wanted, got)) / max(map(abs, wanted))
        self.assertTrue(error <= 1e-5, error)

    def assert_resnet(self, folder):
        (self.folder / "map.yaml").write_text(MAP)
        config = self.write_config(folder, LAYERS)
        self.lockstep("import", folder / "resnet.pt", "--like", config, "--map", self.folder / "map.yaml", "--output", self.output)
        self.assert_outputs(folder, config, 32)

    def assert_onnx_of_the_resnet(self, folder):
        """torch.onnx folds batch norms and gives numbers as names: the proposed mapping pairs by shape and names those that it cannot tell apart."""
        layers = [layer.replace("bias: false", "bias: true") if "conv2d" in layer else
                  layer.replace("batch_norm", "identity").replace(", epsilon: 1e-5", "") for layer in LAYERS]
        config = self.write_config(folder, layers)
        self.train("like", config=config, steps=1)
        arguments = ["import", folder / "resnet.onnx", "--like", self.folder / "like"]
        shown = self.lockstep(*arguments, "--show").out
        mapping = shown.partition("A mapping for --map:\n")[2]
        names = re.findall(r"(?m)^(onnx::Conv_\d+) ", self.lockstep("import", folder / "resnet.onnx", "--show").out)
        convolutions = ["conv1", "b1_conv1", "b1_conv2", "b2_conv1", "b2_conv2", "down_0"]  # in the order of the file
        right = dict(zip([f"{layer}/{own}" for layer in convolutions for own in ("kernel", "bias")], names, strict=True))
        proposed = dict(re.findall(r"(?m)^(\w+/\w+): '?([^'\n]+)'?$", mapping))
        self.assertEqual(proposed, {name: right[name] for name in ("conv1/kernel", "b2_conv1/kernel", "b2_conv2/kernel", "down_0/kernel")})
        choices = dict(re.findall(r"(?m)^# (\S+): (.*)$", mapping))
        self.assertEqual(set(choices) | set(proposed), set(right))
        for name, text in choices.items():
            self.assertIn(right[name], text.split(" or "))
            mapping += f"{name}: '{right[name]}'\n"
        (self.folder / "map.yaml").write_text(mapping, encoding="utf-8")
        self.lockstep(*arguments, "--map", self.folder / "map.yaml", "--output", self.output)
        self.assert_outputs(folder, config, 14)

    def test_a_resnet_of_pytorch_gives_the_outputs_of_pytorch(self):
        self.assert_resnet(SOURCE / "tests" / "reference")

    def test_its_onnx_file_of_pytorch_too(self):
        self.assert_onnx_of_the_resnet(SOURCE / "tests" / "reference")

    def test_a_resnet_of_the_pytorch_here(self):
        if PYTHON_WITH_TORCH is None:
            self.skipTest("no Python has PyTorch and NumPy; LOCKSTEP_TEST_PYTHON may name one")
        folder = self.folder / "made"
        folder.mkdir()
        subprocess.run([PYTHON_WITH_TORCH, SOURCE / "tests" / "reference" / "resnet.py", folder, "4"], check=True)
        self.assertNotEqual((folder / "resnet_y.npy").read_bytes(), (SOURCE / "tests" / "reference" / "resnet_y.npy").read_bytes())
        self.assert_resnet(folder)

    def test_the_loader_of_the_documentation_gives_the_outputs_of_predict(self):
        if PYTHON_WITH_TORCH is None:
            self.skipTest("no Python has PyTorch, NumPy and safetensors; LOCKSTEP_TEST_PYTHON may name one")
        blocks = re.findall(r"(?s)```python\n(.*?)```", (SOURCE / "docs" / "export.md").read_text(encoding="utf-8"))
        loader, = (block for block in blocks if "safetensors.torch" in block)
        self.train("run", steps=30)
        self.lockstep("export", self.folder / "run", "--layout", "pytorch", "--output", self.folder / "digits.safetensors")
        self.lockstep("predict", self.folder / "run", "--input", DIGITS_DATA, "--layer", "logits", "--output", self.folder / "got.npy")
        script = self.folder / "loader.py"
        script.write_text(loader + LOADED, encoding="utf-8")
        done = subprocess.run([PYTHON_WITH_TORCH, script, DIGITS_DATA, self.folder / "got.npy"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(float(done.stdout) <= 1e-5, done.stdout)


if __name__ == "__main__":
    main()
