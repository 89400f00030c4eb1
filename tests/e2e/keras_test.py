# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Weights of Keras 3 (.weights.h5) both ways, and the initialisers of ONNX files as weights.

LOCKSTEP_TEST_PYTHON names a Python with Keras 3 (any backend; numpy is enough) for the comparison with the real one; without
one it is skipped."""
import csv
import gzip
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile

from lockstep_run import DIGITS_DATA, SOURCE, LockstepTest, main, python_with, python_with_h5py

LIST = """
import h5py, sys
found = {}
with h5py.File(sys.argv[1], "r") as file:
    file.visititems(lambda name, item: found.update({name: (item.shape, item[()].ravel().tolist())}) if isinstance(item, h5py.Dataset) else None)
print(found)
"""
CONFIG = """
seed: 1
shards: 2
data: {{format: csv, path: {data}, shape: [64], label_column: -1, scale: 0.0625, train: {{rows: [0, 300]}}, eval: {{rows: [1500, 1540]}}}}
model:
  layers:
    - dense: {{name: first, units: 12}}
    - batch_norm: {{name: norm}}
    - relu
    - dense: {{name: second, units: 12, bias: false}}
    - batch_norm: {{name: norm2}}
    - tanh
    - dense: {{name: logits, units: 10}}
  loss: softmax_cross_entropy
optimizer: {{adam: {{learning_rate: 0.01}}}}
train: {{batch_size: 50, steps: 20}}
"""
KERAS = """
import os, sys
os.environ.setdefault("KERAS_BACKEND", "numpy")
import numpy as np
import keras
from keras import layers
model = keras.Sequential([keras.Input((64,)), layers.Dense(12), layers.BatchNormalization(epsilon=0.001), layers.ReLU(),
                          layers.Dense(12, use_bias=False), layers.BatchNormalization(epsilon=0.001), layers.Activation("tanh"),
                          layers.Dense(10, activation="softmax")])
way, weights, samples, outputs = sys.argv[1:]
if way == "read":
    model.load_weights(weights)
else:
    rng = np.random.default_rng(5)
    model.set_weights([rng.uniform(0.1, 1, value.shape).astype("float32") for value in model.get_weights()])
    model.save_weights(weights)
np.savetxt(outputs, np.asarray(model(np.loadtxt(samples, delimiter=",", dtype="float32") / 16, training=False)), fmt="%.9g", delimiter=",")
"""


# A model by the helpers of the package onnx, with the names and forms of weights that other programs write, and its outputs by onnxruntime.
MAKE_ONNX = """
import sys
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
rng = np.random.default_rng(7)
def numbers(*shape):
    return rng.uniform(0.2, 1, shape).astype(np.float32)
def plain(name, array):  # float_data, not raw bytes
    return helper.make_tensor(name, TensorProto.FLOAT, array.shape, array.ravel().tolist())
raw = numpy_helper.from_array
weights = [raw(numbers(4, 2, 3, 3), "w.0"), plain("b.0", numbers(4)), raw(numbers(4), "norm/scale:0"), raw(numbers(4), "norm/shift:0"),
           raw(numbers(4), "norm/mean:0"), plain("norm/var:0", numbers(4)), raw(numbers(4, 3, 2, 2), "up.weight"), raw(numbers(3), "up.bias"),
           raw(numbers(3, 6), "project"), raw(numbers(6), "shift"), raw(numbers(5, 6), "fc.weight"), raw(numbers(5), "fc.bias"),
           raw(numbers(9, 9), "unused"), raw(numbers(6), "rms.weight"), raw(np.array(1e-5, np.float32), "epsilon"), raw(np.array(2, np.float32), "two"), raw(np.array([2, 3], dtype=np.int64), "axes")]
