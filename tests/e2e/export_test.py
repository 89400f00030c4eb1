# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep export and import: safetensors by bytes, by the Python package and back; hostile files are refused."""
import ast
import json
import struct
import subprocess

from lockstep_run import LockstepTest, main, python_with, python_with_h5py

READ_HDF5 = """
import h5py, sys
found = {}
with h5py.File(sys.argv[1], "r") as file:
    file["variables"].visititems(lambda name, item: found.update({name: (item.shape, item[()].tobytes().hex())})
                                 if isinstance(item, h5py.Dataset) else None)
print(found)
"""
READ_SAFETENSORS = """
import sys
from safetensors import safe_open
with safe_open(sys.argv[1], "np") as file:
    print({name: (file.get_tensor(name).shape, file.get_tensor(name).tobytes().hex()) for name in file.keys()})
"""
WRITE_SAFETENSORS = """
import sys
import numpy as np
from safetensors.numpy import save_file
save_file({"dense.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "dense.bias": np.float32([7, 8]),
           "norm.running_mean": np.float32([1]), "norm.weight": np.float32([2]),
           "norm.num_batches_tracked": np.array(5, dtype=np.int64)}, sys.argv[1])
"""


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def parsed(path):
    """(metadata, {name: (dtype, shape, bytes)}) of a file, by the format's description alone."""
    contents = path.read_bytes()
    length, = struct.unpack("<Q", contents[:8])
    header = json.loads(contents[8:8 + length])
    data = contents[8 + length:]
    metadata = header.pop("__metadata__")
    return metadata, {name: (entry["dtype"], tuple(entry["shape"]), data[slice(*entry["data_offsets"])])
                      for name, entry in header.items()}


class ExportTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.train_once("run", steps=2, sets=["average={ema: {decay: 0.5}}"])
        self.run_dir = self.folder / "run"
        self.file = self.folder / "model.safetensors"

    def variables(self, path):
        """{name: (shape, bytes)} of a checkpoint's variables, by h5py."""
        if python_with_h5py() is None:
            self.skipTest("no Python has h5py")
        return {name: (tuple(shape), bytes.fromhex(text)) for name, (shape, text) in self.read_by_h5py(READ_HDF5, path).items()}

    def test_bytes_are_those_of_the_checkpoint(self):
        self.lockstep("export", self.run_dir, "--output", self.file)
        self.lockstep("export", self.run_dir, "--output", self.folder / "plain.safetensors", "--without-averages")
        metadata, averaged = parsed(self.file)
        self.assertEqual(metadata["global_step"], "2")
        self.assertEqual(metadata["digest"], self.digest("run"))
        self.assertIn("layers:", metadata["config"])
        _, plain = parsed(self.folder / "plain.safetensors")
        self.assertNotEqual(averaged["conv1/kernel"], plain["conv1/kernel"], "averages are other values")
        for tensors, more in ((averaged, ()), (plain, ("--without-averages",))):
            self.lockstep("export", self.run_dir, "--output", self.folder / "weights.h5", "--format", "hdf5", *more)
            wanted = self.variables(self.folder / "weights.h5")
            self.assertGreater(len(wanted), 10)
            self.assertEqual({name: (shape, data) for name, (_, shape, data) in tensors.items()}, wanted)

    def test_header_is_padded_and_the_file_is_the_same_each_time(self):
        self.lockstep("export", self.run_dir, "--output", self.file)
        self.lockstep("export", self.run_dir, "--output", self.folder / "again.safetensors")
        contents = self.file.read_bytes()
        self.assertEqual(struct.unpack("<Q", contents[:8])[0] % 8, 0)
        self.assertEqual(contents, (self.folder / "again.safetensors").read_bytes())

    def test_an_exported_file_comes_back_in_both_layouts(self):
        weights, back = self.folder / "weights.h5", self.folder / "back.h5"
        self.lockstep("export", self.run_dir, "--output", weights)
        for layout in ("lockstep", "pytorch"):
            self.lockstep("export", self.run_dir, "--output", self.file, "--layout", layout)
            self.lockstep("import", self.file, "--layout", layout, "--like", self.run_dir, "--output", back)
            self.lockstep("checkpoint", "diff", weights, back)
        _, tensors = parsed(self.file)
        _, shape, data = tensors["conv2.weight"]
        ours_shape, ours = self.variables(weights)["conv2/kernel"]
        self.assertEqual(ours_shape, (3, 3, 32, 64))
        self.assertEqual(shape, (64, 32, 3, 3))
        theirs, ours = struct.unpack(f"<{64 * 32 * 9}f", data), struct.unpack(f"<{64 * 32 * 9}f", ours)
        for o, i, y, x in ((0, 0, 0, 1), (5, 3, 2, 0), (63, 31, 1, 2)):
            self.assertEqual(theirs[((o * 32 + i) * 3 + y) * 3 + x], ours[((y * 3 + x) * 32 + i) * 64 + o])

    def test_a_new_run_starts_from_an_imported_file(self):
        self.lockstep("export", self.run_dir, "--output", self.file, "--layout", "pytorch")
        self.lockstep("import", self.file, "--layout", "pytorch", "--output", self.folder / "weights.h5")
        result = self.train("warm", steps=1, sets=[f"warm_start.checkpoint={self.folder / 'weights.h5'}"])
        self.assertRegex(result.err, "17 variables taken")

    def test_the_python_package_reads_and_writes_the_same(self):
        python = python_with("safetensors.numpy")
        if python is None:
            self.skipTest("no Python has safetensors and NumPy; LOCKSTEP_TEST_PYTHON may name one")
        self.lockstep("export", self.run_dir, "--output", self.file)
        out = subprocess.run([python, "-c", READ_SAFETENSORS, self.file], check=True, capture_output=True, text=True).stdout
        self.assertEqual({name: (shape, bytes.fromhex(data)) for name, (shape, data) in ast.literal_eval(out).items()},
                         {name: (shape, data) for name, (_, shape, data) in parsed(self.file)[1].items()})
        theirs = self.folder / "theirs.safetensors"
        subprocess.run([python, "-c", WRITE_SAFETENSORS, theirs], check=True)
        self.lockstep("import", theirs, "--layout", "pytorch", "--output", self.folder / "theirs.h5")
        self.assertEqual(self.variables(self.folder / "theirs.h5"), {
            "dense/kernel": ((3, 2), struct.pack("<6f", 0, 3, 1, 4, 2, 5)), "dense/bias": ((2,), struct.pack("<2f", 7, 8)),
            "norm/moving_mean": ((1,), struct.pack("<f", 1)), "norm/gamma": ((1,), struct.pack("<f", 2))})

    def test_the_layout_is_the_one_that_the_file_says(self):
        """A square kernel has the same shape both ways: nothing but the file can tell."""
        values = struct.pack("<4f", 1, 2, 3, 4)
        forms = [("fc.weight", None, (1, 3, 2, 4)), ("fc/kernel", None, (1, 2, 3, 4)), ("fc.weight", {"format": "pt"}, (1, 3, 2, 4)),
                 ("fc.weight", {"layout": "pytorch", "producer": "lockstep"}, (1, 3, 2, 4)), ("fc/kernel", {"layout": "lockstep"}, (1, 2, 3, 4))]
        for name, metadata, wanted in forms:
            header = {"__metadata__": metadata} if metadata else {}
            self.file.write_bytes(safetensors({**header, name: {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}, values))
            self.lockstep("import", self.file, "--output", self.folder / "x.h5")
            self.assertEqual(self.variables(self.folder / "x.h5"), {"fc/kernel": ((2, 2), struct.pack("<4f", *wanted))}, (name, metadata))
        result = self.lockstep("import", self.file, "--layout", "pytorch", "--show", code=2)
        self.assert_one_error(result, 2, "the file says that its layout is lockstep")

    def test_a_mapping_is_proposed_and_applied(self):
        self.lockstep("export", self.run_dir, "--output", self.file, "--layout", "pytorch")
        _, tensors = parsed(self.file)
        header, data = {}, b""
        for name, (dtype, shape, values) in tensors.items():
            name = name.replace("conv2.", "features.3.").replace("logits.", "head.")
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
            data += values
        header["extra"] = {"dtype": "F32", "shape": [], "data_offsets": [len(data), len(data) + 4]}
        self.file.write_bytes(safetensors(header, data + bytes(4)))
        arguments = ["import", self.file, "--layout", "pytorch", "--like", self.run_dir]
        back = self.folder / "back.h5"
        result = self.lockstep(*arguments, "--output", back, code=3)
        self.assertRegex(result.err, r"3 variables of the model get no tensor: conv2/kernel \(the file has no tensor conv2/kernel\)")
        shown = self.lockstep(*arguments, "--show").out
        self.assertIn("conv2/kernel: features.3.weight", shown)
        proposed = shown.split("A mapping for --map:\n")[1]
        self.assertNotIn("extra", proposed)
        self.assertIn("not used: extra", shown)
        (self.folder / "map.yaml").write_text(proposed)
        self.lockstep(*arguments, "--map", self.folder / "map.yaml", "--output", back)
        self.lockstep("export", self.run_dir, "--output", self.folder / "weights.h5")
        self.lockstep("checkpoint", "diff", self.folder / "weights.h5", back)
        (self.folder / "map.yaml").write_text("conv2/: features/3/\nlogits/: head/\n")
        self.lockstep(*arguments, "--map", self.folder / "map.yaml", "--output", back)
        self.lockstep("checkpoint", "diff", self.folder / "weights.h5", back)
        (self.folder / "map.yaml").write_text("conv20/: features/3/\n")
        self.assertIn("'conv20/' matches no variable of the model", self.lockstep(*arguments, "--map", self.folder / "map.yaml", "--show", code=2).err)

    def test_runs_and_weights_of_lockstep_need_no_import(self):
        self.lockstep("export", self.run_dir, "--output", self.folder / "weights.h5")
        for path in (self.run_dir, self.folder / "weights.h5"):
            self.assert_one_error(self.lockstep("import", path, "--show", code=2), 2, "need no import: warm_start.checkpoint takes them")

    def test_one_process_writes_under_a_launcher(self):
        result = self.lockstep("export", self.run_dir, "--output", self.file, ranks=2)
        self.assertEqual(result.out.count("written to"), 1)
        parsed(self.file)

    def test_hostile_files_are_refused(self):
        one = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
        most = 2 ** 63 - 1
        hostile = {
            "shorter than 8 bytes": b"\x08\0\0",
            "is longer than 100000000": safetensors(b"", length=2 ** 63),
            "longer than the file": safetensors({"a": one}, length=10 ** 6),
            "not a JSON object": safetensors(b"[1, 2]"),
            "its header is not": safetensors(b"{" * 100000),
            "overlaps": safetensors({"a": one, "b": dict(one, data_offsets=[2, 6])}, bytes(6)),
            "'b' overlaps": safetensors({"a": one, "b": one}, bytes(4)),
            "unused bytes": safetensors({"a": dict(one, data_offsets=[4, 8])}, bytes(8)),
            "bytes follow the last tensor": safetensors({"a": one}, bytes(5)),
            "ends at byte": safetensors({"a": dict(one, shape=[1000], data_offsets=[0, 4000])}, bytes(4)),
            "too large": safetensors({"a": dict(one, shape=[most, most])}, bytes(4)),
            "by its shape and not those": safetensors({"a": dict(one, shape=[2])}, bytes(4)),
            "of \\[4, 0\\)": safetensors({"a": dict(one, data_offsets=[4, 0])}, bytes(4)),
            "an offset is not": safetensors({"a": dict(one, data_offsets=[-4, 0])}, bytes(4)),
            "an extent is not": safetensors({"a": dict(one, shape=[-1])}, bytes(4)),
            "more than 8 axes": safetensors({"a": dict(one, shape=[1] * 9)}, bytes(4)),
            "the dtype 'F99'": safetensors({"a": dict(one, dtype="F99")}, bytes(4)),
            "exactly dtype, shape": safetensors({"a": {"dtype": "F32"}}, bytes(4)),
            "occurs twice": safetensors(b'{"a":' + json.dumps(one).encode() + b',"a":' + json.dumps(one).encode() + b"}", bytes(4)),
            "is not a text": safetensors({"__metadata__": {"a": 1}}),
        }
        for message, contents in hostile.items():
            self.file.write_bytes(contents)
            result = self.lockstep("import", self.file, "--show", code=3)
            self.assertRegex(result.err, message)
        self.file.write_bytes(safetensors({"a//b": one}, bytes(4)))
        self.assertIn("not a name of a variable",
                      self.lockstep("import", self.file, "--output", self.folder / "x.h5", code=3).err)
        self.assertFalse((self.folder / "x.h5").exists())


if __name__ == "__main__":
    main()
