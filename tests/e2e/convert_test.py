# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep convert: the values arrive with their bits and types, by any reader, ranks and threads; interrupted, resumed; mistakes."""
import hashlib
import os
import re
import signal
import subprocess
import unittest

from lockstep_run import DIGITS, DIGITS_DATA, PROGRAM, SOURCE, LockstepTest, main, python_with_h5py, wait_until

PYTHON = python_with_h5py()

# Features of every type, in chunks that are no multiple of anything, and targets of three columns.
MAKE_TYPES = """
import sys, h5py, numpy
random = numpy.random.default_rng(1)
with h5py.File(sys.argv[1], "w") as file:
    for name in ("uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64"):
        values = random.integers(0, 100, (57, 3, 5)).astype(name)
        if name.startswith("float"): values = values / numpy.array(3, dtype=name)
        file.create_dataset(name, data=values, chunks=(10, 3, 5))
    file["targets"] = random.random((57, 3)).astype("float32")
    file["classes"] = numpy.arange(57, dtype="int64") % 4
"""
ALL_TYPES = ("uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64")

SYNTHETIC = """
data:
  format: synthetic
  samples: 4000
  shape: [16, 16, 3]
  labels: random
"""


@unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
class ConvertTest(LockstepTest):
    def python(self, code, *arguments):
        done = subprocess.run([PYTHON, "-c", "import sys, h5py, numpy\n" + code, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def convert(self, config, output, *more, ranks=None, code=0):
        return self.lockstep("convert", config, self.folder / output, *more, ranks=ranks, code=code)

    def section(self, result):
        """The YAML that the command prints, as a configuration file of its own."""
        text = result.out[result.out.index("\ndata:") + 1:]
        path = self.folder / f"read{len(list(self.folder.glob('read*.yaml')))}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def contents(self, pattern):
        """Hashes of files: unittest would compare long bytes for minutes to describe a difference."""
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(self.folder.glob(pattern)) if path.is_file()}

    def fails(self, code, pattern, *arguments, ranks=None):
        self.assert_one_error(self.start("convert", *arguments, ranks=ranks).wait(), code, pattern)
        self.assertEqual([path.name for path in self.folder.glob(".*") if "tmp" in path.name], [])

    def test_training_has_the_same_bits_from_every_format(self):
        plain = {"steps": 12, "sets": ["data.eval=null"]}
        self.train("csv", **plain)
        expected = self.digest("csv")
        for output, more in (("d.h5", ("--gzip", 1, "--fletcher32")), ("d.npz", ()), ("d.tfrecord", ()), ("d.tsv", ()), ("s.npy", ("--shards", 3))):
            with self.subTest(output=output, more=more):
                section = self.section(self.convert(DIGITS, output, *more)).read_text(encoding="utf-8")
                whole = re.sub(r"(?s)\ndata:.*?\n(?=model:)", "\n" + section, DIGITS.read_text(encoding="utf-8"))
                config = self.folder / "digits.yaml"
                config.write_text(whole, encoding="utf-8")
                self.train(f"run-{output}", config=config, steps=12)
                self.assertEqual(self.digest(f"run-{output}"), expected)

    def test_types_and_labels_stay_and_python_reads_the_values(self):
        self.python(MAKE_TYPES, self.folder / "all.h5")
        config = self.folder / "all.yaml"
        for name, labels in [(name, "targets" if name == "float32" else "classes") for name in ALL_TYPES]:
            config.write_text(f"data: {{format: hdf5, path: all.h5, features: {name}, labels: {labels}}}\n", encoding="utf-8")
            with self.subTest(type=name):
                self.convert(config, f"{name}.h5", "--chunk", 7, "--gzip", 6, "--features", "set/x", "--labels", "y")
                self.convert(config, f"{name}.npz", "--features", "x")
                backs = name in ("int16", "float16", "float32")  # through records, and back to HDF5
                if backs:
                    records = self.convert(config, f"{name}.tfrecord", "--features", "x")
                    self.convert(self.section(records), f"back-{name}.h5", "--features", "x")
                self.python("""
folder, name, labels, backs = sys.argv[1:]
all = h5py.File(folder + "/all.h5")
is_class = labels == "classes"
def same(a, b, exactly):
    assert a.dtype == exactly and a.shape == b.shape and (a[...] == b[...]).all(), (a.dtype, a.shape, b.dtype, b.shape)
for path, x, y in ((f"/{name}.h5", "set/x", "y"), (f"/back-{name}.h5", "x", "labels"))[:1 + (backs == "True")]:
    with h5py.File(folder + path) as file:
        same(file[x], all[name], all[name].dtype)
        same(file[y], all[labels], "int32" if is_class else "float32")
with h5py.File(folder + f"/{name}.h5") as file:
    assert file["set/x"].chunks == (7, 3, 5) and file["set/x"].compression == "gzip" and file["set/x"].compression_opts == 6
    assert file["set/x"].shuffle == (file["set/x"].dtype.itemsize > 1)
npz = numpy.load(folder + f"/{name}.npz")
same(npz["x"], all[name], all[name].dtype)
same(npz["labels"], all[labels], "int32" if is_class else "float32")
""", self.folder, name, labels, backs)

    def test_images_become_bytes_with_the_names_of_their_classes(self):
        make = SOURCE / "examples" / "generate_digit_images.py"
        subprocess.run([PYTHON, make, self.folder / "digits", "--every", "9"], check=True, capture_output=True, timeout=60)
        config = self.folder / "images.yaml"
        config.write_text("data: {format: images, path: digits/train, size: [12, 8], channels: 1, scale: 0.5,"
                          " eval: {path: digits/test}}\n", encoding="utf-8")
        result = self.convert(config, "images.h5")
        self.assertRegex(result.out, r"samples of 12x8x1 uint8 written to .*images\.h5: .* MB/s, read back and compared")
        self.assertIn("scale: 0.5", result.out, "the samples are as they are stored, so scale is still to be applied")
        self.python("""
with h5py.File(sys.argv[1]) as file:
    assert file["features"].dtype == "uint8" and file["features"].shape[1:] == (12, 8, 1)
    names = [name.decode() for name in file["labels"].attrs["class_names"]]
    assert names == sorted("zero one two three four five six seven eight nine".split()), names
    assert sorted(set(file["labels"][...])) == list(range(10)) and file["labels"].dtype == "int32"
""", self.folder / "images.h5")
        npz = self.convert(config, "images.npz")
        self.assertRegex(self.lockstep("data", self.section(npz)).out, r"\n    zero +\d+ ", "so does the reader npy")
        self.assertEqual((self.folder / "images.classes.txt").read_text().split(), sorted("zero one two three four five six seven eight nine".split()))
        shown = [self.lockstep("data", which).out for which in (config, self.section(result))]
        values = [re.search(r"values .*", text).group(0) for text in shown]
        self.assertEqual(*values, "the same range, mean and deviation")
        self.assertRegex(shown[1], r"\n    zero +\d+ ", "the reader knows the names of the classes")
        # Transforms and scale: float32, as training gets them.
        result = self.convert(config, "small.npz", "--transforms", "--set", "data.transforms=[resize: {size: [4, 4]}]", "--part", "eval")
        self.assertNotIn("scale", result.out)
        self.assertNotIn("transforms", result.out)
        self.python("x = numpy.load(sys.argv[1])['features']; assert x.dtype == 'float32' and x.shape[1:] == (4, 4, 1) and 0 < x.max() <= 127.5, (x.shape, x.max())",
                    self.folder / "small.npz")

    def test_the_parts_of_a_random_split_are_all_samples(self):
        sets = ["--set", "data.train=null", "--set", "data.eval={}", "--set", "data.holdout=0.25"]
        for part, shards in (("train", 2), ("eval", 1)):
            self.convert(DIGITS, f"{part}.npy", "--part", part, "--shards", shards, *sets)
        self.python("""
import gzip
folder, source = sys.argv[1:]
rows = numpy.loadtxt(gzip.open(source, "rt"), delimiter=",")
parts = []
for name in ("train-00000-of-00002", "train-00001-of-00002", "eval"):
    x, y = numpy.load(f"{folder}/{name}.npy"), numpy.load(f"{folder}/{name}.labels.npy")
    parts.append(numpy.column_stack([x.reshape(len(x), -1), y]))
assert [len(part) for part in parts] == [674, 674, 449], [len(part) for part in parts]
assert not (parts[2] == rows[:449]).all()
found = numpy.concatenate(parts)
assert (found[numpy.lexsort(found.T)] == rows[numpy.lexsort(rows.T)]).all()
""", self.folder, DIGITS_DATA)

    def test_many_files_become_shards_of_other_chunks(self):
        self.python("""
random = numpy.random.default_rng(3)
for i, rows in enumerate((5, 1, 18)):
    with h5py.File(f"{sys.argv[1]}/day{i}.h5", "w") as file:
        file.create_dataset("x", data=random.integers(0, 200, (rows, 8, 4, 4), dtype="u1"), chunks=(min(rows, 3), 8, 4, 4), compression="gzip")
        file["y"] = random.random((rows, 4)).astype("f4")
""", self.folder)
        config = self.folder / "days.yaml"
        config.write_text("data: {format: hdf5, path: 'day*.h5', features: x, labels: y, layout: channels_first}\n", encoding="utf-8")
        result = self.convert(config, "all.h5", "--shards", 5, "--chunk", 2, ranks=2)
        self.assertIn("all-*-of-00005.h5", result.out)
        self.python("""
read = lambda pattern, name: numpy.concatenate([h5py.File(path)[name][...] for path in sorted(__import__("glob").glob(sys.argv[1] + pattern))])
assert (read("/all-*.h5", "features") == numpy.moveaxis(read("/day*.h5", "x"), 1, -1)).all()
assert (read("/all-*.h5", "labels") == read("/day*.h5", "y")).all()
assert [len(h5py.File(f"{sys.argv[1]}/all-0000{i}-of-00005.h5")["labels"]) for i in range(5)] == [4, 5, 5, 5, 5]
""", self.folder)

    def test_bytes_depend_on_neither_ranks_nor_threads(self):
        config = self.folder / "synthetic.yaml"
        config.write_text(SYNTHETIC, encoding="utf-8")
        # 500 samples, some of which are chosen at random: read in the order of a permutation.
        some = ["--set", "data.samples=500", "--set", "data.holdout=0.2"]
        for ending, more in ((".h5", ["--gzip", 1]), (".h5", []), (".tfrecord", ["--gzip", 1]), (".npy", some)):
            expected = None
            some_ranks = ((None, 1), (None, 2), (2, 1), (3, 2), (4, 1)) if more == ["--gzip", 1] and ending == ".h5" else ((None, 1), (3, 2))
            for ranks, threads in some_ranks:
                with self.subTest(ending=ending, more=more, ranks=ranks, threads=threads):
                    arguments = ["--shards", 5, "--threads", threads, "--force", *more]
                    self.convert(config, "out" + ending, *arguments, ranks=ranks)
                    found = self.contents("out*" + ending)
                    self.assertEqual(len(found), 10 if ending == ".npy" else 5)
                    expected = expected or found
                    self.assertEqual(found, expected)
        self.assertEqual(self.contents(".out*"), {}, "no records are left")

    def pictures(self, folder):
        return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}

    def test_a_set_becomes_a_folder_of_images(self):
        """PNG has the values of the source, by class; the same files on any ranks, also after a kill."""
        config = self.folder / "synthetic.yaml"
        config.write_text(SYNTHETIC.replace("4000", "1200") + "  dtype: uint8\n", encoding="utf-8")
        self.convert(config, "source.npz")
        result = self.convert(config, "flowers/", "--to", "png")
        self.assertRegex(result.out, r"1200 samples of 16x16x3 uint8 written to .*flowers: .* MB/s, read back and compared")
        back = self.convert(self.section(result), "back.npz")
        self.assertRegex(back.out, "1200 samples of 16x16x3 uint8")
        self.python("""
source, back = numpy.load(sys.argv[1]), numpy.load(sys.argv[2])
order = numpy.argsort(source["labels"], kind="stable")
assert (back["labels"] == source["labels"][order]).all() and (back["features"] == source["features"][order]).all()
""", self.folder / "source.npz", self.folder / "back.npz")
        files = self.pictures(self.folder / "flowers")
        self.assertEqual(len(files), 1200)
        self.assertRegex(" ".join(files), r"00003/\d{4}\.png")
        self.assertEqual(self.contents(".*"), {})
        # Interrupted on two ranks, one finished part damaged, continued on three.
        arguments = ["convert", config, self.folder / "again", "--to", "png", "--threads", 1]
        job = self.start(*arguments, ranks=2)
        records = self.folder / ".again.convert"
        wait_until((records / "00001").exists, 60, "a part")
        job.kill()
        self.assertFalse((self.folder / "again").exists())
        damaged = records / "images" / (records / "images-00001.txt").read_text().split("\n")[5].split(" ")[2]
        damaged.write_bytes(damaged.read_bytes()[:-1])
        result = self.lockstep(*arguments, ranks=3)
        self.assertEqual(self.pictures(self.folder / "again"), files)
        self.assertFalse(records.exists())
        # JPEG: sizes by quality, grey as well as colour; labels with names; no labels.
        sizes = []
        for quality in (30, 95):
            self.convert(config, f"jpeg{quality}", "--to", "jpeg", "--quality", quality, "--set", "data.samples=40")
            sizes.append(sum(path.stat().st_size for path in (self.folder / f"jpeg{quality}").rglob("*.jpg")))
        self.assertGreater(sizes[1], 1.5 * sizes[0])
        self.python("""
with h5py.File(sys.argv[1], "w") as file:
    file["x"] = numpy.arange(6 * 8 * 4 * 1).reshape(6, 8, 4, 1).astype("f4")
    file["y"] = numpy.array(["b", "a", "c", "b", "a", "b"], dtype=object).astype(h5py.string_dtype())
""", self.folder / "grey.h5")
        config.write_text("data: {format: hdf5, path: grey.h5, features: x, labels: y, classes: [b, a, c, none]}\n", encoding="utf-8")
        result = self.convert(config, "grey", "--to", "png")
        self.assertEqual(sorted(path.name for path in (self.folder / "grey").iterdir()), ["a", "b", "c", "none"])
        section = self.section(result)
        self.assertIn("channels: 1", section.read_text())
        self.convert(section, "grey.npz")  # in the order of the folders' names
        self.python("f = numpy.load(sys.argv[1]); assert f['labels'].tolist() == [1, 1, 0, 0, 0, 2], f['labels']; assert (f['features'][3].ravel() == numpy.arange(96, 128)).all()",
                    self.folder / "grey.npz")
        result = self.convert(config, "none", "--to", "jpeg", "--set", "data.labels=null", "--set", "data.classes=null", "--set", "data.rows=[0, 3]")
        self.assertEqual(sorted(self.pictures(self.folder / "none")), ["0.jpg", "1.jpg", "2.jpg"])
        self.assertRegex(self.lockstep("data", self.section(result)).out, "3 samples of 8x4x1")
        # Mistakes.
        self.fails(2, "exists already, and is not replaced", config, self.folder / "grey", "--to", "png", "--force")
        self.fails(2, "--quality is for jpeg", config, self.folder / "new", "--to", "png", "--quality", 3)
        self.fails(2, "--shards is for files with many samples", config, self.folder / "new", "--to", "png", "--shards", 3)
        self.fails(2, "samples of 64 are no images", DIGITS, self.folder / "new", "--to", "png", "--set", "data.shape=[64]")
        self.fails(2, r"class '\.\./c' cannot be the name of a folder", config, self.folder / "new", "--to", "png", "--set", "data.labels=null", "--set", "data.labels=y", "--set", "data.classes=[b, a, c, ../c]")
        self.python("f = h5py.File(sys.argv[1], 'a'); f['x'][4, 0, 0, 0] = 0.5", self.folder / "grey.h5")
        self.fails(3, "grey.h5, record 4: has a value that is no whole number from 0 to 255", config, self.folder / "new", "--to", "png")
        self.assertFalse((self.folder / "new").exists())

    def test_an_interrupted_conversion_continues_with_what_is_finished(self):
        config = self.folder / "synthetic.yaml"
        config.write_text(SYNTHETIC.replace("4000", "3600"), encoding="utf-8")
        for ranks in (None, 2):
            arguments = ["convert", config, self.folder / f"out{ranks}.h5", "--shards", 12, "--gzip", 9, "--threads", 1]
            job = self.start(*arguments, ranks=ranks)
            first = self.folder / f"out{ranks}-00000-of-00012.h5"
            wait_until(first.exists, 60, "the first file")
            for pid in [job.process.pid] if ranks is None else list(job.ranks().values()):
                os.kill(pid, signal.SIGTERM)
            result = job.wait()
            self.assertEqual(result.code, 75, str(result))
            self.assertRegex(result.err, r"stopped by signal TERM: \d+ of 12 files are finished. The same command continues")
            files = self.contents(f"out{ranks}-*.h5")
            self.assertLess(len(files), 12)
            self.assertEqual([name for name in self.contents(".*") if "tmp" in name], [])
            # A file that is damaged meanwhile is written again; one that is whole is not.
            kept = [path for path in sorted(self.folder.glob(f"out{ranks}-*.h5"))]
            before = {path: path.stat().st_ino for path in kept}
            kept[0].write_bytes(kept[0].read_bytes()[:-100])
            self.fails(2, "other data, or with other options", config, self.folder / f"out{ranks}.h5", "--shards", 12)
            result = self.lockstep(*arguments, ranks=ranks)
            self.assertRegex(result.out, r"of them were there" if len(kept) > 1 else "3600 samples")
            self.assertEqual(self.contents(kept[0].name)[kept[0].name], files[kept[0].name], "written again")
            for path in kept[1:]:
                self.assertEqual(path.stat().st_ino, before[path], "not written again")
            self.assertFalse((self.folder / f".out{ranks}.h5.convert").exists())
        self.assertEqual(list(self.contents("out2-*.h5").values()), list(self.contents("outNone-*.h5").values()))
        # One file: nothing is left.
        job = self.start("convert", config, self.folder / "single.csv", "--threads", 1, "--set", "data.samples=40000")
        wait_until(lambda: self.open_files(job.process.pid), 60, "the file to be written")
        os.kill(job.process.pid, signal.SIGINT)
        self.assertEqual(job.wait().code, 130)
        self.assertEqual([path.name for path in self.folder.glob("*single*")], [])

    def open_files(self, pid):
        links = []
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                link = os.readlink(f"/proc/{pid}/fd/{name}")
                if str(self.folder) in link and "deleted" in link and os.stat(f"/proc/{pid}/fd/{name}").st_size > 1000000:
                    links.append(link)
        except OSError:
            pass
        return links

    def test_normalised_and_whitened_samples_train_as_their_source_does(self):
        """By the numbers of the training set, also for the evaluation set, on any ranks; without --transforms the options stay."""
        text = DIGITS.read_text(encoding="utf-8").replace("../data/", f"{SOURCE}/data/")
        self.assertIn("  format: csv\n", text)
        config = self.folder / "whitened.yaml"
        config.write_text(text.replace("  format: csv\n", "  format: csv\n  normalize: all\n  whiten: {zca: {epsilon: 0.01}}\n"), encoding="utf-8")
        self.train("source", config=config, steps=6)
        for part, ranks in (("train", 2), ("eval", None)):
            self.convert(config, f"{part}.h5", "--part", part, "--transforms", ranks=ranks)
        converted = self.folder / "converted.yaml"
        model = text[text.index("\nmodel:"):]
        converted.write_text(text[:text.index("data:")] + f"data:\n  format: hdf5\n  features: features\n  labels: labels\n  train: {{path: train.h5}}\n  eval: {{path: eval.h5}}\n{model}",
                             encoding="utf-8")
        self.train("converted", config=converted, steps=6)
        self.assert_same_run("source", "converted")
        printed = self.convert(config, "stored.npz").out
        self.assertRegex(printed, r"normalize: all\n")
        self.assertRegex(printed, r"whiten:\n? *\{?zca")

    def test_one_of_several_inputs(self):
        self.python("""
for name, rows in (("left", 30), ("right", 30)):
    with h5py.File(sys.argv[1] + "/" + name + ".h5", "w") as file:
        file["x"] = numpy.random.default_rng(len(name)).random((rows, 4)).astype("f4")
        if name == "right": file["y"] = numpy.arange(rows) % 3
""", self.folder)
        config = self.folder / "two.yaml"
        config.write_text("data:\n  format: hdf5\n  features: x\n  take: 20\n  inputs: {left: {path: left.h5}, right: {path: right.h5, labels: y, scale: 2}}\n", encoding="utf-8")
        self.fails(2, r"several inputs or targets \(left, right\).*\n.*--input NAME", config, self.folder / "out.h5")
        self.fails(2, "no input or target is named 'middle'", config, self.folder / "out.h5", "--input", "middle", ranks=2)
        self.convert(config, "left-only.h5", "--input", "left")
        right = self.convert(config, "right-only.h5", "--input", "right", ranks=2)
        self.assertRegex(right.out, r"scale: 2")
        self.python("""
for name in ("left", "right"):
    source, copy = h5py.File(f"{sys.argv[1]}/{name}.h5"), h5py.File(f"{sys.argv[1]}/{name}-only.h5")
    assert numpy.array_equal(copy["features"], source["x"][:20]), name
    assert ("labels" in copy) == (name == "right"), list(copy)
""", self.folder)

    def test_mistakes(self):
        out = self.folder / "out.h5"
        self.fails(2, "no folder", DIGITS, self.folder / "none" / "out.h5")
        self.fails(2, "--gzip is for hdf5", DIGITS, self.folder / "out.npz", "--gzip", 1)
        self.fails(2, "the ending .parquet names no format", DIGITS, self.folder / "out.parquet")
        self.fails(2, "1500 samples cannot be divided into 1501", DIGITS, out, "--shards", 1501, ranks=2)
        out.write_text("mine")
        self.fails(2, "exists already", DIGITS, out, ranks=2)
        self.assertEqual(out.read_text(), "mine")
        self.convert(DIGITS, "out.h5", "--force")
        config = self.folder / "self.yaml"
        config.write_text("data: {format: hdf5, path: out.h5, features: features}\n", encoding="utf-8")
        self.fails(2, "also an input", config, out, "--force")
        self.fails(2, "no evaluation set", config, self.folder / "new.h5", "--part", "eval")
        # Whole numbers as targets become class indices in a file without types: found when it is read back.
        self.python("f = h5py.File(sys.argv[1], 'w'); f['x'] = numpy.ones((4, 2)); f['y'] = numpy.float32([0, 1, 2, 3])", self.folder / "whole.h5")
        config.write_text("data: {format: hdf5, path: whole.h5, features: x, labels: y}\n", encoding="utf-8")
        self.fails(3, "another kind: class indices, or targets", config, self.folder / "whole.csv")
        self.assertFalse((self.folder / "whole.csv").exists())
        config.write_text("data: {format: hdf5, path: whole.h5, features: x, labels: y, features_: 1}\nmodel: nonsense\n", encoding="utf-8")
        self.fails(2, "unknown key 'features_'", config, self.folder / "whole.npz")

    def test_what_a_killed_command_has_left_is_removed(self):
        dead = subprocess.Popen(["true"])
        dead.wait()
        names = [f".out.h5.tmp-{os.uname().nodename}-{pid}" for pid in (dead.pid, os.getpid())]
        names += [f".other.h5.tmp-{os.uname().nodename}-{dead.pid}", f".out.h5.tmp-elsewhere-{dead.pid}"]
        for name in names:
            (self.folder / name).write_text("half")
        self.convert(DIGITS, "out.h5")
        self.assertEqual([(self.folder / name).exists() for name in names], [False, True, True, True])

    def test_a_full_disk_is_an_error_and_leaves_nothing(self):
        config = self.folder / "synthetic.yaml"
        config.write_text(SYNTHETIC, encoding="utf-8")
        for output in ("full.h5", "full.npz", "full.tfrecord", "full.csv"):
            with self.subTest(output=output):
                # No file may grow beyond 64 KiB: every write fails with EFBIG.
                done = subprocess.run(["bash", "-c", 'trap "" XFSZ; ulimit -f 64; exec "$@"', "bash", PROGRAM, "convert", config,
                                       self.folder / output], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, rf"/{output}: cannot write: File too large")
                self.assertEqual([path.name for path in self.folder.glob("*full*")], [])


if __name__ == "__main__":
    main()