nodes = [helper.make_node("Conv", ["x", "w.0", "b.0"], ["a"], pads=[1, 1, 1, 1]),
         helper.make_node("BatchNormalization", ["a", "norm/scale:0", "norm/shift:0", "norm/mean:0", "norm/var:0"], ["n"], epsilon=0.001),
         helper.make_node("Relu", ["n"], ["r"]), helper.make_node("ConvTranspose", ["r", "up.weight", "up.bias"], ["u"], strides=[2, 2]),
         helper.make_node("ReduceMean", ["u"], ["m"], axes=[2, 3], keepdims=0), helper.make_node("MatMul", ["m", "project"], ["p"]),
         helper.make_node("Add", ["shift", "p"], ["q"]), helper.make_node("Tanh", ["q"], ["t"]),
         helper.make_node("Pow", ["t", "two"], ["t2"]), helper.make_node("ReduceMean", ["t2"], ["tm"], axes=[-1], keepdims=1),
         helper.make_node("Add", ["tm", "epsilon"], ["te"]), helper.make_node("Sqrt", ["te"], ["ts"]), helper.make_node("Reciprocal", ["ts"], ["tr"]),
         helper.make_node("Mul", ["t", "tr"], ["tn"]), helper.make_node("Mul", ["rms.weight", "tn"], ["v"]),
         helper.make_node("Gemm", ["v", "fc.weight", "fc.bias"], ["y"], transB=1)]
