# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""data.bad_records: skip: a set with bad records is the set without them, on any ranks, in memory and streamed, killed and resumed."""
import csv
import gzip
import json
import shutil
import subprocess
import sys
import unittest

from lockstep_run import DIGITS_DATA, SOURCE, LockstepTest, main, python_with_h5py, records

CONFIG = """
seed: 3
shards: 4
data:
  %s
model:
  layers: [flatten, {dense: {units: 16}}, relu, {dense: {units: 10}}]
  loss: softmax_cross_entropy
optimizer:
  adam: {learning_rate: 0.003}
train: {batch_size: 64, epochs: 1}
eval: {every_epochs: 1}
"""
JSONL = """format: jsonl
  features: x
  labels: y
  bad_records: skip
  max_bad_records: %s
  scale: 0.0625
  train: {path: %s.jsonl, holdout: 0.2, normalize: channels, balance: classes}
  eval: {path: %s.jsonl, holdout: 0.2, normalize: channels}"""
BAD_LINES = ("no object", '{"x": [1, 2], "y": 0}', '{"x": [%s 1e39], "y": 0}' % ("0, " * 63), '{"y": 1}', "")
# Samples of 64 float32, and blocks of 16 of them.
STREAMED = ("data.memory_gb=0.00006", "data.block_samples=16")
MAKE_HDF5 = """
import gzip, sys, h5py, numpy
rows = numpy.loadtxt(gzip.open(sys.argv[1], "rt"), delimiter=",")[:320]
x, y = rows[:, :-1].astype("f4"), rows[:, -1].astype("i4")
for name, keep in (("dirty", slice(0, 320)), ("clean", numpy.r_[0:64, 96:320])):
    with h5py.File(sys.argv[2] + "/" + name + ".h5", "w") as file:
        data = file.create_dataset("x", data=x[keep], chunks=(32, 64), compression="gzip")
        file["y"] = y[keep]
        place = data.id.get_chunk_info(2)
with h5py.File(sys.argv[2] + "/dirty.h5") as file:
    place = file["x"].id.get_chunk_info(2)
with open(sys.argv[2] + "/dirty.h5", "r+b") as file:
    file.seek(place.byte_offset + place.size // 2)
    file.write(bytes(40))
"""


def digits():
    with gzip.open(DIGITS_DATA, "rt", newline="") as file:
        return [[float(value) for value in row] for row in csv.reader(file)][:400]


