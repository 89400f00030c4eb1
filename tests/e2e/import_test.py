# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep import with names of other programs: what --show proposes and what it leaves to the user, ready maps, checkpoints of training programs, and
docs/fine_tuning.md as it stands. The files of PyTorch are written without PyTorch."""
import collections
import json
import pathlib
import re
import struct
import unittest
import zlib

import torch_files
from lockstep_run import SOURCE, LockstepTest, main
from torch_files import RESNET_CLASSES, RESNET_WIDTH, pickled, resnet_shapes, state_of, write_archive

OUTPUTS = SOURCE / "tests" / "reference" / "torchvision_resnets.json"
NET = """
shards: 3
data: {{format: npy, features: x.npy, labels: y.npy}}
model:
  loss: softmax_cross_entropy
  layers:
{layers}
optimizer: {{gradient_descent: {{learning_rate: 0.01}}}}
train: {{batch_size: 4, steps: 1}}
"""


def write_npy(path, shape, values):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % "".join(f"{extent}, " for extent in shape)
    text += " " * (-(len(text) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode() + struct.pack(f"<{len(values)}f", *values))


def rows_of(path, columns):
    """The rows of a NumPy file of float32."""
    contents = path.read_bytes()
    values = struct.unpack(f"<{(len(contents) - 10 - struct.unpack('<H', contents[8:10])[0]) // 4}f", contents[10 + struct.unpack("<H", contents[8:10])[0]:])
    return [values[i:i + columns] for i in range(0, len(values), columns)]


def png(red, green, blue, extent):
    """A picture of one colour with a gradient."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + bytes(value * (x + y + 8) // (2 * extent + 8) for x in range(extent) for value in (red, green, blue)) for y in range(extent))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", extent, extent, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def model_name(name):
    """The variable of resnet34 or resnet50 that a tensor of torchvision is."""
    for theirs, ours in (("downsample.0.", "shortcut/1/conv2d1/"), ("downsample.1.", "shortcut/1/batch_norm1/")):
        name = name.replace(theirs, ours)
    name = re.sub(r"^conv1\.", "conv/", re.sub(r"^bn1\.", "bn/", re.sub(r"^fc\.", "logits/", name)))
    name = re.sub(r"^layer(\d)\.0\.", r"stage\1/first/", name)
    name = re.sub(r"^layer(\d)\.(\d+)\.", r"stage\1/rest/\2/block/", name)
    layer, _, own = name.replace(".", "/").rpartition("/")
    norm = re.search(r"(^|/)(bn\d?|batch_norm1)$", layer)
    own = {"running_mean": "moving_mean", "running_var": "moving_variance", "weight": "gamma" if norm else "kernel",
           "bias": "beta" if norm else "bias"}[own]
    return f"{layer}/{own}"


class ImportTest(LockstepTest):
    def setUp(self):
        super().setUp()
        shape, values = torch_files.samples()
        write_npy(self.folder / "x.npy", shape, values)
        write_npy(self.folder / "y.npy", [shape[0]], [float(i % 2) for i in range(shape[0])])
        self.file = self.folder / "net.pt"
        self.output = self.folder / "weights.h5"

    def write_config(self, *layers, name="net.yaml"):
        config = self.folder / name
        config.write_text(NET.format(layers="\n".join(f"    - {layer}" for layer in layers)), encoding="utf-8")
        return config

    def write_state(self, shapes, wrap=lambda state: state):
        state, storages = state_of(shapes)
        write_archive(self.file, pickled(wrap(state)), storages)

    def pairs(self, *arguments):
        """{variable: tensor} that --show gives or proposes, and its whole text."""
        shown = self.lockstep("import", self.file, *arguments, "--show").out
        return dict(re.findall(r"(?m)^(\S+) \w+ \[.*\] <- (\S+)", shown.replace("<- nothing", "-- nothing"))), shown