graph = helper.make_graph(nodes, "other", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2, 6, 6])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 5])], weights)
model = helper.make_model(graph, producer_name="another program", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, sys.argv[1])
onnxruntime.set_default_logger_severity(3)
x = (rng.standard_normal((6, 6, 6, 2)) * 0.1).astype(np.float32)
np.save(sys.argv[2], x)
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
np.savetxt(sys.argv[3], session.run(None, {"x": x.transpose(0, 3, 1, 2).copy()})[0], fmt="%.9g", delimiter=",")
np.save(sys.argv[4], np.zeros((6, 5), np.float32))
"""


def python_with_keras():
    for python in (os.environ.get("LOCKSTEP_TEST_PYTHON", sys.executable), SOURCE / "build/python/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import keras; assert keras.__version__ >= '3'"], capture_output=True, timeout=120,
                              env=dict(os.environ, KERAS_BACKEND=os.environ.get("KERAS_BACKEND", "numpy"))).returncode == 0:
                return python
        except OSError:
            pass
    return None


class ExchangeTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "net.yaml"
        self.config.write_text(CONFIG.format(data=DIGITS_DATA), encoding="utf-8")
        self.once("run", "run", lambda: self.lockstep("train", self.config, "--run-dir", self.folder / "run", "--threads", 1))

    def arrays(self, path):
        return self.read_by_h5py(LIST, path)

    def variables(self, path):
        return {name.removeprefix("variables/"): value for name, value in self.arrays(path).items() if name.startswith("variables/")}

    def own(self, run="run"):
        self.lockstep("export", self.folder / run, "--output", self.folder / "own.h5")
        return self.variables(self.folder / "own.h5")

    def imported(self, file, code=0):
        """Imports a file with the mapping that --show proposes."""
        shown = self.lockstep("import", file, "--like", self.folder / "run", "--show").out
        words = []
        if "A mapping for --map:" in shown:
            (self.folder / "map.yaml").write_text(shown.partition("A mapping for --map:\n")[2], encoding="utf-8")
            words = ["--map", self.folder / "map.yaml"]
        self.lockstep("import", file, "--like", self.folder / "run", *words, "--output", self.folder / "new.h5", code=code)
        return self.variables(self.folder / "new.h5")


class Keras(ExchangeTest):
    def test_written_and_read_again(self):
        file = self.folder / "net.weights.h5"
        self.lockstep("export", self.folder / "run", "--output", file)
        found, own = self.arrays(file), self.own()
        expected = {"layers/dense/vars/0": "first/kernel", "layers/dense/vars/1": "first/bias",
                    "layers/batch_normalization/vars/0": "norm/gamma", "layers/batch_normalization/vars/1": "norm/beta",
                    "layers/batch_normalization/vars/2": "norm/moving_mean", "layers/batch_normalization/vars/3": "norm/moving_variance",
                    "layers/dense_1/vars/0": "second/kernel",
                    "layers/batch_normalization_1/vars/0": "norm2/gamma", "layers/batch_normalization_1/vars/1": "norm2/beta",
                    "layers/batch_normalization_1/vars/2": "norm2/moving_mean",
                    "layers/batch_normalization_1/vars/3": "norm2/moving_variance",
                    "layers/dense_2/vars/0": "logits/kernel", "layers/dense_2/vars/1": "logits/bias"}
        self.assertEqual(set(found), set(expected))
        for name, variable in expected.items():
            self.assertEqual(found[name], own[variable], name)
        self.assertEqual(self.imported(file), own)

    def test_layers_are_in_the_order_of_their_numbers(self):
        python = python_with_h5py()
        if python is None:
            self.skipTest("no Python has h5py")
        file = self.folder / "many.weights.h5"
        subprocess.run([python, "-c", "import h5py, sys\nwith h5py.File(sys.argv[1], 'w') as f:\n"
                        " for i in (10, 2, 1, 0):\n  f[f'layers/dense{\"_\" + str(i) if i else \"\"}/vars/0'] = [[float(i)]]\n"
                        " f['layers/lstm/cell/vars/0'] = [1.0]\n f['optimizer/vars/0'] = [1.0]\n f['layers/dense/vars/1'] = [0.5]\n"
                        " f['layers/dropout/seed_generator/vars/0'] = [1, 2]\n f.create_group('layers/re_lu/vars')\n", file], check=True)
        shown = self.lockstep("import", file, "--show").out
        self.assertEqual(re.findall(r"-> (\S+)", shown),
                         ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_2/kernel", "dense_10/kernel", "lstm/cell/0"])

    def write(self, name, lines):
        python = python_with_h5py()
        if python is None:
            self.skipTest("no Python has h5py")
        subprocess.run([python, "-c", f"import h5py, numpy, sys\nwith h5py.File(sys.argv[1], 'w') as f:\n{lines}", self.folder / name], check=True)
        return self.folder / name

    def test_bfloat16_as_keras_writes_it(self):
        """HDF5 has no such type: two bytes that mean nothing to it, and an attribute that says what they are."""
        file = self.write("half.weights.h5", " d = f.create_dataset('layers/dense/vars/0', data=numpy.array([[0x3FC0, 0xC000]], '<u2').view('V2'))\n"
                          " d.attrs['dtype'] = 'bfloat16'\n f['layers/dense/vars/1'] = numpy.array([0.5, 4], 'f2')\n")
        result = self.lockstep("import", file, "--output", self.folder / "new.h5")
        self.assertIn("2 tensors", result.out)
        self.assertEqual(self.variables(self.folder / "new.h5"), {"dense/kernel": ((1, 2), [1.5, -2.0]), "dense/bias": ((2,), [0.5, 4.0])})

    def test_weights_that_cannot_be_read_are_not_left_out(self):
        begin = " f['layers/dense/vars/1'] = [0.5]\n"
        for lines, pattern in ((" f['layers/dense/vars/0'] = numpy.zeros((2, 1), 'V2')\n", r"layers/dense/vars/0: holds an opaque type of 2 bytes[\s\S]*float32"),
                               (" f['layers/dense/vars/0'] = numpy.zeros((2, 1), 'c8')\n", r"layers/dense/vars/0: holds complex numbers"),
                               (" f['layers/dense/vars/0'] = numpy.ones((2, 1), 'i1')\n", r"layers/dense/vars/0: is quantized[\s\S]*before model.quantize")):
            file = self.write("odd.weights.h5", begin + lines)
            self.assert_one_error(self.lockstep("import", file, "--output", self.folder / "new.h5", code=3), 3, pattern)
            self.assertFalse((self.folder / "new.h5").exists())
        file = self.write("seeds.weights.h5", begin + " f['layers/dropout/seed_generator/vars/0'] = numpy.array([1, 2], 'u4')\n f['layers/text/vocabulary'] = 'a'\n")
        self.assertIn("1 tensor", self.lockstep("import", file, "--output", self.folder / "new.h5").out)

    def test_an_archive_of_keras_comes_with_the_command_that_unpacks_it(self):
        weights = self.write("model.weights.h5", " f['layers/dense/vars/0'] = numpy.ones((2, 1), 'f4')\n")
        with zipfile.ZipFile(self.folder / "a model.keras", "w") as archive:
            archive.writestr("config.json", "{}")
            archive.write(weights, "model.weights.h5")
        weights.unlink()
        result = self.lockstep("import", "a model.keras", "--show", code=3, cwd=self.folder)
        self.assert_one_error(result, 3, "is a model of Keras")
        run = next(line.split("Run: ")[1] for line in result.err.splitlines() if "Run: " in line)
        if shutil.which("unzip") is None:
            self.skipTest("no unzip")
        subprocess.run(["bash", "-c", run], cwd=self.folder, check=True)
        self.assertIn("dense/kernel", self.lockstep("import", "model.weights.h5", "--show", cwd=self.folder).out)

    def test_the_real_keras_reads_and_writes_it(self):
        python = python_with_keras()
        if python is None:
            self.skipTest("no Python has Keras 3; LOCKSTEP_TEST_PYTHON may name one")
        samples = self.folder / "samples.csv"
        with gzip.open(DIGITS_DATA, "rt", encoding="utf-8") as file:
            samples.write_text("".join(line.rpartition(",")[0] + "\n" for line in file.read().split()[1500:1540]), encoding="utf-8")
        file, outputs = self.folder / "net.weights.h5", self.folder / "keras.csv"

        def keras(way):
            subprocess.run([python, "-c", KERAS, way, file, samples, outputs], check=True, timeout=300)
            return [[float(value) for value in line.split(",")] for line in outputs.read_text(encoding="utf-8").split()]

        def lockstep(run, *more):
            self.lockstep("predict", self.folder / run, *more, "--input", samples, "--output", self.folder / "own.csv")
            with (self.folder / "own.csv").open(encoding="utf-8") as table:
                return [[float(row[f"probability_{c}"]) for c in range(10)] for row in csv.DictReader(table)]

        def assert_equal(one, other):
            for a, b in zip((v for row in one for v in row), (v for row in other for v in row), strict=True):
                self.assertAlmostEqual(a, b, delta=1e-5)

        self.lockstep("export", self.folder / "run", "--output", file)
        assert_equal(lockstep("run"), keras("read"))
        before = lockstep("run")
        written = keras("write")
        self.imported(file)
        new = lockstep("run", "--checkpoint", self.folder / "new.h5")
        self.assertNotEqual(before, new)
        assert_equal(new, written)

    def test_damaged_and_foreign_files_are_refused(self):
        file = self.folder / "net.weights.h5"
        self.lockstep("export", self.folder / "run", "--output", file)
        good = file.read_bytes()
        self.assert_one_error(self.lockstep("import", file, "--layout", "pytorch", "--show", code=2), 2, "--layout is for")
        generator = random.Random(4)
        for cut in (0, 10, 200, len(good) // 2, len(good) - 1):
            file.write_bytes(good[:cut])
            self.assert_one_error(self.lockstep("import", file, "--show", code=3), 3, "net.weights.h5")
        refused = 0
        for _ in range(40):
            damaged = bytearray(good)
            for _ in range(20):
                damaged[generator.randrange(8, 2500)] = generator.randrange(256)
            file.write_bytes(damaged)
            result = self.start("import", file, "--show").wait()
            self.assertIn(result.code, (0, 3), str(result))
            refused += result.code == 3
        self.assertGreater(refused, 0)
        self.lockstep("export", self.folder / "run", "--output", self.folder / "plain.h5")
        (self.folder / "plain.h5").rename(file)
        self.assert_one_error(self.lockstep("import", file, "--show", code=3), 3, "no weights of Keras 3")

    def test_a_layer_without_a_form_is_named(self):
        self.config.write_text(CONFIG.format(data=DIGITS_DATA).replace(
            "    - dense: {name: first, units: 12}", "    - reshape: {shape: [8, 8]}\n    - lstm: {name: memory, units: 12}\n    - flatten"), encoding="utf-8")
        self.lockstep("train", self.config, "--run-dir", self.folder / "lstm", "--threads", 1, "--steps", 1)
        result = self.lockstep("export", self.folder / "lstm", "--output", self.folder / "x.weights.h5", code=2)
        self.assert_one_error(result, 2, r"memory \(lstm\)")
        self.assertFalse((self.folder / "x.weights.h5").exists())


class Onnx(ExchangeTest):
    def test_initialisers_of_an_exported_net_are_its_variables(self):
        file = self.folder / "net.onnx"
        self.lockstep("export", self.folder / "run", "--output", file)
        self.assertEqual(self.imported(file), self.own())

    def test_convolutions_too(self):
        self.once("digits", "digits", lambda: self.train("digits", steps=3))
        file = self.folder / "digits.onnx"
        self.lockstep("export", self.folder / "digits", "--output", file)
        self.lockstep("import", file, "--like", self.folder / "digits", "--output", self.folder / "new.h5")
        self.assertEqual(self.variables(self.folder / "new.h5"), self.own("digits"))

    def test_rms_norms_are_found_again(self):
        config = self.folder / "rms.yaml"
        text = CONFIG.format(data=DIGITS_DATA)
        before, rest = text.split("    - batch_norm: {name: norm}\n")
        after = rest.split("    - batch_norm: {name: norm2}\n")
        config.write_text(before + "    - rms_norm: {name: rms}\n" + after[0] + "    - rms_norm: {name: whole, axis: 0}\n" + after[1], encoding="utf-8")
        self.train("rms", config=config, steps=3)
        file = self.folder / "rms.onnx"
        self.lockstep("export", self.folder / "rms", "--output", file)
        self.lockstep("import", file, "--like", self.folder / "rms", "--output", self.folder / "new.h5")
        own = self.own("rms")
        self.assertIn("rms/gamma", str(own))
        self.assertEqual(self.variables(self.folder / "new.h5"), own)

    def test_a_file_of_another_program_gives_its_outputs(self):
        python = python_with("numpy", "onnx", "onnxruntime")
        if python is None:
            self.skipTest("no Python has onnx and onnxruntime; LOCKSTEP_TEST_PYTHON may name one")
        names = [self.folder / name for name in ("other.onnx", "x.npy", "wanted.csv", "y.npy")]
        subprocess.run([python, "-c", MAKE_ONNX, *names], check=True, timeout=120)
        config = self.folder / "other.yaml"
        config.write_text("""data: {format: npy, features: x.npy, labels: y.npy}