class BadRecordsTest(LockstepTest):
    def config(self, name, section):
        config = self.folder / f"{name}.yaml"
        config.write_text(CONFIG % section, encoding="utf-8")
        return config

    def jsonl(self):
        """clean.jsonl, and dirty.jsonl with a bad line before every 20th."""
        clean = [json.dumps({"x": row[:-1], "y": int(row[-1])}) for row in digits()]
        dirty = []
        for i, line in enumerate(clean):
            dirty += ([BAD_LINES[i // 20 % len(BAD_LINES)]] if i % 20 == 0 else []) + [line]
        for name, lines in (("clean", clean), ("dirty", dirty)):
            (self.folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        return [self.config(name, JSONL % (0.05, name, name)) for name in ("clean", "dirty")]

    def kept(self, run):
        with open(self.folder / run / "bad_records.csv", newline="") as file:
            return list(csv.DictReader(file))

    def assert_same(self, expected, actual):
        self.assert_same_run(expected, actual)
        self.assertEqual(records(self.folder / actual, "eval"), records(self.folder / expected, "eval"))

    def test_the_bits_are_those_of_the_set_without_them(self):
        """With a holdout, normalisation and balanced classes, which all count good samples only."""
        clean, dirty = self.jsonl()
        self.train("clean", config=clean, sets=["eval.every_epochs=1"])
        for ranks, threads, sets in ((None, 1, STREAMED), (2, 2, ()), (3, 1, ()), (4, 1, STREAMED)):
            with self.subTest(ranks=ranks, threads=threads, sets=sets):
                run = f"dirty-{ranks}"
                result = self.train(run, config=dirty, ranks=ranks, threads=threads, sets=["eval.every_epochs=1", *sets])
                self.assertRegex(result.err, r"training set: 20 of 420 records are bad and left out: \S*dirty.jsonl, line 1 \(")
                self.assertRegex(result.err, r"evaluation set: 20 of 420 records are bad")
                self.assert_same("clean", run)
                self.assertEqual(self.kept(run), self.kept("dirty-None"))
        kept = self.kept("dirty-None")
        self.assertEqual([row["set"] for row in kept], ["train"] * 20 + ["eval"] * 20)
        self.assertEqual([int(row["sample"]) for row in kept[:20]], [21 * i for i in range(20)])
        self.assertRegex(kept[1]["record"], r"/dirty\.jsonl, line 22$")
        self.assertIn("has the shape", kept[1]["reason"])

    def test_a_run_that_is_killed_goes_on_with_its_list(self):
        clean, dirty = self.jsonl()
        self.train("clean", config=clean)
        blocks = [STREAMED[1]]
        for steps, ranks, sets in ((2, 2, blocks), (4, 3, STREAMED), (None, None, blocks)):
            result = self.train("parts", config=dirty, steps=steps, ranks=ranks, sets=sets)
            self.assertEqual("training set: 20 bad of 420 records, found" in result.err, ranks == 2, "only the first job searches")
        self.assert_same_run("clean", "parts")
        path, text = self.folder / "parts" / "bad_records.csv", (self.folder / "parts" / "bad_records.csv").read_text()
        more = ["train.epochs=2", *blocks]
        for content, pattern in ((None, "bad_records.csv: is missing"), (text[:-9], "is no list of bad records"),
                                 (text.replace("line 22", "line 23"), r"sample 21 of the run was .*line 23"),
                                 ("".join(line for line in text.splitlines(True) if "line 22" not in line), "dirty.jsonl, line 22: .*has the shape")):
            with self.subTest(pattern):
                path.unlink(missing_ok=True)
                if content is not None:
                    path.write_text(content)
                arguments = self.train_arguments("parts", config=dirty, sets=more)
                self.assert_one_error(self.start(*arguments, ranks=2).wait(), 3, pattern)
        path.write_text(text)
        self.train("parts", config=dirty, sets=more)
        self.assertEqual(json.loads(self.lockstep("evaluate", self.folder / "parts", ranks=2).out)["samples"], 80)

    def test_more_than_the_limit_and_without_skip_are_errors(self):
        _, dirty = self.jsonl()
        for code, sets, pattern in ((3, ["data.max_bad_records=19"], r"dirty\.jsonl, line \d+: .*more than 19 of 420 records are bad"),
                                    (3, ["data.max_bad_records=0.04"], "more than 16 of 420 records are bad"),
                                    (3, ["data.bad_records=stop"], "dirty.jsonl, line 1"),
                                    (2, ["data.max_bad_records=1.5"], "neither a share below 1 nor a whole number")):
            with self.subTest(sets):
                arguments = self.train_arguments("bad", config=dirty, sets=sets)
                self.assert_one_error(self.start(*arguments, ranks=2).wait(), code, pattern)

    def test_check_and_data_say_what_is_left_out(self):
        _, dirty = self.jsonl()
        out = self.lockstep("check", dirty).out
        self.assertRegex(out, r"training set      320 of 400 samples")
        self.assertRegex(out, r"bad records       20 of 420 records are bad and left out: \S*dirty.jsonl, line 1 \(")
        self.assertRegex(self.lockstep("data", dirty).out, r"  bad records     20 of 420 records are bad")

    def test_a_sample_is_bad_if_a_part_of_it_is(self):
        """Bad rows of a table and bad lines of JSON, in different samples."""
        rows = digits()
        bad_left, bad_right = {3, 50, 399}, {0, 50, 51}
        for name, bad_csv, bad_json, left_out in (("dirty", bad_left, bad_right, set()), ("clean", set(), set(), bad_left | bad_right)):
            kept = [i for i in range(400) if i not in left_out]
            (self.folder / f"{name}.csv").write_text("".join(
                "bad\n" if i in bad_csv else ",".join(f"{value:g}" for value in rows[i][:32]) + "\n" for i in kept))
            (self.folder / f"{name}.jsonl").write_text("".join(
                "{}\n" if i in bad_json else json.dumps({"x": rows[i][32:64], "y": int(rows[i][-1])}) + "\n" for i in kept))
            section = f"""bad_records: skip
  format: jsonl
  inputs:
    left: {{format: csv, path: {name}.csv, label_column: null}}
    right: {{path: {name}.jsonl, features: x, labels: y}}"""
            config = self.config(name, section)
            config.write_text(config.read_text().replace("layers: [flatten,", "layers: [{concat: {inputs: [left, right]}},"))
            self.train(name, config=config, ranks=2 if name == "dirty" else None)
        self.assert_same_run("clean", "dirty")
        self.assertEqual([(row["input"], int(row["sample"])) for row in self.kept("dirty")],
                         [("left", 3), ("left", 50), ("left", 399), ("right", 0), ("right", 50), ("right", 51)])

    def test_images_that_cannot_be_decoded(self):
        make = SOURCE / "examples" / "generate_digit_images.py"
        subprocess.run([sys.executable, make, self.folder / "dirty", "--every", "6"], check=True, capture_output=True, timeout=60)
        shutil.copytree(self.folder / "dirty", self.folder / "clean")
        files = sorted((self.folder / "dirty" / "train").glob("*/*.png"))
        for number, path in enumerate((files[0], files[17], files[-1])):
            path.write_bytes((path.read_bytes()[:50], b"no image", b"")[number])
            (self.folder / "clean" / path.relative_to(self.folder / "dirty")).unlink()
        for name in ("clean", "dirty"):
            section = f"format: images\n  path: {name}/train\n  channels: 1\n  scale: 0.004\n  bad_records: skip\n  max_bad_records: 3"
            for sets in ((), ("data.memory_gb=0.000008", "data.block_samples=3")):
                self.train(f"{name}{len(sets)}", config=self.config(name, section), ranks=len(sets) or None, sets=sets)
        for run in ("dirty0", "dirty2"):
            self.assert_same_run("clean0", run)
            self.assertEqual([row["record"] for row in self.kept(run)], [str(files[i]) for i in (0, 17, -1)])
        files[30].chmod(0)
        files[30].unlink()
        files[30].symlink_to("nowhere")  # a trouble of the file, not of its contents
        arguments = self.train_arguments("gone", config=self.config("dirty", section))
        self.assert_one_error(self.start(*arguments, ranks=2).wait(), 3, f"{files[30].name}: cannot open")

    @unittest.skipUnless(python_with_h5py(), "no Python with numpy and h5py")
    def test_a_chunk_that_cannot_be_decompressed(self):
        subprocess.run([python_with_h5py(), "-c", MAKE_HDF5, DIGITS_DATA, self.folder], check=True, timeout=60)
        for name, ranks, sets in (("clean", None, ()), ("dirty", 2, ("data.memory_gb=0.00006",))):
            section = f"format: hdf5\n  path: {name}.h5\n  features: x\n  labels: y\n  bad_records: skip\n  max_bad_records: 32"
            self.train(name, config=self.config(name, section), ranks=ranks, sets=sets)
        self.assert_same_run("clean", "dirty")
        self.assertEqual([int(row["sample"]) for row in self.kept("dirty")], list(range(64, 96)))


if __name__ == "__main__":
    main()
