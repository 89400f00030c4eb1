# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep export to ONNX: onnxruntime gives what `lockstep predict` gives, with batches of 1 and 7: on random nets, on the nets of the
examples, and on a net with each layer.

LOCKSTEP_TEST_PYTHON names a Python with onnxruntime and NumPy; without one the comparisons are skipped. LOCKSTEP_TEST_NETS is the number of
random nets."""
import concurrent.futures
import json
import math
import os
import random
import re
import struct
import subprocess
import unittest

from lockstep_run import DIGITS, SOURCE, LockstepTest, main, python_with

NETS = int(os.environ.get("LOCKSTEP_TEST_NETS", "100"))
SAMPLES = 14
TOLERANCE = 1e-5  # of the largest output, or of 1

# Reads lines of JSON: [model, features, predictions, output], and "first" for a model that takes samples with channels first. Prints the
# largest error of each, relative to the largest output, at least 1.
COMPARE = """
import json, sys
import numpy as np
import onnxruntime
errors = []
for line in sys.stdin:
    model, features, predictions, output, *layout = json.loads(line)
    x, wanted = np.load(features), np.load(predictions)
    if layout:
        x = np.ascontiguousarray(np.moveaxis(x, -1, 1))
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    assert np.ptp(wanted) > 0, "the outputs do not depend on the sample"
    error = 0
    for batch in (1, 7):
        got = np.concatenate([session.run(output, {"features": x[i:i + batch]})[0] for i in range(0, len(x), batch)])
        assert got.shape == wanted.shape, (got.shape, wanted.shape)
        error = max(error, float(np.max(np.abs(got - wanted))))
    errors.append(error / max(1.0, float(np.max(np.abs(wanted)))))
