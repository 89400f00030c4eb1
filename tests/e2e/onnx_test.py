# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep export to ONNX: onnxruntime gives what `lockstep predict` gives, on random nets, with batches of 1 and 7.

LOCKSTEP_TEST_PYTHON names a Python with onnxruntime and NumPy; without one the comparisons are skipped. LOCKSTEP_TEST_NETS is the number of
random nets."""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import unittest

from lockstep_run import DIGITS, SOURCE, LockstepTest, main

NETS = int(os.environ.get("LOCKSTEP_TEST_NETS", "20"))
SAMPLES = 14
TOLERANCE = 1e-5  # of the largest output, or of 1

# Reads lines of JSON: [model, features, predictions]. Prints the largest error of each, relative to the largest output, at least 1.
COMPARE = """
import json, sys
import numpy as np
import onnxruntime
errors = []
for line in sys.stdin:
    model, features, predictions = json.loads(line)
    x, wanted = np.load(features), np.load(predictions)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    assert np.ptp(wanted) > 0, "the outputs do not depend on the sample"
    error = 0
    for batch in (1, 7):
        got = np.concatenate([session.run(None, {"features": x[i:i + batch]})[0] for i in range(0, len(x), batch)])
        assert got.shape == wanted.shape, (got.shape, wanted.shape)
        error = max(error, float(np.max(np.abs(got - wanted))))
    errors.append(error / max(1.0, float(np.max(np.abs(wanted)))))
