# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep new guesses what a colleague sees who opens the file: a table of small data sets of known tasks, with what it must find. Where
it may be wrong, it says what it assumed."""
import dataclasses
import re
import subprocess
import unittest

from lockstep_run import SOURCE, LockstepTest, main, python_with, python_with_h5py

PYTHON = python_with("h5py", "netCDF4", "numpy", "pandas", "PIL", "scipy") or python_with_h5py()
MAKE = SOURCE / "tests" / "e2e" / "new_guesses_data.py"
MOST_WRONG = 2
LOSSES = {"classes": "softmax_cross_entropy", "numbers": "mean_squared_error", "labels": "sigmoid_cross_entropy", "next": "softmax_cross_entropy"}


@dataclasses.dataclass
class Row:
    data: str
    task: str     # classes, numbers, labels (several at once) or next (token of a text)
    outputs: int  # classes, numbers or labels; 0: not looked at
    shape: str    # of a sample
    predicts: str = ""   # what the configuration names: labels: ["species"]
    samples: int = 96    # for training: N = 120, of which a fifth is held out
    needs: tuple = ()    # what else the configuration has
    assumes: str = ""    # a pattern: what could be wrong is said; empty: nothing is
    maker: str = ""      # without whose module the row is skipped


LAST = "the label is column .*the last one"
TABLE = [
    Row("named.csv", "classes", 3, "4", 'labels: ["species"]', needs=("header: true",)),
    Row("plain.csv", "classes", 3, "4", "labels: [4]", assumes=LAST),
    Row("unique.csv", "classes", 4, "4", "labels: [4]", 97, assumes="the first line .9.5, 9.5, 9.5, 9.5 and 1 more. is a sample"),
    Row("wine.data", "classes", 3, "5", "labels: [0]", assumes="the first one, which has classes"),
    Row("pandas.csv", "classes", 2, "4", "label_column: 4", needs=("header: true",), assumes=LAST),
    Row("years.csv", "classes", 3, "2", 'labels: ["kind"]', needs=("header: true",), assumes=LAST),
    Row("year_kinds.csv", "classes", 3, "2", 'labels: ["2019"]', needs=("header: true",), assumes="the first one, which has classes"),
    Row("prices.csv", "numbers", 1, "2", 'labels: ["price"]', assumes=LAST),
    Row("quality.csv", "classes", 3, "2", 'labels: ["quality"]', needs=('delimiter: ";"',), assumes="3 different values of the label, 4 to 6, are classes"),
    Row("index.csv", "numbers", 1, "2", 'labels: ["target"]', needs=("ignore: [0]",)),
    Row("tabs.tsv", "classes", 2, "2", "label_column: 2"),
    Row("packed.csv.gz", "classes", 3, "2", "label_column: 2"),
    Row("id_last.csv", "classes", 3, "2", 'labels: ["label"]', needs=('ignore: ["id"]',)),
    Row("churn.csv", "classes", 2, "2", 'labels: ["churn"]', assumes="the label is column churn, by its name"),
    Row("spectra.csv", "classes", 3, "4", 'labels: ["class"]', needs=("header: true",)),
    Row("missing.csv", "classes", 3, "4", "labels: [4]", 97, assumes=LAST),
    Row("pixels.csv", "classes", 3, "64", "label_column: 0", needs=("header: true",)),
    Row("pixels_plain.csv", "classes", 3, "8x8x1", "label_column: 0", assumes="the first one, which has classes"),
    Row("split.csv", "numbers", 1, "2", 'labels: ["target"]', 90, ("train: {rows: [0, 90]}", "eval: {rows: [90, 120]}")),
    Row("blanks.txt", "classes", 3, "4", "label_column: 4", needs=('delimiter: " "',), assumes=LAST),
    Row("apart", "numbers", 1, "2", 'labels: ["y"]', 40, ('train: {path: "apart/train.csv"}', 'eval: {path: "apart/test.csv"}')),
    Row("apart/train.csv", "numbers", 1, "2", 'labels: ["y"]', 40, ('eval: {path: "apart/test.csv"}',)),
    Row("kaggle", "classes", 2, "2", "label_column: 3", 64, ('path: "kaggle/train.csv"', "holdout"), assumes="test.csv.* is not used for evaluation"),
    Row("patients.csv", "classes", 2, "2", "label_column: 3", needs=('ignore: ["patient_id"]',), assumes=LAST),
    Row("two_labels.csv", "classes", 3, "3", 'labels: ["class"]', assumes="the label is column class, and column target is an input"),
    Row("excel.csv", "classes", 3, "2", 'labels: ["label"]', needs=("skip_lines: 1", 'delimiter: ";"')),
    Row("comments.csv", "classes", 3, "2", 'labels: ["label"]', needs=("skip_lines: 2",)),
    Row("numpy.csv", "classes", 3, "2", "label_column: 2", needs=("header: true",)),
    Row("few.csv", "classes", 3, "5", 'labels: ["kind"]', 7, ("header: true",), assumes=LAST),
    Row("many_classes.csv", "classes", 150, "2", "label_column: 2", 960),
    Row("titanic.csv", "classes", 2, "4", "label_column: 1", assumes="the label is column Survived, by its name"),
    Row("unusual.csv", "classes", 2, "4", "label_column: 0", assumes=LAST),  # no name and no place tells it: wrong, and said
    Row("dummies.csv", "classes", 3, "2", 'labels: ["kind_lily", "kind_rose", "kind_tulip"]', assumes="exactly one is 1 in each row: 3 classes; otherwise: --labels"),
    Row("first_dummies.csv", "classes", 3, "2", 'labels: ["class_0", "class_1", "class_2"]'),
    Row("truth.csv", "classes", 3, "2", 'labels: ["kind_lily", "kind_rose", "kind_tulip"]', assumes="exactly one is 1 in each row"),
    Row("unnamed_dummies.csv", "classes", 3, "2", 'labels: ["lily", "rose", "tulip"]', assumes="columns lily, rose, tulip, the last ones"),
    Row("encoded.csv", "numbers", 1, "7", 'labels: ["price"]', assumes="not 0 or 1 for a value of a category; otherwise: --labels NAME, or port for"),
    Row("encoded_inside.csv", "numbers", 1, "4", 'labels: ["price"]', assumes=LAST),
    Row("several.csv", "labels", 3, "2", 'labels: ["label_new", "label_old", "label_red"]', assumes="of which a row may have several"),
    Row("dropped.csv", "labels", 2, "2", 'labels: ["species_rose", "species_tulip"]', assumes="none has two: if one class has no column.*drop_first=True"),
    Row("bits.data", "classes", 3, "8x8x1", "labels: [64, 65, 66]", assumes="columns 64, 65, 66, the last ones"),
    Row("plain_sets", "classes", 3, "4", "label_column: 4", 80, ('train: {path: "plain_sets/train.txt"}', 'eval: {path: "plain_sets/test.txt"}'), assumes=LAST),
    Row("prose.tsv", "classes", 2, "100", 'label_column: "label"', needs=('text_column: "text"',)),
    Row("sms.tsv", "classes", 2, "100", "label_column: 0"),
    Row("topics.tsv", "labels", 2, "100", "label_column: 1", 90, ("labels: multi_label", "train: {split: train}", "eval: {split: test}")),
    Row("poem.txt", "next", 0, "64", samples=0),
    Row("mails", "classes", 2, "100"),
    Row("imdb", "classes", 2, "100", "classes: [ham, spam]", 90, ('train: {path: "imdb/train"}', 'eval: {path: "imdb/test"}')),
    Row("reviews.jsonl", "classes", 2, "", 'labels: "label"', needs=('features: "text"', 'classes: ["bad", "good"]')),
    Row("fields.jsonl", "classes", 3, "2", 'labels: "class"', needs=('features: ["width", "height"]',), assumes="all fields with numbers"),
    Row("targets.jsonl", "numbers", 1, "4", 'labels: "y"'),
    Row("counts.jsonl", "numbers", 1, "4", 'labels: "target"', assumes="labels are numbers to predict"),
    Row("ids.h5", "classes", 3, "12x10x3", "labels: label", maker="hdf5_files"),
    Row("species.h5", "classes", 3, "4", "labels: species", maker="hdf5_files"),
    Row("booleans.h5", "classes", 2, "4", "labels: is_sick", assumes="the labels are dataset 'is_sick'", maker="hdf5_files"),
    Row("one_hot.h5", "classes", 3, "4", "labels: y", maker="hdf5_files"),
    Row("many.h5", "labels", 3, "4", "labels: labels", maker="hdf5_files"),
    Row("groups.h5", "classes", 3, "12x10x3", "labels: train/label", 30, ("eval: {features: test/image, labels: test/label}",), maker="hdf5_files"),
    Row("three_sets.h5", "numbers", 1, "4", "labels: train/y", 30, ("eval: {features: val/x, labels: val/y}",), maker="hdf5_files"),
    Row("cats", "classes", 2, "12x10x3", "labels: train_set_y", 50, ('path: "cats/test_cats.h5", features: test_set_x, labels: test_set_y',),
        maker="hdf5_files"),
    Row("measured.h5", "numbers", 1, "4", "labels: energy", assumes="the labels are dataset 'energy'", maker="hdf5_files"),
    Row("volumes.h5", "classes", 2, "8x9x10", "labels: y", maker="hdf5_files"),
    Row("records.h5", "classes", 2, "3", "labels: events.label", maker="hdf5_files"),
    Row("channels.mat", "classes", 4, "12x10x3", "labels: y", needs=("layout: channels_first",), assumes="4 classes, though stored as fractions", maker="hdf5_files"),
    Row("flowers.nc", "classes", 3, "12x10", "labels: species", maker="netcdf_files"),
    Row("patients.nc", "classes", 2, "4", "labels: healthy", assumes="the labels are dataset 'healthy', and not age", maker="xarray_files"),
    Row("pair.npz", "classes", 3, "4", "labels: y", maker="numpy_files"),
    Row("mnist.npz", "classes", 3, "10x10", "labels: y_train", 40, ("eval: {features: x_test, labels: y_test}",), maker="numpy_files"),
    Row("floats.npz", "classes", 3, "4", "labels: target", assumes="3 classes, though stored as fractions", maker="numpy_files"),
    Row("sick.npz", "classes", 2, "4", "labels: is_sick", assumes="the labels are array 'is_sick'", maker="numpy_files"),
    Row("torch.npz", "classes", 3, "12x10x3", "labels: labels", assumes="first axis has the channels", maker="numpy_files"),
    Row("ages.npz", "classes", 90, "4", "labels: y", 960, assumes="from 0 to 89 are classes; otherwise: --task numbers", maker="numpy_files"),
    Row("soft.npz", "classes", 3, "4", "labels: labels", maker="numpy_files"),
    Row("positions.npz", "numbers", 2, "12x10x3", "labels: positions", assumes="the labels are array 'positions'", maker="numpy_files"),
    Row("arrays", "classes", 2, "4", 'labels: "arrays/y.npy"', maker="numpy_files"),
    Row("arrays/X.npy", "classes", 2, "4", 'labels: "arrays/y.npy"', maker="numpy_files"),
    Row("four", "classes", 3, "4", 'labels: "four/y_train.npy"', 50, ('labels: "four/y_val.npy"',), maker="numpy_files"),
    Row("flowers", "classes", 3, "12x10x3", needs=("size: [12, 10]",)),
    Row("archive", "classes", 3, "12x10x3", samples=32),
    Row("sets", "classes", 3, "12x10x3", "", 40, ('train: {path: "sets/train"}', 'eval: {path: "sets/val"}')),
    Row("shard.tar", "classes", 3, "12x10x3"),
    Row("names.tar", "classes", 3, "12x10x3", 'classes: ["lily", "rose", "tulip"]'),
    Row("idx", "classes", 3, "12x10x1", samples=80),
    Row("examples.tfrecord", "classes", 3, "4", "labels: label"),
    Row("photos.tfrecord", "classes", 3, "12x10x3", "labels: image/class/label", needs=("encoding: image",)),
    Row("raw.tfrecord", "classes", 3, "12x10x3", "labels: label", needs=("shape: [12, 10, 3]",), assumes="raw numbers of one byte"),
]
TRAINED = ("dummies.csv", "truth.csv", "several.csv", "years.csv", "apart", "species.h5", "one_hot.h5", "floats.npz", "flowers.nc", "sets", "fields.jsonl")


@unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
class Guesses(LockstepTest):
    def setUp(self):
        super().setUp()
        made = subprocess.run([PYTHON, MAKE, self.folder], check=True, timeout=60, capture_output=True, text=True)
        self.missing = dict(line.split(" ", 1) for line in made.stdout.splitlines())

    def differences(self, row, out, text):
        """What of `row` is not found in the output and the configuration."""
        found = re.search(r"; (\d+) samples for training, each (\S+); predicted: (.*)\.$", out, re.MULTILINE)
        samples, shape, _ = found.groups()
        wrong = []
        if row.samples and int(samples) != row.samples:
            wrong.append(f"{samples} samples, not {row.samples}")
        if row.shape and shape != row.shape:
            wrong.append(f"samples of {shape}, not {row.shape}")
        for needed in (f"loss: {LOSSES[row.task]}", row.predicts, *row.needs, *([f"units: {row.outputs}}}"] if row.outputs else [])):
            if needed not in text:
                wrong.append(f"has no {needed!r}")
        return wrong

    def test_the_table(self):
        """At least all but two are right, each guess that may be wrong says so, and each configuration passes the check."""
        right, wrong, skipped = 0, [], []
        for number, row in enumerate(TABLE):
            with self.subTest(row.data):
                if row.maker in self.missing:
                    skipped.append(f"{row.data}: {self.missing[row.maker]}")
                    continue
                config = f"net{number}.yaml"
                result = self.start("new", row.data, "--output", config, cwd=self.folder).wait()
                if result.code != 0:
                    wrong.append(f"{row.data}: refused: {result.err}")
                    continue
                text = (self.folder / config).read_text(encoding="utf-8")
                assumed = re.findall(r"^  assumed: (.*)$", result.out, re.MULTILINE)
                self.assertEqual(assumed, re.findall(r"^# assumed: (.*)$", text, re.MULTILINE), "the file says the same")
                differences = self.differences(row, result.out, text)
                if differences:
                    wrong.append(f"{row.data}: {differences}\n{result.out}\n{text}")
                    self.assertTrue(assumed, f"silently wrong: {wrong[-1]}")
                    continue
                right += 1
                if row.assumes:
                    self.assertRegex("\n".join(assumed), row.assumes)
                else:
                    self.assertEqual(assumed, [], "nothing is to be assumed")
                self.lockstep("check", config, cwd=self.folder)
                if row.data in TRAINED:
                    self.lockstep("train", config, "--run-dir", f"run{number}", "--steps", 3, "--quiet", cwd=self.folder)
        if skipped:
            print("skipped:", *skipped, sep="\n  ")
        self.assertLessEqual(len(wrong), MOST_WRONG, "\n".join(wrong))
        self.assertEqual(right + len(wrong) + len(skipped), len(TABLE))
        self.assertGreaterEqual(len(TABLE), 40)


if __name__ == "__main__":
    main()