print(json.dumps(errors))
"""


PYTHON = python_with("onnxruntime", "numpy")
WITHOUT = "no Python has onnxruntime and NumPy; LOCKSTEP_TEST_PYTHON may name one"


def write_npy(path, shape, values):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % "".join(f"{extent}, " for extent in shape)
    text += " " * (-(len(text) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode() + struct.pack(f"<{len(values)}f", *values))


ACTIVATIONS = ["relu", "sigmoid", "softplus", "selu", "silu", "relu6", "tanh", "elu", "{leaky_relu: {alpha: 0.3}}", "{elu: {alpha: 0.7}}",
               "{gelu: {approximate: true}}", "gelu", "{tanh: {scale: 1.7, slope: 0.6}}", "{dropout: {rate: 0.3}}", "softmax",
               "log_softmax", "identity", "stop_gradient", "{gaussian_noise: {stddev: 0.1}}"]
BATCH_NORMS = ["{batch_norm: {momentum: 0.5}}", "{batch_norm: {momentum: 0.5, scale: false}}", "{batch_norm: {momentum: 0.5, center: false}}"]
NORMS = BATCH_NORMS + ["layer_norm", "{layer_norm: {center: false}}", "{layer_norm: {scale: false}}", "{layer_norm: {axis: 0}}",
                       "{layer_norm: {axis: 0, scale: false}}", "rms_norm", "{rms_norm: {axis: 0, scale: false}}", "l2_normalize"]
SPACE_NORMS = ["instance_norm", "{instance_norm: {scale: false}}", "{group_norm: {groups: 1}}", "{group_norm: {groups: 1, center: false}}"]


def random_net(chance):
    """(shape of a sample, lines of layers)."""
    axes = chance.choice([0, 1, 2, 2, 2, 3])
    channels = chance.choice([1, 2, 4])
    shape = [chance.randint(5, 9) for _ in range(axes)] + [channels]
    layers, space = [], list(shape[:-1])
    for number in range(chance.randint(2, 6)):
        kind = chance.choice(["linear", "linear", "norm", "activation", "activation", "join", "pool", "move"] + ["move", "larger"] * (axes >= 2) +
                             ["sequence"] * 5 * (axes == 1))
        name = f"l{number}"
        padding = chance.choice(["same", "valid"])
        if kind == "linear" and axes:
            kernel, stride = chance.randint(1, 3), chance.choice([1, 1, 2])
            if min(space) < kernel or (padding == "valid" and min(space) < 3):
                padding = "same"
            dilation = chance.choice([1, 2]) if stride == 1 and padding == "same" else 1
            layers.append(f"conv{axes}d: {{name: {name}, filters: 4, kernel: {kernel}, stride: {stride}, padding: {padding}, "
                          f"dilation: {dilation}, bias: {chance.choice(['true', 'false'])}}}")
            channels = 4
            space = [-(-extent // stride) if padding == "same" else (extent - kernel) // stride + 1 for extent in space]
            if chance.random() < 0.5:
                layers.append(chance.choice(BATCH_NORMS))
        elif kind == "linear":
            layers.append(f"dense: {{name: {name}, units: {chance.randint(3, 8)}}}")
            if chance.random() < 0.5:
                layers.append(chance.choice(BATCH_NORMS))
        elif kind == "norm":
            layers.append(chance.choice(NORMS + (SPACE_NORMS if axes else [])))
        elif kind == "join":
            before = f"{name}a"
            layers += [f"identity: {{name: {before}}}", chance.choice(["relu", "sigmoid"])[:] + f": {{name: {name}b}}",
                       chance.choice([f"add: {{inputs: [{before}, {name}b]}}", f"multiply: {{inputs: [{before}, {name}b]}}",
                                      f"concat: {{inputs: [{name}b, {before}]}}"])]
            channels *= 2 if layers[-1].startswith("concat") else 1
        elif kind == "larger":
            kernel, stride = chance.randint(1, 3), chance.randint(1, 2)
            more = chance.randint(0, stride - 1) if padding == "valid" else 0
            layers.append(f"conv{axes}d_transpose: {{name: {name}, filters: 4, groups: {chance.choice([1, math.gcd(4, channels)])}, kernel: {kernel}, "
                          f"stride: {stride}, padding: {padding}, output_padding: {more}, dilation: {chance.choice([1, 2])}}}")
            break
        elif kind == "sequence":
            both = f"units: 4, bidirectional: {chance.choice(['true', 'false'])}, layers: {chance.choice([1, 2])}"
            layers += chance.choice([[f"lstm: {{{both}, bias_initializer: uniform}}"],
                                     [f"gru: {{{both}, reset_after: {chance.choice(['true', 'false'])}, candidate_bias_initializer: uniform}}"],
                                     ["masking"], [f"positional_embedding: {{kind: {chance.choice(['learned', 'sinusoidal'])}}}"],
                                     [f"attention: {{units: 4, heads: {chance.choice([1, 2, 4])}, causal: {chance.choice(['true', 'false'])}}}"],
                                     ["last_step"]])
            break
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
    if axes and len(layers) < 5 and chance.random() < 0.3 and not any(re.match("reduce|transpose|lstm|gru|last", l) for l in layers):
        layers.append(chance.choice(["global_avg_pool", "global_max_pool"]))
    return shape, [*layers, "flatten", "dense: {name: end, units: 3}"]


# Layers that random nets do not have, or not with these options: the shape of a sample, the layers, what the samples are.
MORE_NETS = [
    ([4, 6], ["split: {name: s, sizes: [2, 4]}", "slice: {name: c, begin: [1, 1], size: [2, -1], inputs: ['s:1']}", "flatten", "dense: {units: 3}"], None),
    ([6, 6, 2], ["crop: {cropping: [1, 2, 0, 1]}", "upsample: {factor: 2, method: bilinear}", "spatial_dropout: {rate: 0.2}", "drop_path: {rate: 0.2}", "flatten",
                 "dense: {units: 3}"], None),
    ([6, 6, 2], ["conv2d: {filters: 4, kernel: [3, 2], groups: 2, padding: [1, 0, 0, 1]}", "reshape: {shape: [4, -1]}", "expand_dims: {axis: 0}",
                 "squeeze", "flatten", "dense: {units: 3}"], None),
    ([5], ["dense: {name: a, units: 5}", "relu", "dense: {name: b, units: 5, shared_with: a}", "add: {inputs: [a, b]}", "dense: {units: 3}"], None),
    ([5], ["identity: {name: x}", "constant: {name: c, value: [1, 2, 3, 4, 5], shape: [5]}", "multiply: {inputs: [x, c]}", "dense: {units: 3}"], None),
    ([6], ["embedding: {name: e, rows: 9, units: 4}", "tanh", "tied_dense: {units: 9, shared_with: e}", "flatten", "dense: {units: 3}"], "ids"),
    ([6], ["embedding: {rows: 9, units: 4}", "layer_norm", "rms_norm", "flatten", "rms_norm: {axis: 0, epsilon: 0.1}", "dense: {units: 3}"], "ids"),
    ([6], ["sequence_length: {name: n}", "embedding: {name: e, rows: 9, units: 4, padding_index: 0, inputs: [features]}",
           "attention: {name: a, units: 4, heads: 2, inputs: [e, n]}", "lstm: {name: l, units: 3, layers: 2, bidirectional: true, inputs: [a, n]}",
           "gru: {name: g, units: 3, bidirectional: true, inputs: [l, n]}", "last_step: {name: s, inputs: [g, n]}",
           "attention: {name: m, units: 4, heads: 2, bias: false, inputs: [g, e, n]}", "flatten: {name: f}",
           "concat: {inputs: [f, s, 'l:1', 'l:2', 'g:1']}", "dense: {units: 3}"], "padded"),
    ([4, 6, 2], ["pad: {padding: [1, 0, 2, 1], value: 0.5, circular: width}", "conv2d: {filters: 4, kernel: 3, circular: [width]}",
                 "conv2d: {filters: 3, kernel: [3, 2], stride: 2, circular: all}", "max_pool: {window: 3, stride: 2, padding: same, circular: width}",
                 "avg_pool: {window: 3, stride: 1, padding: same, circular: height}", "flatten", "dense: {units: 3}"], None),
    ([5, 4], ["positional_embedding", "dropout: {rate: 0.2}", "gru: {name: g, units: 4}", "reduce: {name: r, operation: sum, axes: [-1], inputs: [g]}",
              "dense: {units: 3}"], None),
    ([5, 4], ["positional_embedding", "positional_embedding: {kind: sinusoidal}", "flatten", "dense: {units: 3}"], None),
    ([5, 4], ["identity: {name: x}", "conv1d: {filters: 4, kernel: 3}", "batch_norm: {name: y}", "add: {inputs: [x, y]}", "relu", "flatten", "dense: {units: 3}"],
     None),
    ([5, 4], ["conv1d: {filters: 4, kernel: 3}", "group_norm: {groups: 2}", "masking: {name: k, value: 0}", "flatten: {name: f}", "concat: {inputs: [f, 'k:1']}",
              "dense: {units: 3}"], "gaps"),
]
# What section data makes of samples: the shape of a sample, the options, the layers.
PREPARED = [
    ([6, 5, 2], "scale: 0.5, offset: 1, mean: [0.1, 0.4], std: [1.5, 0.7], transforms: [random_flip: {axes: [horizontal]}]",
     ["conv2d: {filters: 3, kernel: 3}", "flatten", "dense: {units: 3}"]),
    ([6, 5, 2], "normalize: channels, transforms: [standardize, normalize: {mean: [0.1, -0.2], std: 0.5}]", ["relu", "flatten", "dense: {units: 3}"]),
    ([6, 5, 2], "scale: 0.5, normalize: elements, transforms: [clip: {min: -1, max: 1.5}]", ["conv2d: {filters: 3, kernel: 3}", "flatten", "dense: {units: 3}"]),
    ([6, 5, 2], "normalize: all, whiten: {zca: {over: channels}}", ["conv2d: {filters: 3, kernel: 3}", "flatten", "dense: {units: 3}"]),
    ([7], "whiten: {pca: {components: 4}}, transforms: [scale: {factor: 2, offset: 3}, clip: {min: 0, max: 5}, log]", ["dense: {units: 3}"]),
    ([4, 3], "scale: 2, whiten: zca", ["flatten", "dense: {units: 3}"]),
]
# The layers of training alone: a loss over sampled classes has no prediction.
NO_PREDICTION = {"nce", "sampled_softmax", "negative_sampling"}

# The nets of the examples: the shape of a sample, the shape of its labels, the number of classes (None: any numbers), the number of ids if
# the samples are ids, and the layers that the heads read.
EXAMPLES = {
    "cifar10_large_batch": ([32, 32, 3], [1], 10, None, ["logits"]),
    "cifar10_resnet20": ([32, 32, 3], [1], 10, None, ["logits"]),
    "cluster": ([8, 8, 1], [1], 10, None, ["logits"]),
    "cosmo_conv3d": ([32, 32, 32, 4], [4], None, None, ["tanh1"]),
    "digit_images": ([12, 12, 1], [1], 10, None, ["logits"]),
    "digits": ([8, 8, 1], [1], 10, None, ["logits"]),
    "digits_sweep": ([8, 8, 1], [1], 10, None, ["logits"]),
    "mnist": ([28, 28, 1], [1], 10, None, ["logits"]),
    "mnist_multitask": ([28, 28, 1], [1], 10, None, ["digit", "attributes"]),
    "reuters_lstm": ([80], [90], 2, 10000, ["topics"]),
    "shakespeare_transformer": ([64], [64], 66, 66, ["next"]),
    "unet": ([64, 64, 3], [64, 64, 1], 4, None, ["classes"]),
}


class OnnxTest(LockstepTest):
    def write_data(self, folder, seed, shape, label_shape, classes=None, samples=None):
        chance = random.Random(seed)
        count, labels = SAMPLES * math.prod(shape), SAMPLES * math.prod(label_shape)
        write_npy(folder / "x.npy", [SAMPLES, *shape], samples or [chance.gauss(0, 1) for _ in range(count)])
        write_npy(folder / "y.npy", [SAMPLES, *label_shape],
                  [float(chance.randrange(classes)) if classes else chance.gauss(0, 1) for _ in range(labels)])

    def run_in(self, *arguments):
        result = self.start(*arguments).wait()
        self.assertEqual(result.code, 0, str(result))

    def prepared(self, number, shape, options, layers):
        """Exports a net that begins with what section data makes of samples, in both layouts; the lines for COMPARE."""
        folder = self.folder / f"prepared{number}"
        folder.mkdir()
        self.write_data(folder, 2000 + number, shape, [3])
        text = "".join(f"    - {layer}\n" for layer in layers)
        (folder / "net.yaml").write_text(f"data: {{format: npy, features: x.npy, labels: y.npy, {options}}}\nshards: 2\n"
                                         f"model:\n  loss: mean_squared_error\n  layers:\n{text}"
                                         "optimizer: {momentum: {learning_rate: 0.01}}\ntrain: {batch_size: 14}\n")
        self.run_in("train", folder / "net.yaml", "--run-dir", folder / "run", "--steps", 2, "--threads", 1)
        self.run_in("predict", folder / "run", "--input", folder / "x.npy", "--output", folder / "p.npy")
        for name in ("x.npy", "y.npy"):  # the checkpoint has what the export needs
            (folder / name).rename(folder / f"kept_{name}")
        lines = []
        for layout, more in (("last", ()), ("first", ("first",))):
            self.run_in("export", folder / "run", "--output", folder / f"{layout}.onnx", "--with-normalisation",
                        "--input-layout", f"channels_{layout}" if number % 2 else {"last": "nhwc", "first": "nchw"}[layout])
            lines.append(([str(folder / f"{layout}.onnx"), str(folder / "kept_x.npy"), str(folder / "p.npy"), None, *more], f"{shape} {options}"))
        return lines[:1] if len(shape) == 1 else lines

    @unittest.skipIf(PYTHON is None, WITHOUT)
    def test_normalisation_and_layout_of_the_samples_are_in_the_file(self):
        self.compare(self.at_once(self.prepared, [(number, *facts) for number, facts in enumerate(PREPARED)]))

    def test_a_transform_that_onnx_cannot_express_is_named(self):
        self.write_data(self.folder, 3, [6, 5, 2], [3])
        (self.folder / "net.yaml").write_text(
            "data:\n  format: npy\n  features: x.npy\n  labels: y.npy\n  transforms:\n    - crop: {size: [4, 4]}\n"
            "model: {loss: mean_squared_error, layers: [flatten, dense: {units: 3}]}\noptimizer: {momentum: {learning_rate: 0.01}}\n"
            "train: {batch_size: 14, steps: 1}\n")
        self.lockstep("train", self.folder / "net.yaml", "--run-dir", self.folder / "run", "--threads", 1)
        result = self.lockstep("export", self.folder / "run", "--output", self.folder / "net.onnx", "--with-normalisation", code=2)
        self.assert_one_error(result, 2, r"the transform crop cannot be written as ONNX[\s\S]*Leave out --with-normalisation")
        self.assertFalse((self.folder / "net.onnx").exists())
        self.lockstep("export", self.folder / "run", "--output", self.folder / "net.onnx")  # what the advice says

    def net(self, number, shape, layers, samples=None):
        """Trains a net a little, and exports it; the line for COMPARE of it, and of it with folded batch norms."""
        folder = self.folder / f"net{number}"
        folder.mkdir()
        self.write_data(folder, 1000 + number, shape, [3], samples=samples)
        text = "".join(f"    - {layer}\n" for layer in layers)
        (folder / "net.yaml").write_text("data: {format: npy, features: x.npy, labels: y.npy}\nshards: 2\n"
                                         f"model:\n  loss: mean_squared_error\n  layers:\n{text}"
                                         "optimizer: {momentum: {learning_rate: 0.01}}\ntrain: {batch_size: 14}\n")
        result = self.start("train", folder / "net.yaml", "--run-dir", folder / "run", "--steps", 2, "--threads", 1).wait()
        self.assertEqual(result.code, 0, f"{shape}\n{text}{result}")
        self.run_in("predict", folder / "run", "--input", folder / "x.npy", "--output", folder / "p.npy")
        forms = [("plain", ())] if "batch_norm" not in text or number % 2 == 0 else []
        forms += [("folded", ("--fold-batch-norm",))] if "batch_norm" in text else []
        for name, more in forms:
            self.run_in("export", folder / "run", "--output", folder / f"{name}.onnx", *more)
        return [([str(folder / f"{name}.onnx"), str(folder / "x.npy"), str(folder / "p.npy"), None], f"{shape}\n{text}") for name, _ in forms]

    def at_once(self, function, calls):
        """function(*call) of each call, two at a time; their lines."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return [line for lines in pool.map(lambda call: function(*call), calls) for line in lines]

    def compare(self, lines):
        result = subprocess.run([PYTHON, "-c", COMPARE], input="".join(json.dumps(line) + "\n" for line, _ in lines), capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr[-3000:])
        errors = json.loads(result.stdout)
        self.assertEqual(len(errors), len(lines))
        for error, (line, text) in zip(errors, lines):
            self.assertTrue(error <= TOLERANCE, f"{line[0]}: {error}\n{text}")

    @unittest.skipIf(PYTHON is None, WITHOUT)
    def test_random_nets_give_the_outputs_of_predict(self):
        lines = self.at_once(self.net, [(number, *random_net(random.Random(number))) for number in range(NETS)])
        self.assertGreaterEqual(len(lines), NETS)
        self.compare(lines)

    @unittest.skipIf(PYTHON is None, WITHOUT)
    def test_layers_that_random_nets_do_not_have(self):
        calls = []
        for number, (shape, layers, kind) in enumerate(MORE_NETS):
            chance = random.Random(3)
            samples = [float(chance.randrange(9)) for _ in range(SAMPLES * math.prod(shape))]
            if kind == "padded":  # lengths 0 to 6
                samples = [value + 1 if i % 6 < i // 6 % 7 else 0.0 for i, value in enumerate(min(v, 7.0) for v in samples)]
            if kind == "gaps":
                samples = [0.0 if i // 4 % 3 == 0 else value - 4 for i, value in enumerate(samples)]
            calls.append((500 + number, shape, layers, samples if kind else None))
        self.compare(self.at_once(self.net, calls))

    def example(self, name, shape, label_shape, classes, ids, outputs):
        """Trains the net of an example a little on random samples, and exports it."""
        folder = self.folder / name
        folder.mkdir()
        chance = random.Random(name)
        self.write_data(folder, name, shape, label_shape, classes,
                        [float(chance.randrange(ids)) for _ in range(SAMPLES * math.prod(shape))] if ids else None)
        text = (SOURCE / "examples" / f"{name}.yaml").read_text(encoding="utf-8")
        text, replaced = re.subn(r"(?m)^(data|eval|sweep|cluster):.*\n(?:[ #].*\n|\n)*", "", text)
        self.assertGreaterEqual(replaced, 2)
        (folder / "net.yaml").write_text(f"data: {{format: npy, features: x.npy, labels: y.npy}}\neval: {{every_epochs: 0}}\n{text}")
        self.run_in("train", folder / "net.yaml", "--run-dir", folder / "run", "--steps", 2, "--threads", 1, "--set", "train.batch_size=14")
        self.run_in("export", folder / "run", "--output", folder / "net.onnx", "--fold-batch-norm")
        for output in outputs:
            self.run_in("predict", folder / "run", "--input", folder / "x.npy", "--layer", output, "--output", folder / f"{output}.npy")
        return [([str(folder / "net.onnx"), str(folder / "x.npy"), str(folder / f"{output}.npy"), [output]], name) for output in outputs]

    @unittest.skipIf(PYTHON is None, WITHOUT)
    def test_the_nets_of_the_examples(self):
        every = {path.stem for path in (SOURCE / "examples").glob("*.yaml")}
        self.assertEqual(every, {*EXAMPLES, "word2vec"}, "EXAMPLES says what the samples of an example are")
        self.compare(self.at_once(self.example, [(name, *facts) for name, facts in EXAMPLES.items()]))

    def test_each_layer_that_predicts_is_in_some_net(self):
        """A new layer fails here until its export is written and a net has it."""
        table = (SOURCE / "docs" / "config.md").read_text(encoding="utf-8")
        kinds = set(re.findall(r"(?m)^## Layer (\w+)", table))
        self.assertGreater(len(kinds), 50)
        nets = [layers for _, layers, _ in MORE_NETS] + [random_net(random.Random(number))[1] for number in range(100)]
        used = {re.match(r"{?(\w+)", layer)[1] for layers in nets for layer in layers}
        self.assertEqual(kinds - used, NO_PREDICTION)

    def test_a_layer_that_onnx_cannot_express_is_named(self):
        self.write_data(self.folder, 1, [6], [1], 6, samples=[float(i % 6) for i in range(SAMPLES * 6)])
        (self.folder / "net.yaml").write_text(
            "data: {format: npy, features: x.npy}\nmodel:\n  loss: mean\n  layers:\n    - slice: {name: word, begin: [0], size: [1]}\n"
            "    - slice: {name: context, inputs: [features], begin: [1], size: [1]}\n    - embedding: {rows: 6, units: 4, inputs: [word]}\n"
            "    - flatten: {name: vector}\n    - nce: {name: sampled, inputs: [vector, context], classes: 6, sampled: 3}\n"
            "optimizer: {momentum: {learning_rate: 0.01}}\ntrain: {batch_size: 14, steps: 1}\n")
        self.lockstep("train", self.folder / "net.yaml", "--run-dir", self.folder / "run", "--threads", 1)
        result = self.lockstep("export", self.folder / "run", "--output", self.folder / "net.onnx", code=2)
        self.assert_one_error(result, 2, "layer sampled: nce cannot be written as ONNX")
        self.assertFalse((self.folder / "net.onnx").exists())

    def test_options_go_with_their_format(self):
        self.train("run", config=DIGITS, steps=1)
        for option in (["--fold-batch-norm"], ["--with-normalisation"], ["--input-layout", "nchw"]):
            result = self.lockstep("export", self.folder / "run", "--output", self.folder / "a.safetensors", *option, code=2)
            self.assertIn(f"{option[0]} is an option of the format onnx", result.err)
        result = self.lockstep("export", self.folder / "run", "--output", self.folder / "a.onnx", "--layout", "pytorch", code=2)
        self.assertIn("is an option of the format safetensors", result.err)


if __name__ == "__main__":
    main()
