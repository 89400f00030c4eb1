# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""HDF5 as h5py writes it: a choice of channels in every layout, and labels that are texts."""
import subprocess
import unittest

from lockstep_run import LockstepTest, main, python_with_h5py

PYTHON = python_with_h5py()

# Five channels, first and last; contiguous, and in chunks that divide records, positions or channels.
MAKE = """
import sys, h5py, numpy
random = numpy.random.default_rng(1)
names = numpy.array(["rose", "b\\u00e4r", "Tulip", "a b"], dtype=object)
for part, rows in enumerate((41, 26)):
    with h5py.File(f"{sys.argv[1]}/part{part}.h5", "w") as file:
        last = random.integers(0, 255, (rows, 4, 3, 5))
        first = numpy.moveaxis(last, -1, 1)
        for kind in ("u1", "f2", "f4", "f8"):
            for name, data, chunks, plane in (("last", last, (8, 4, 3, 5), (1, 4, 3, 1)), ("first", first, (8, 5, 4, 3), (1, 1, 4, 3))):
                data = data.astype(kind)
                file[f"{kind}/{name}"] = data
                file.create_dataset(f"{kind}/{name}_gzip", data=data, chunks=chunks, compression="gzip", shuffle=True)
                file.create_dataset(f"{kind}/{name}_parts", data=data, chunks=(3, 2, 2, 1), compression="gzip")
                file.create_dataset(f"{kind}/{name}_planes", data=data, chunks=plane)
        file["flat"] = last[:, 0, 0].astype("f4")
        file["number"] = numpy.arange(rows, dtype="f4")
        y = (numpy.arange(rows) * 7 + part) % 4
        file["index"] = y.astype("i4")
        file["variable"] = names[y].astype(h5py.string_dtype())
        file.create_dataset("chunked", data=names[y].astype(h5py.string_dtype()), chunks=(7,), compression="gzip")
        file["fixed"] = numpy.array([n.encode() for n in names[y]]).reshape(-1, 1)
        file["utf8"] = numpy.array([n.encode() for n in names[y]]).astype(h5py.string_dtype(length=9))
        blanks = h5py.h5t.C_S1.copy(); blanks.set_size(7); blanks.set_strpad(h5py.h5t.STR_SPACEPAD)
        space = h5py.h5s.create_simple((rows,))
        made = h5py.h5d.create(file.id, b"blanks", blanks, space)
        made.write(space, space, numpy.array([n.encode().ljust(7) for n in names[y]]), mtype=blanks)
        empty = names[y].copy(); empty[20] = ""
        file["empty"] = empty.astype(h5py.string_dtype())
        file["two"] = numpy.stack([names[y], names[y]], 1).astype(h5py.string_dtype())
"""

SAME = """
import sys, h5py, numpy
folder, features, channels, result = sys.argv[1:5]
parts = [h5py.File(f"{folder}/part{i}.h5") for i in (0, 1)]
data = numpy.concatenate([part[features][...] for part in parts])
if "first" in features: data = numpy.moveaxis(data, 1, -1)
data = data[..., eval(channels)]
found = numpy.load(result)["features"]
assert found.dtype == data.dtype and found.shape == data.shape and (found == data).all(), (found.shape, data.shape)
"""

CONFIG = """
data:
  format: hdf5
  path: "part*.h5"
  features: f4/last
  labels: %s
  rows: [0, 41]
  eval: {rows: [41, 67]}
model: {layers: [flatten, {dense: {units: 4}}], loss: softmax_cross_entropy}
optimizer: {gradient_descent: {learning_rate: 0.00001}}
train: {batch_size: 8, epochs: 1}
"""
SORTED = "Tulip\na b\nbär\nrose\n"


@unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
class Hdf5Test(LockstepTest):
    def setUp(self):
        super().setUp()
        subprocess.run([PYTHON, "-c", MAKE, self.folder], check=True, timeout=60)

    def config(self, features, **options):
        path = self.folder / "data.yaml"
        text = "".join(f"\n  {key}: {value}" for key, value in options.items())
        path.write_text(f'data:\n  format: hdf5\n  path: "part*.h5"\n  features: {features}{text}\n', encoding="utf-8")
        return path

    def fails(self, code, pattern, features, **options):
        self.assert_one_error(self.start("data", self.config(features, **options)).wait(), code, pattern)

    def test_channels(self):
        for kind, channels, forms in (("u1", "[0, 3]", "last last_gzip first_gzip first_planes"), ("f4", "[3]", "last_parts last_planes first first_parts first_gzip"),
                                      ("f2", "[4, 0, 2]", "first"), ("f8", "[4, 3, 2, 1, 0]", "last")):
            for form in forms.split():
                layout = {"layout": "channels_first"} if form.startswith("first") else {}
                with self.subTest(kind=kind, form=form):
                    # A block of five samples divides chunks.
                    self.lockstep("convert", self.config(f"{kind}/{form}", channels=channels, block_samples=5, **layout), self.folder / "out.npz", "--force")
                    subprocess.run([PYTHON, "-c", SAME, self.folder, f"{kind}/{form}", channels, self.folder / "out.npz"], check=True, timeout=60)
        self.lockstep("convert", self.config("flat", channels="[2, 1]", mean="[1, 2]"), self.folder / "out.npz", "--force")
        subprocess.run([PYTHON, "-c", SAME, self.folder, "flat", "[2, 1]", self.folder / "out.npz"], check=True, timeout=60)

    def test_wrong_channels(self):
        self.fails(3, r"part0.h5, dataset f4/first: has 5 channels, numbered from 0: there is no channel 5 \(extents 41x5x4x3, channels first\)",
                   "f4/first", channels="[0, 5]", layout="channels_first")
        self.fails(3, r"dataset f4/first: has 3 channels(.|\n)*or layout", "f4/first", channels="[3]")
        self.fails(3, "has one number per sample", "number", channels="[0]")
        self.fails(2, "channels: names a channel twice", "f4/last", channels="[1, 1]")
        self.fails(2, "channels: is an empty list", "f4/last", channels="[]")

    def test_texts_as_labels(self):
        """The bits of a run with the indices; the evaluation set and predictions have the classes of training."""
        config = self.folder / "run.yaml"
        order = "[rose, bär, Tulip, a b]"
        for name, labels in (("indices", "index"), ("given", f"variable\n  classes: {order}"), ("variable", "variable"), ("fixed", "fixed"),
                             ("utf8", "utf8"), ("blanks", "blanks"), ("chunked", "chunked")):
            config.write_text(CONFIG % labels, encoding="utf-8")
            self.train(name, config=config, ranks=2 if name == "variable" else None, sets=["data.memory_gb=0.000009", "data.block_samples=5"] if name == "chunked" else [])
            if name == "given":
                self.assert_same_run("indices", "given")
            elif name != "indices":
                self.assertEqual((self.folder / name / "classes.txt").read_text(encoding="utf-8"), SORTED)
                self.assert_same_run("variable", name)
        self.assertNotEqual(self.digest("given"), self.digest("variable"))
        self.lockstep("predict", self.folder / "variable", "--input", self.folder / "part1.h5", "--output", self.folder / "out.csv")
        self.assertRegex((self.folder / "out.csv").read_text(encoding="utf-8"), "Tulip.*a b.*bär.*rose")
        self.assertRegex(self.lockstep("data", config).out, r"Tulip +1[01]\b")

    def test_texts_that_are_no_classes(self):
        self.fails(3, "part0.h5, dataset empty, record 20: the label is an empty text", "number", labels="empty")
        self.fails(3, "dataset two: has several texts per sample", "number", labels="two")
        self.fails(3, r"dataset variable, record 1: the label 'a b' is none of the 2 classes", "number", labels="variable", classes="[rose, Tulip]")
        self.fails(2, "classes: is given, but the labels of .*dataset index are integers", "number", labels="index", classes="[a, b, c, d]")
        self.fails(2, "classes: names a class twice", "number", labels="variable", classes="[a, a]")
        subprocess.run([PYTHON, "-c", "import h5py, sys\nwith h5py.File(sys.argv[1], 'a') as f: y = f['index'][...]; del f['variable']; f['variable'] = y", self.folder / "part1.h5"], check=True, timeout=60)
        self.fails(3, "part1.h5, dataset variable: its labels are integers, but those of .*part0.h5 are texts", "number", labels="variable")


if __name__ == "__main__":
    main()