class Proposals(ImportTest):
    def test_plain_prefixes_on_either_side(self):
        """Names of a ResNet after a prefix; all kernels but the first have one shape, so nothing but names can tell them apart."""
        layers = [name.removesuffix(".weight") for name, shape in resnet_shapes(18).items() if "conv" in name and len(shape) == 4]
        shapes = {f"{layer}.weight": (4, 3 if layer == "conv1" else 4, 3, 3) for layer in layers}
        ours = {f"net/{layer.replace('.', '/')}": f"{layer}.weight" for layer in layers}
        config = self.write_config(*[f"conv2d: {{name: {name}, filters: 4, kernel: 3, bias: false}}" for name in ours], "global_avg_pool",
                                   "dense: {name: net/fc, units: 5}")
        for prefix in ("", "backbone.body."):
            order = list(reversed(shapes.items())) if prefix else list(shapes.items())
            self.write_state({prefix + name: shape for name, shape in order})
            found, shown = self.pairs("--like", config)
            self.assertEqual(found, {f"{name}/kernel": prefix + tensor for name, tensor in ours.items()})
            self.assertRegex(shown, r"net/fc/kernel \[4, 5\] <- nothing: no tensor of the file is like it")

    def test_what_names_and_shapes_do_not_decide_is_left_out_and_named(self):
        config = self.write_config(f"resnet34: {{classes: 5, filters: {RESNET_WIDTH}}}")
        shapes = resnet_shapes(34, RESNET_WIDTH, 5)
        self.write_state(shapes)
        found, shown = self.pairs("--like", config)
        right = {f"resnet34/{model_name(name)}": name for name in shapes if not name.endswith("num_batches_tracked")}
        self.assertGreater(len(found), 5)
        self.assertEqual(found, {name: right[name] for name in found}, "a wrong pair")
        mapping = shown.partition("A mapping for --map:\n")[2]
        self.assertEqual({re.sub(r"^# ", "", line).partition(": ")[0] for line in mapping.splitlines()}, set(right), "every variable is named")
        self.assertEqual(mapping.count("# "), len(right) - len(found))
        self.assertRegex(mapping, r"(?m)^# resnet34/stage1/rest/1/block/conv1/kernel: layer1\.0\.conv1\.weight or layer1\.1\.conv1\.weight or ")
        (self.folder / "map.yaml").write_text(mapping, encoding="utf-8")
        result = self.lockstep("import", self.file, "--like", config, "--map", self.folder / "map.yaml", "--output", self.output, code=3)
        self.assert_one_error(result, 3, "variables of the model get no tensor")
        self.assertFalse(self.output.exists())

    def test_a_layer_that_ends_alike_with_another_shape_is_no_other_layer(self):
        config = self.write_config("global_avg_pool", "dense: {name: body/first, units: 7}", "dense: {name: head/fc, units: 5}")
        self.write_state({"m.first.weight": (7, 3), "m.first.bias": (7,), "m.fc.weight": (9, 7), "m.fc.bias": (9,),
                          "aux.other.weight": (5, 7), "aux.other.bias": (5,)})
        found, shown = self.pairs("--like", config)
        self.assertEqual(found, {"body/first/kernel": "m.first.weight", "body/first/bias": "m.first.bias"})
        self.assertIn("head/fc/kernel [7, 5] <- nothing: is [7, 5] in the model, and m.fc.weight is [7, 9]", shown)
        self.assertIn("not used: aux.other.weight", shown)

    def test_a_mapping_goes_as_warm_start_rename_does(self):
        config = self.write_config("global_avg_pool", "dense: {name: body, units: 7}", "dense: {name: fc, units: 5}")
        self.write_state({"net.one.weight": (7, 3), "net.one.bias": (7,), "extra": (2,)})
        arguments = ["import", self.file, "--like", config, "--map", self.folder / "map.yaml", "--output", self.output]

        def with_map(text, code=0):
            (self.folder / "map.yaml").write_text(text, encoding="utf-8")
            return self.lockstep(*arguments, code=code)

        for text in ("body/: net/one/\nfc/: null\n", "body/kernel: net.one.weight\nbody/bias: net/one/bias\n'fc/*': null\n",
                     "'re:body/(.*)': net/one/$1\nfc/kernel: null\nfc/bias: null\n"):
            result = with_map(text)
            self.assertIn(f"2 tensors written to {self.output}\nnot used: extra\n", result.out)
        (self.folder / "map.yaml").write_text("body/: net/one/\nfc/: null\n", encoding="utf-8")
        self.assertIn("1 tensors written", self.lockstep(*arguments, "--variables", "body/kernel").out)
        self.assert_one_error(self.lockstep(*arguments, "--variables", "bodi/*", code=2), 2, r"--variables: no variable of the model matches 'bodi/\*'")
        with_map("body/: net/one/\nfc/: null\n")
        # What import has written, warm_start takes with the same rules for names.
        result = self.train("warm", config=config, steps=1, sets=[f"warm_start.checkpoint={self.output}", "warm_start.variables=[body/*]"])
        self.assertIn("2 variables taken", result.err)
        self.assert_one_error(with_map("net.one.weight: body/kernel\n", 2), 2, "'net.one.weight' matches no variable of the model(?s:.*)VARIABLE: TENSOR")
        self.assert_one_error(with_map("bodi/: net/one/\n", 2), 2, "'bodi/' matches no variable of the model")
        self.assert_one_error(with_map("body/: net/two/\nfc/: null\n", 3), 3, r"2 variables of the model get no tensor: .*the file has no tensor net/two/")
        self.assert_one_error(self.lockstep("import", self.file, "--map", "x.yaml", "--show", code=2), 2, "name it with --like")
        self.assert_one_error(self.lockstep("import", self.file, "--like", config, "--map", "nothing", "--show", code=2), 2, "Ready maps: torchvision")