print(json.dumps(errors))
"""


def python_with_onnxruntime():
    for python in (os.environ.get("LOCKSTEP_TEST_PYTHON", sys.executable), SOURCE / "build/python/bin/python3", "/usr/bin/python3"):
        if pathlib.Path(python).exists() and subprocess.run([python, "-c", "import onnxruntime, numpy"], capture_output=True).returncode == 0:
            return python
    return None


def write_npy(path, shape, values):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % "".join(f"{extent}, " for extent in shape)
    text += " " * (-(len(text) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode() + struct.pack(f"<{len(values)}f", *values))


ACTIVATIONS = ["relu", "sigmoid", "softplus", "selu", "silu", "relu6", "tanh", "elu", "{leaky_relu: {alpha: 0.3}}", "{elu: {alpha: 0.7}}",
               "{gelu: {approximate: true}}", "gelu", "{tanh: {scale: 1.7, slope: 0.6}}", "{dropout: {rate: 0.3}}", "softmax",
               "log_softmax", "identity", "stop_gradient", "{gaussian_noise: {stddev: 0.1}}"]
NORMS = ["{batch_norm: {momentum: 0.5}}", "{batch_norm: {momentum: 0.5, scale: false}}", "{batch_norm: {momentum: 0.5, center: false}}",
         "layer_norm", "{layer_norm: {center: false}}", "{layer_norm: {scale: false}}"]


def random_net(chance):
    """(shape of a sample, lines of layers)."""
    axes = chance.choice([0, 1, 2, 2, 2, 3])
    shape = [chance.randint(5, 9) for _ in range(axes)] + [chance.choice([1, 2, 4])]
    layers, space = [], list(shape[:-1])
    for number in range(chance.randint(1, 4)):
        kind = chance.choice(["linear", "linear", "norm", "activation", "activation", "join", "pool", "move"])
        name = f"l{number}"
        padding = chance.choice(["same", "valid"])
        if kind == "linear" and axes:
            kernel, stride = chance.randint(1, 3), chance.choice([1, 1, 2])
            if min(space) < kernel or (padding == "valid" and min(space) < 3):
                padding = "same"
            dilation = chance.choice([1, 2]) if stride == 1 and padding == "same" else 1
            layers.append(f"conv{axes}d: {{name: {name}, filters: 4, kernel: {kernel}, stride: {stride}, padding: {padding}, "
                          f"dilation: {dilation}, bias: {chance.choice(['true', 'false'])}}}")
            space = [-(-extent // stride) if padding == "same" else (extent - kernel) // stride + 1 for extent in space]
            if chance.random() < 0.5:
                layers.append(chance.choice(NORMS[:3]))
        elif kind == "linear":
            layers.append(f"dense: {{name: {name}, units: {chance.randint(3, 8)}}}")
            if chance.random() < 0.5:
                layers.append(chance.choice(NORMS[:3]))
        elif kind == "norm":
            layers.append(chance.choice(NORMS))
        elif kind == "join":
            before = f"{name}a"
            layers += [f"identity: {{name: {before}}}", chance.choice(["relu", "sigmoid"])[:] + f": {{name: {name}b}}",
                       chance.choice([f"add: {{inputs: [{before}, {name}b]}}", f"multiply: {{inputs: [{before}, {name}b]}}",
                                      f"concat: {{inputs: [{name}b, {before}]}}"])]
        elif kind == "pool" and axes and min(space) >= 2:
            if min(space) < 3:
                padding = "same"
            layers.append(f"{chance.choice(['max_pool', 'avg_pool'])}: {{window: {chance.choice([2, 3])}, stride: 2, padding: {padding}}}")
            break
        elif kind == "move" and axes:
            layers.append(chance.choice([f"pad: {{padding: [{', '.join(['1', '2'] * axes)}], value: 0.5}}", "{upsample: {factor: 2}}",
                                         f"reduce: {{operation: {chance.choice(['mean', 'max', 'sum'])}, axes: [0]}}",
                                         f"transpose: {{permutation: {list(reversed(range(axes + 1)))}}}"]))
            break
        else:
            layers.append(chance.choice(ACTIVATIONS))
    if axes and len(layers) < 5 and chance.random() < 0.3 and not any("reduce" in l or "transpose" in l for l in layers):
        layers.append(chance.choice(["global_avg_pool", "global_max_pool"]))
    return shape, [*layers, "flatten", "dense: {name: end, units: 3}"]


class OnnxTest(LockstepTest):
    def net(self, number, shape, layers, features=None):
        """Trains a net a little, and exports it; the line for COMPARE of it, and of it with folded batch norms."""
        chance = random.Random(1000 + number)
        folder = self.folder / f"net{number}"
        folder.mkdir()
        count = SAMPLES
        for extent in shape:
            count *= extent
        write_npy(folder / "x.npy", [SAMPLES, *shape], features or [chance.gauss(0, 1) for _ in range(count)])
        write_npy(folder / "y.npy", [SAMPLES, 3], [chance.gauss(0, 1) for _ in range(3 * SAMPLES)])
        text = "".join(f"    - {layer}\n" for layer in layers)
        (folder / "net.yaml").write_text("data: {format: npy, features: x.npy, labels: y.npy}\nshards: 2\n"
                                         f"model:\n  loss: mean_squared_error\n  layers:\n{text}"
                                         "optimizer: {momentum: {learning_rate: 0.01}}\ntrain: {batch_size: 14}\n")
        result = self.start("train", folder / "net.yaml", "--run-dir", folder / "run", "--steps", 2, "--threads", 1).wait()
        self.assertEqual(result.code, 0, f"{shape}\n{text}{result}")
        self.lockstep("predict", folder / "run", "--input", folder / "x.npy", "--output", folder / "p.npy")
        lines = []
        for name, more in (("plain", ()), ("folded", ("--fold-batch-norm",))):
            self.lockstep("export", folder / "run", "--output", folder / f"{name}.onnx", *more)
            lines.append([str(folder / f"{name}.onnx"), str(folder / "x.npy"), str(folder / "p.npy")])
        return lines

    def compare(self, lines, texts):
        python = python_with_onnxruntime()
        if python is None:
            self.skipTest("no Python has onnxruntime and NumPy; LOCKSTEP_TEST_PYTHON may name one")
        result = subprocess.run([python, "-c", COMPARE], input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True,
                                text=True)
        self.assertEqual(result.returncode, 0, result.stderr[-3000:])
        errors = json.loads(result.stdout)
        self.assertEqual(len(errors), len(lines))
        for error, line, text in zip(errors, lines, texts):
            self.assertTrue(error <= TOLERANCE, f"{line[0]}: {error}\n{text}")

    def test_random_nets_give_the_outputs_of_predict(self):
        if python_with_onnxruntime() is None:
            self.skipTest("no Python has onnxruntime and NumPy; LOCKSTEP_TEST_PYTHON may name one")
        lines, texts = [], []
        for number in range(NETS):
            shape, layers = random_net(random.Random(number))
            for line in self.net(number, shape, layers):
                lines.append(line)
                texts.append(f"{shape}\n" + "\n".join(layers))
        self.compare(lines, texts)

    def test_layers_that_random_nets_do_not_have(self):
        nets = [([4, 6], ["split: {name: s, sizes: [2, 4]}", "slice: {name: c, begin: [1, 1], size: [2, -1], inputs: ['s:1']}", "flatten",
                          "dense: {units: 3}"]),
                ([6, 6, 2], ["crop: {cropping: [1, 2, 0, 1]}", "upsample: {factor: 2, method: bilinear}", "flatten", "dense: {units: 3}"]),
                ([6, 6, 2], ["conv2d: {filters: 4, kernel: [3, 2], groups: 2, padding: [1, 0, 0, 1]}", "reshape: {shape: [4, -1]}",
                             "expand_dims: {axis: 0}", "squeeze", "flatten", "dense: {units: 3}"]),
                ([5], ["dense: {name: a, units: 5}", "relu", "dense: {name: b, units: 5, shared_with: a}", "add: {inputs: [a, b]}",
                       "dense: {units: 3}"])]
        lines, texts = [], []
        for number, (shape, layers) in enumerate(nets):
            for line in self.net(500 + number, shape, layers):
                lines.append(line)
                texts.append(str(layers))
        ids = [float(random.Random(3).randrange(9)) for _ in range(SAMPLES * 6)]
        for line in self.net(600, [6], ["embedding: {rows: 9, units: 4}", "layer_norm", "flatten", "dense: {units: 3}"], features=ids):
            lines.append(line)
            texts.append("embedding")
        self.compare(lines, texts)

    def test_a_layer_that_onnx_cannot_express_is_named(self):
        with self.assertRaises(AssertionError) as raised:
            self.net(700, [4, 2], ["lstm: {units: 3, name: memory}", "flatten", "dense: {units: 3}"])
        self.assertRegex(str(raised.exception), "layer memory: lstm cannot be written as ONNX")
        self.assertFalse((self.folder / "net700" / "plain.onnx").exists())

    def test_options_go_with_their_format(self):
        self.train("run", config=DIGITS, steps=1)
        result = self.lockstep("export", self.folder / "run", "--output", self.folder / "a.safetensors", "--fold-batch-norm", code=2)
        self.assertIn("is an option of the format onnx", result.err)
        result = self.lockstep("export", self.folder / "run", "--output", self.folder / "a.onnx", "--layout", "pytorch", code=2)
        self.assertIn("is an option of the format safetensors", result.err)


if __name__ == "__main__":
    main()