shards: 1
model:
  loss: mean_squared_error
  layers: [conv2d: {name: first, filters: 4, kernel: 3}, batch_norm: {name: bn}, relu, conv2d_transpose: {name: up, filters: 3, kernel: 2, stride: 2},
           global_avg_pool, dense: {name: middle, units: 6}, tanh, rms_norm: {name: rms, epsilon: 1.0e-5}, dense: {name: fc, units: 5}]
optimizer: {gradient_descent: {learning_rate: 0.01}}
train: {batch_size: 6, steps: 1}
""", encoding="utf-8")
        self.lockstep("train", config, "--run-dir", self.folder / "like", "--threads", 1)
        arguments = ["import", names[0], "--like", self.folder / "like"]
        shown = self.lockstep(*arguments, "--show").out
        self.assertNotIn("unused", shown.partition("A mapping for --map:")[0])
        (self.folder / "map.yaml").write_text(shown.partition("A mapping for --map:\n")[2], encoding="utf-8")
        self.lockstep(*arguments, "--map", self.folder / "map.yaml", "--output", self.folder / "new.h5")

        def outputs(*more):
            self.lockstep("predict", self.folder / "like", *more, "--input", names[1], "--output", self.folder / "got.csv")
            with (self.folder / "got.csv").open(encoding="utf-8") as table:
                return [[float(row[f"value_{c}"]) for c in range(5)] for row in csv.DictReader(table)]

        wanted = [[float(value) for value in line.split(",")] for line in names[2].read_text(encoding="utf-8").split()]
        self.assertGreater(max(row[0] for row in wanted) - min(row[0] for row in wanted), 0.001, "outputs depend on the sample")
        self.assertGreater(abs(outputs()[0][0] - wanted[0][0]), 0.01, "before the import they are others")
        for row, got in zip(wanted, outputs("--checkpoint", self.folder / "new.h5"), strict=True):
            for a, b in zip(row, got, strict=True):
                self.assertAlmostEqual(a, b, delta=1e-5)

    def test_damaged_files_are_refused(self):
        file = self.folder / "net.onnx"
        self.lockstep("export", self.folder / "run", "--output", file)
        good = file.read_bytes()
        generator = random.Random(4)
        for cut in (0, 10, len(good) // 2):
            file.write_bytes(good[:cut])
            self.assert_one_error(self.lockstep("import", file, "--show", code=3), 3, "net.onnx")
        for _ in range(40):
            damaged = bytearray(good)
            for _ in range(10):
                damaged[generator.randrange(len(good))] = generator.randrange(256)
            file.write_bytes(damaged)
            self.assertIn(self.start("import", file, "--show").wait().code, (0, 3))


if __name__ == "__main__":
    main()
