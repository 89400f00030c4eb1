# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""`lockstep predict`: files of every form, standard input, outputs of layers, ensembles, and one file from several ranks."""
import csv
import gzip
import json
import math
import pathlib
import struct
import subprocess
import zlib

from lockstep_run import DIGITS_DATA, MPIRUN, PROGRAM, LockstepTest, main

SAMPLES = 101  # a batch of 64 and one of 37


def pixels():
    """The first samples after the training set, without labels."""
    with gzip.open(DIGITS_DATA, "rt", encoding="utf-8") as file:
        return [[int(value) for value in line.split(",")[:-1]] for line in file.read().split()[1500:1500 + SAMPLES]]


def npy(rows):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, 8, 8, 1), }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    data = b"".join(struct.pack("<64f", *row) for row in rows)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def png(row):
    """8 x 8 pixels in grey."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    lines = b"".join(b"\0" + bytes(row[8 * y:8 * y + 8]) for y in range(8))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


class FormsTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.rows = pixels()
        self.csv = self.folder / "new.csv"
        self.csv.write_text("".join(",".join(map(str, row)) + "\n" for row in self.rows), encoding="utf-8")
        self.train_once("run", steps=12, ranks=2)

    def predict(self, name, *more, run="run", ranks=None, source=None, code=0):
        runs = [self.folder / one for one in run.split()]
        return self.lockstep("predict", *runs, "--input", source or self.csv, "--output", self.folder / name, *more, ranks=ranks,
                             code=code)

    def table(self, name):
        """{column: values}"""
        with (self.folder / name).open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return {key: [row[key] for row in rows] for key in rows[0]}

    def probabilities(self, name):
        table = self.table(name)
        return [[float(table[f"probability_{c}"][i]) for c in range(10)] for i in range(len(table["class"]))]


class Inputs(FormsTest):
    def expected(self):
        self.predict("csv.csv")
        return (self.folder / "csv.csv").read_bytes()

    def test_npy_hdf5_and_images_give_the_same_as_csv(self):
        expected = self.expected()
        (self.folder / "new.npy").write_bytes(npy(self.rows))
        self.predict("npy.csv", source=self.folder / "new.npy", ranks=2)
        self.assertEqual((self.folder / "npy.csv").read_bytes(), expected)
        config = self.folder / "convert.yaml"
        config.write_text(f"data: {{format: npy, features: new.npy}}\n", encoding="utf-8")
        self.lockstep("convert", config, self.folder / "new.h5")
        self.predict("h5.csv", source=self.folder / "new.h5", ranks=2)
        self.assertEqual((self.folder / "h5.csv").read_bytes(), expected)
        images = self.folder / "images"
        images.mkdir()
        for i, row in enumerate(self.rows):
            (images / f"{i:04}.png").write_bytes(png(row))
        self.predict("images.csv", source=images)
        self.assertEqual((self.folder / "images.csv").read_bytes(), expected)
        self.predict("named.csv", "--sample-names", source=images, ranks=2)
        named = self.table("named.csv")
        self.assertEqual(named.pop("sample_name"), [str(images / f"{i:04}.png") for i in range(len(self.rows))])
        self.assertEqual(named, self.table("images.csv"))
        for wanted, ending in (("file", ".png"), ("stem", "")):
            self.predict("ids.csv", "--id-column", wanted, source=images, ranks=2)
            self.assertEqual(self.table("ids.csv")[wanted], [f"{i:04}{ending}" for i in range(len(self.rows))])
        self.assert_one_error(self.predict("ids.csv", "--id-column", "name", source=images, code=2), 2, "no column 'name'.*\n?.*Give file")
        self.assert_one_error(self.predict("ids.csv", "--id-column", "id", source=self.folder / "new.npy", code=2), 2, "npy have no ids")

    def test_standard_input_of_each_form(self):
        expected = self.expected()
        (self.folder / "new.npy").write_bytes(npy(self.rows))
        for name in ("new.csv", "new.npy"):
            for launcher in ([], [*MPIRUN, "-n", "3"]):
                with (self.folder / name).open("rb") as source:
                    result = subprocess.run([*launcher, PROGRAM, "predict", self.folder / "run", "--input", "-", "--output",
                                             self.folder / "piped.csv"], stdin=source, capture_output=True, text=True, timeout=120)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual((self.folder / "piped.csv").read_bytes(), expected)
        result = self.predict("none.csv", source="-", code=3)  # nothing comes
        self.assert_one_error(result, 3, "standard input.*is empty")

    def test_a_form_that_the_ending_does_not_say(self):
        expected = self.expected()
        (self.folder / "new.dat").write_bytes(npy(self.rows))
        self.predict("out.csv", "--input-format", "npy", source=self.folder / "new.dat")
        self.assertEqual((self.folder / "out.csv").read_bytes(), expected)
        result = self.predict("out.csv", "--input-format", "npi", source=self.folder / "new.dat", code=2)
        self.assert_one_error(result, 2, "Did you mean 'npy'")
        config = self.folder / "convert.yaml"
        config.write_text(f"data: {{format: npy, features: new.dat}}\n", encoding="utf-8")
        self.lockstep("convert", config, self.folder / "new.h5")
        self.predict("out.csv", "--input-option", "features=features", source=self.folder / "new.h5")
        result = self.predict("out.csv", "--input-option", "features=pictures", source=self.folder / "new.h5", code=3)
        self.assert_one_error(result, 3, "pictures")
        result = self.predict("out.csv", "--input-option", "feetures=x", source=self.folder / "new.h5", code=2)
        self.assert_one_error(result, 2, "Did you mean 'features'")

    def test_samples_of_another_shape_are_refused(self):
        wrong = self.folder / "wrong.npy"
        wrong.write_bytes(npy(self.rows).replace(b"8, 8, 1), ", b"4, 16, 1),"))
        self.assert_one_error(self.predict("out.csv", source=wrong, code=3), 3, "4x16x1")


class Outputs(FormsTest):
    def test_one_hdf5_file_from_any_number_of_ranks(self):
        labelled = self.folder / "labelled.csv"
        with gzip.open(DIGITS_DATA, "rt", encoding="utf-8") as file:
            labelled.write_text("".join(file.readlines()[1500:1500 + SAMPLES]), encoding="utf-8")
        for source in (self.csv, labelled):
            self.predict("one.h5", source=source)
            expected = (self.folder / "one.h5").read_bytes()
            for ranks in (1, 2, 3, 4):
                self.predict("several.h5", source=source, ranks=ranks)
                self.assertEqual((self.folder / "several.h5").read_bytes(), expected, f"{ranks} ranks")
        found = self.read_by_h5py("import h5py, sys; f = h5py.File(sys.argv[1]); print([f['outputs'][:].tolist(), f['class'][:].tolist(), "
                                  "f['labels'][:].tolist(), f['sample'][:].tolist()])", self.folder / "several.h5")
        self.predict("one.csv", source=labelled)
        self.assertEqual(found[1], [int(value) for value in self.table("one.csv")["class"]])
        self.assertEqual(found[3], list(range(SAMPLES)))
        for one, other in zip(found[0], self.probabilities("one.csv"), strict=True):
            for a, b in zip(one, other):
                self.assertAlmostEqual(a, b, delta=1e-6)
        self.assertEqual(found[2], [int(line.rpartition(",")[2]) for line in labelled.read_text(encoding="utf-8").split()])
        self.assertEqual([path.name for path in self.folder.glob(".*")], [])  # no temporary file is left

    def test_outputs_of_layers(self):
        self.predict("all.csv")
        self.predict("logits.csv", "--layer", "logits")
        table = self.table("logits.csv")
        for i, expected in enumerate(self.probabilities("all.csv")):
            logits = [float(table[f"value_{c}"][i]) for c in range(10)]
            top = max(logits)
            sums = sum(math.exp(value - top) for value in logits)
            for value, probability in zip(logits, expected):
                self.assertAlmostEqual(math.exp(value - top) / sums, probability, delta=1e-5)
        self.predict("pooled.npy", "--layer", "max_pool1")
        data = (self.folder / "pooled.npy").read_bytes()
        self.assertIn(b"(101, 4, 4, 32,)", data[:128])
        self.predict("two.h5", "--layer", "max_pool1", "--layer", "global_avg_pool1")
        expected = (self.folder / "two.h5").read_bytes()
        for ranks in (2, 3):
            self.predict("pooled2.npy", "--layer", "max_pool1", ranks=ranks)
            self.assertEqual((self.folder / "pooled2.npy").read_bytes(), data)
            self.predict("two.h5", "--layer", "max_pool1", "--layer", "global_avg_pool1", ranks=ranks)
            self.assertEqual((self.folder / "two.h5").read_bytes(), expected)
        # The mean over the window of a layer is what the pooling after it gives.
        pooled = self.read_by_h5py("import h5py, sys; f = h5py.File(sys.argv[1]); print([list(f), f['max_pool1/outputs'].shape, "
                                   "f['global_avg_pool1/outputs'].shape])", self.folder / "two.h5")
        self.assertEqual(pooled, [["global_avg_pool1", "max_pool1", "sample"], (101, 4, 4, 32), (101, 64)])
        self.assert_one_error(self.predict("out.npy", "--layer", "max_pol1", code=2), 2, "Did you mean 'max_pool1'")
        self.assert_one_error(self.predict("out.npy", "--layer", "conv1", "--layer", "bn1", code=2), 2, "computed together|--layer")


class Ensembles(FormsTest):
    def setUp(self):
        super().setUp()
        for seed in (7, 8):
            self.once(f"seed{seed}", f"run{seed}", lambda seed=seed: self.train(f"run{seed}", steps=12, ranks=2, sets=(f"seed={seed}",)))

    def test_predictions_are_averaged(self):
        runs = ["run", "run7", "run8"]
        for run in runs:
            self.predict(f"{run}.csv", run=run)
        single = [self.probabilities(f"{run}.csv") for run in runs]
        self.predict("mean.csv", run=" ".join(runs))
        for i, row in enumerate(self.probabilities("mean.csv")):
            for c, value in enumerate(row):
                self.assertAlmostEqual(value, sum(one[i][c] for one in single) / 3, delta=2e-6)
        expected = (self.folder / "mean.csv").read_bytes()
        self.predict("mean.h5", run=" ".join(runs))
        file = (self.folder / "mean.h5").read_bytes()
        for ranks in (2, 3):
            self.predict("mean2.csv", run=" ".join(runs), ranks=ranks)
            self.assertEqual((self.folder / "mean2.csv").read_bytes(), expected)
            self.predict("mean.h5", run=" ".join(runs), ranks=ranks)
            self.assertEqual((self.folder / "mean.h5").read_bytes(), file)

    def test_an_evaluation_judges_the_mean(self):
        runs = [self.folder / run for run in ("run", "run7", "run8")]
        result = json.loads(self.lockstep("evaluate", *runs).out)
        self.assertEqual(len(result["ensemble"]), 3)
        labelled = self.folder / "labelled.csv"
        with gzip.open(DIGITS_DATA, "rt", encoding="utf-8") as file:
            labelled.write_text("".join(file.readlines()[1500:]), encoding="utf-8")
        labels = [int(line.rpartition(",")[2]) for line in labelled.read_text(encoding="utf-8").split()]
        self.predict("mean.csv", run="run run7 run8", source=labelled)
        rows = self.probabilities("mean.csv")
        accuracy = sum(row.index(max(row)) == label for row, label in zip(rows, labels, strict=True)) / len(rows)
        loss = -sum(math.log(row[label]) for row, label in zip(rows, labels)) / len(rows)
        self.assertAlmostEqual(result["accuracy"], accuracy, delta=1e-9)
        self.assertAlmostEqual(result["loss"], loss, delta=1e-5)
        alone = json.loads(self.lockstep("evaluate", runs[0]).out)
        self.assertNotAlmostEqual(alone["loss"], result["loss"], delta=1e-4)
        for ranks in (2, 3):
            self.assertEqual(json.loads(self.lockstep("evaluate", *runs, ranks=ranks).out), result)
        twice = json.loads(self.lockstep("evaluate", runs[0], runs[0]).out)
        self.assertAlmostEqual(twice["loss"], alone["loss"], delta=1e-5)
        self.assertEqual(twice["accuracy"], alone["accuracy"])

    def test_checkpoints_of_one_run(self):
        self.once("kept", "kept", lambda: self.train("kept", steps=20, ranks=2, sets=("checkpoint.every_steps=10", "checkpoint.keep=2")))
        files = sorted((self.folder / "kept" / "checkpoints").glob("step-*.h5"))
        self.assertEqual(len(files), 2)
        words = [word for file in files for word in ("--checkpoint", file)]
        result = json.loads(self.lockstep("evaluate", self.folder / "kept", *words).out)
        self.assertEqual([pathlib.Path(path).name for path in result["ensemble"]], [file.name for file in files])
        singles = []
        for i, file in enumerate(files):
            self.predict(f"{i}.csv", "--checkpoint", file, run="kept")
            singles.append(self.probabilities(f"{i}.csv"))
        self.predict("mean.csv", *words, run="kept")
        self.assertAlmostEqual(self.probabilities("mean.csv")[5][3], (singles[0][5][3] + singles[1][5][3]) / 2, delta=2e-6)

    def test_members_that_do_not_fit(self):
        self.once("wide", "wide", lambda: self.train("wide", steps=2, sets=("model.layers.logits.units=11",)))
        result = self.lockstep("evaluate", self.folder / "run", self.folder / "wide", code=2, ranks=2)
        self.assert_one_error(result, 2, "predicts other things")
        result = self.predict("out.csv", "--layer", "logits", run="run run7", code=2)
        self.assert_one_error(result, 2, "--layer belongs to one model")
        result = self.predict("out.csv", "--checkpoint", self.folder / "x.h5", run="run run7", code=2)
        self.assert_one_error(result, 2, "several runs are given")
        result = self.lockstep("evaluate", self.folder / "run", self.folder / "run7", "--name", "x", code=2)
        self.assert_one_error(result, 2, "--name belongs to one run")
        result = self.lockstep("predict", self.folder / "run", self.folder / "run7", "--prompt", "x", code=2)
        self.assert_one_error(result, 2, "--prompt")


if __name__ == "__main__":
    main()