class Files(ImportTest):
    SHAPES = {"fc.weight": (5, 3), "fc.bias": (5,)}

    def test_a_state_dict_has_one_layout(self):
        self.write_state({"fc.weight": (3, 3), "fc.bias": (3,)})
        self.assertIn("-> fc/kernel", self.lockstep("import", self.file, "--show").out)
        self.assert_one_error(self.lockstep("import", self.file, "--layout", "lockstep", "--show", code=2), 2, "always has the layout of PyTorch")

    def test_checkpoints_of_training_programs(self):
        class Callback:
            pass
        Callback.__module__, Callback.__qualname__ = "__main__", "Callback"
        import __main__
        __main__.Callback = Callback
        self.addCleanup(delattr, __main__, "Callback")

        def prefixed(prefix):
            return lambda state: collections.OrderedDict((prefix + name, tensor) for name, tensor in state.items())
        forms = {
            ("lightning.ckpt", "model."): lambda state: {"epoch": 3, "state_dict": state, "callbacks": {"a": Callback()}, "seen": {1, 2}, "big": 2 ** 200,
                                                         "optimizer_states": [{"state": {0: {"step": 1.5}}}]},
            ("best.pth.tar", "module."): lambda state: {"arch": "resnet18", "state_dict": state, "optimizer": {"param_groups": [{"lr": 0.1}]}},
            ("a.pth", "module.model."): lambda state: {"model_state_dict": state, "loss": 0.25},
            ("compiled.pt", "_orig_mod."): lambda state: state, ("without.ending", ""): lambda state: state}
        for (name, prefix), wrap in forms.items():
            self.file = self.folder / name
            self.write_state(self.SHAPES, lambda state: wrap(prefixed(prefix)(state)))
            shown = self.lockstep("import", self.file, "--show").out
            self.assertEqual(re.findall(r"-> (\S+)", shown), ["fc/kernel", "fc/bias"], name)
            self.assertEqual(f"all names begin with '{prefix}', which is left out" in shown, prefix != "", shown)
            self.assertEqual("of the file is read; the rest of the checkpoint is left out" in shown, "ckpt" in name or ".pth" in name, shown)

    def test_classes_in_a_plain_state_dict_are_refused(self):
        state, storages = state_of(self.SHAPES)
        write_archive(self.file, pickled({**state, "extra": pathlib.PurePosixPath("a")}), storages)
        self.assert_one_error(self.lockstep("import", self.file, "--show", code=3), 3, r"it names pathlib\.PurePosixPath")


    def test_files_of_pytorch_before_1_6_are_named(self):
        self.file.write_bytes(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")
        result = self.lockstep("import", self.file, "--show", code=3)
        self.assert_one_error(result, 3, r"has the format of PyTorch before 1\.6\n  Write it again: torch\.save\(torch\.load")

    def test_other_types_become_float32(self):
        values = [0.5, -2.0, 1.0, 3.0, 0.25, 8.0]
        header, data = {}, b""
        for name, kind, letter in (("fc.weight", "F16", "e"), ("fc.bias", "F64", "d")):
            numbers = values if name == "fc.weight" else values[:2]
            part = struct.pack(f"<{len(numbers)}{letter}", *numbers)
            header[name] = {"dtype": kind, "shape": [2, 3] if name == "fc.weight" else [2], "data_offsets": [len(data), len(data) + len(part)]}
            data += part
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self.file = self.folder / "half.safetensors"
        self.file.write_bytes(struct.pack("<Q", len(text)) + text + data)
        config = self.write_config("global_avg_pool", "dense: {name: fc, units: 2}")
        self.assertIn("2 tensors of float16, float64 become float32", self.lockstep("import", self.file, "--like", config, "--output", self.output).out)
        result = self.train("warm", config=config, steps=1, sets=[f"warm_start.checkpoint={self.output}"], code=0)
        self.assertIn("2 variables taken", result.err)

    def test_imported_weights_fit_any_shards(self):
        config = self.write_config("global_avg_pool", "dense: {name: fc, units: 5}")
        text = config.read_text(encoding="utf-8").replace("labels: y.npy", "labels: y.npy, eval: {}")
        config.write_text(text, encoding="utf-8")
        self.write_state(self.SHAPES)
        self.lockstep("import", self.file, "--like", config, "--output", self.output)
        for shards in (1, 3):
            run = self.folder / f"run{shards}"
            self.train(run.name, config=config, steps=1, sets=[f"shards={shards}"])
            losses = [json.loads(self.lockstep("evaluate", run, "--checkpoint", self.output, ranks=ranks).out)["loss"] for ranks in (1, shards)]
            self.assertEqual(losses[0], losses[1])
            self.lockstep("predict", run, "--checkpoint", self.output, "--input", self.folder / "x.npy", "--output", self.folder / "p.csv")
        self.assertRegex(self.lockstep("inspect", self.output).out, r"shards +any")


class Resnets(ImportTest):
    def test_ready_maps_give_the_outputs_of_torchvision(self):
        """The outputs are those of torchvision (tests/reference/torchvision_resnets.py); the run has 3 shards, the file none."""
        for depth, wanted in json.loads(OUTPUTS.read_text(encoding="utf-8")).items():
            self.write_state(resnet_shapes(int(depth), RESNET_WIDTH, RESNET_CLASSES))
            config = self.write_config(f"resnet{depth}: {{name: body, classes: {RESNET_CLASSES}, filters: {RESNET_WIDTH}}}")
            self.lockstep("import", self.file, "--like", config, "--map", "torchvision", "--output", self.output)
            run = self.folder / f"run{depth}"
            self.train(run.name, config=config, steps=1)
            self.lockstep("predict", run, "--checkpoint", self.output, "--input", self.folder / "x.npy", "--layer", "body/logits", "--output",
                          self.folder / "got.npy")
            got = rows_of(self.folder / "got.npy", RESNET_CLASSES)
            largest = max(abs(value) for row in wanted for value in row)
            self.assertGreater(max(row[0] for row in wanted) - min(row[0] for row in wanted), 0.01 * largest, "outputs depend on the sample")
            error = max(abs(a - b) for ours, theirs in zip(got, wanted, strict=True) for a, b in zip(ours, theirs, strict=True)) / largest
            self.assertTrue(error <= 1e-5, f"resnet{depth}: {error}")

    def test_the_page_about_fine_tuning(self):
        page = (SOURCE / "docs" / "fine_tuning.md").read_text(encoding="utf-8")
        head, whole = re.findall(r"(?s)```yaml\n(.*?)```", page)
        small = head.replace("{classes: 5}", f"{{classes: 2, filters: {RESNET_WIDTH}}}").replace("size: 224", "size: 32").replace("epochs: 5", "epochs: 40")
        self.assertNotEqual(small, head)
        (self.folder / "head.yaml").write_text(small, encoding="utf-8")
        (self.folder / "all.yaml").write_text(whole, encoding="utf-8")
        for number in range(20):
            for kind, colour in (("daisy", (250 - number, 200, 20)), ("rose", (200, 20, 250 - number))):
                path = self.folder / "flowers" / kind / f"{number:04}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png(*colour, 32))
        self.file = self.folder / "resnet18.pt"
        self.write_state(resnet_shapes(18, RESNET_WIDTH, 1000))
        commands = [line for block in re.findall(r"(?s)```sh\n(.*?)```", page) for line in block.splitlines()]
        self.assertEqual([line.split()[1] for line in commands], ["import", "train", "train", "evaluate"])
        results = []
        for line in commands:
            words = [word.strip('"') for word in line.split()[1:]]
            results.append(self.lockstep(*words, cwd=self.folder))
        self.assertIn("100 tensors written to resnet18.h5\nnot used: fc.weight, fc.bias\n", results[0].out)
        self.assertIn("100 variables taken", results[1].err)
        self.assertIn("102 variables taken", results[2].err)
        # Frozen means frozen: the first run has the file's bits in all layers but the last.
        diff = self.start("checkpoint", "diff", self.output.with_name("resnet18.h5"), self.folder / "runs" / "head").wait()
        self.assertNotRegex(diff.out, r"variables/resnet18/(?!logits)\S+: \d+ value")
        self.assertGreater(json.loads(results[3].out)["accuracy"], 0.8)
        without = [word.strip('"') for word in commands[0].split()[1:]]
        place = without.index("--variables")
        result = self.lockstep(*without[:place], *without[place + 2:], cwd=self.folder, code=3)
        self.assertIn("resnet18/logits/kernel (is [64, 2] in the model, and fc.weight is [64, 1000])", result.err)


if __name__ == "__main__":
    main()
