# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""data.normalize: means and standard deviations of the training set, the same on any ranks, kept with the run and used by all commands."""
import csv
import gzip
import json
import math
import subprocess
import unittest

from lockstep_run import DIGITS_DATA, LockstepTest, checkpoints, main, python_with_h5py, records

CONFIG = """
seed: 3
shards: 4
data:
  format: csv
  path: %s
  %s
  scale: 0.0625
  train: {rows: [0, 1200], holdout: 0.2}
  eval: {rows: [1200, 1797]}
model:
  layers: [flatten, {dense: {units: 16}}, relu, {dense: {units: 10}}]
  loss: softmax_cross_entropy
optimizer:
  adam: {learning_rate: 0.003}
train: {batch_size: 64, epochs: 1}
"""
SAVE_NPY = """
import gzip, sys, numpy
rows = numpy.loadtxt(gzip.open(sys.argv[1], "rt"), delimiter=",")
numpy.save(sys.argv[2] + "/x.npy", rows[:, :-1].astype("u1").reshape(-1, 8, 8, 1))
numpy.save(sys.argv[2] + "/y.npy", rows[:, -1].astype("i8"))
"""


class NormalizeTest(LockstepTest):
    def config(self, name, form, data=DIGITS_DATA):
        config = self.folder / f"{name}.yaml"
        config.write_text(CONFIG % (data, form), encoding="utf-8")
        return config

    def kept(self, run, name=""):
        lines = (self.folder / run / f"normalization{name}.txt").read_text().splitlines()
        return [[float(number) for number in line.split("\t")] for line in lines]

    def test_the_same_bits_on_any_ranks_and_threads_and_as_with_the_numbers_written_out(self):
        config = self.config("channels", "normalize: channels")
        result = self.train("one", config=config)
        self.assertRegex(result.err, r"normalisation: mean and standard deviation of 960 samples, 64 channels")
        self.assertRegex(result.err, r"channels have one value in all samples, and are divided by 1: [0-9]+ of 64 channels [(]column 0 [(]from 0[)], ")
        text = (self.folder / "one" / "normalization.txt").read_text()
        for ranks, threads in ((1, 2), (3, 2), (4, 1)):
            with self.subTest(ranks=ranks, threads=threads):
                run = f"run-{ranks}-{threads}"
                self.train(run, config=config, ranks=ranks, threads=threads)
                self.assertEqual((self.folder / run / "normalization.txt").read_text(), text)
                self.assert_same_run("one", run)
                self.assertEqual(records(self.folder / run, "eval"), records(self.folder / "one", "eval"))
        mean, std = zip(*(line.split("\t") for line in text.splitlines()))
        written = self.config("written", f"mean: [{', '.join(mean)}]\n  std: [{', '.join(std)}]")
        self.train("written", config=written)
        self.assert_same_run("one", "written")
        self.assertEqual(records(self.folder / "written", "eval"), records(self.folder / "one", "eval"))

    def test_fewer_samples_than_two_for_each_rank(self):
        """5 parts on 4 ranks: the last rank has none."""
        config = self.config("few", "normalize: channels")
        for run, ranks in (("alone", None), ("four", 4)):
            self.train(run, config=config, ranks=ranks, sets=["data.train={rows: [0, 5]}"], steps=1)
        self.assertEqual(*((self.folder / run / "normalization.txt").read_text() for run in ("alone", "four")))

    def test_the_numbers_are_those_of_the_chosen_training_samples(self):
        with gzip.open(DIGITS_DATA, "rt", newline="") as file:
            rows = [[float(value) / 16 for value in row[:-1]] for row in csv.reader(file)][:1200]
        for form, shape in (("normalize: channels", 64), ("normalize: all", 1), ("normalize: channels, shape: [8, 2, 4]", 4)):
            with self.subTest(form):
                config = self.config("all", form.replace(", ", "\n  ", 1))
                self.train("run", config=config, sets=["data.train={rows: [0, 1200]}"], steps=1, ranks=2)
                kept = self.kept("run")
                self.assertEqual(len(kept), shape)
                for channel, (mean, std) in enumerate(kept):
                    values = [value for row in rows for value in row[channel::shape]]
                    expected = math.fsum(values) / len(values)
                    deviation = math.sqrt(math.fsum((value - expected) ** 2 for value in values) / len(values))
                    self.assertAlmostEqual(mean, expected, delta=1e-7 * max(1, abs(expected)))
                    self.assertAlmostEqual(std, deviation or 1, delta=1e-7 * max(1, deviation))
                for path in sorted((self.folder / "run").rglob("*"), reverse=True):
                    path.unlink() if not path.is_dir() else path.rmdir()

    def test_everything_later_takes_the_numbers_of_the_run(self):
        """Numbers of the checkpoint: none of the commands computes its own."""
        config = self.config("channels", "normalize: channels")
        self.train("run", config=config, steps=8)
        run, kept = self.folder / "run", self.folder / "run" / "normalization.txt"
        text = kept.read_text()
        with gzip.open(DIGITS_DATA, "rt") as file:
            (self.folder / "new.csv").write_text("".join(line for line, _ in zip(file, range(20))))

        def outputs():
            accuracy = json.loads(self.lockstep("evaluate", run).out)["loss"]
            out = self.folder / "out.csv"
            self.lockstep("predict", run, "--input", self.folder / "new.csv", "--output", out)
            return accuracy, out.read_text()
        right = outputs()
        self.assertEqual(right[0], records(run, "eval")[-1]["loss"])
        # They are those of the checkpoint, whatever the run directory has.
        kept.write_text("".join("0.25\t2\n" for _ in text.splitlines()))
        self.assertEqual(outputs(), right)
        kept.unlink()
        self.assertEqual(outputs(), right)
        self.train("run", config=config)  # goes on, and writes the file again
        self.assertEqual(kept.read_text(), text)
        self.train("whole", config=config)
        self.assertEqual(self.digest("run"), self.digest("whole"))

    def test_a_checkpoint_of_before_takes_the_numbers_of_the_run_directory(self):
        python = python_with_h5py()
        if python is None:
            self.skipTest("no Python has h5py")
        config = self.config("channels", "normalize: channels")
        self.train("run", config=config, steps=8)
        run, kept = self.folder / "run", self.folder / "run" / "normalization.txt"
        text, right = kept.read_text(), self.lockstep("evaluate", run).out
        without = "import h5py, sys\nwith h5py.File(sys.argv[1], 'r+') as file:\n    del file['data']"
        subprocess.run([python, "-c", without, checkpoints(run)[-1]], check=True)
        self.assertEqual(self.lockstep("evaluate", run).out, right)
        kept.write_text("".join("0.25\t2\n" for _ in text.splitlines()))
        self.assertNotEqual(self.lockstep("evaluate", run).out, right)
        kept.unlink()
        self.assert_one_error(self.start("evaluate", run, ranks=2).wait(), 3, "normalization.txt: is missing")
        kept.write_text("1\t0\n")
        self.assert_one_error(self.start("evaluate", run).wait(), 3, "is no list of means and standard deviations")

    def test_a_run_that_stops_goes_on_with_the_same_bits(self):
        config = self.config("channels", "normalize: channels")
        self.train("whole", config=config)
        for steps, ranks in ((4, 2), (9, 3), (None, 1)):
            self.train("parts", config=config, steps=steps, ranks=ranks)
        self.assert_same_run("whole", "parts")

    @unittest.skipUnless(python_with_h5py(), "no Python with numpy and h5py")
    def test_a_set_that_is_read_while_it_is_used_has_the_same_numbers(self):
        subprocess.run([python_with_h5py(), "-c", SAVE_NPY, DIGITS_DATA, self.folder], check=True, timeout=60)
        text = CONFIG % ("", "normalize: channels\n  features: x.npy\n  labels: y.npy")
        config = self.folder / "npy.yaml"
        config.write_text(text.replace("format: csv", "format: npy").replace("  path: \n", ""), encoding="utf-8")
        self.train("memory", config=config)
        result = self.train("stream", config=config, ranks=2, sets=["data.memory_gb=0.00005", "data.block_samples=16"])
        self.assertRegex(result.err, "read while they are used")
        self.assertEqual(self.kept("memory"), self.kept("stream"))
        self.assert_same_run("memory", "stream")

    def test_each_input_has_numbers_of_its_own(self):
        with gzip.open(DIGITS_DATA, "rt", newline="") as file:
            rows = list(csv.reader(file))
        for name, columns in (("left", slice(0, 32)), ("right", slice(32, 65))):
            with open(self.folder / f"{name}.csv", "w", newline="") as file:
                csv.writer(file).writerows(row[columns] for row in rows)
        text = CONFIG % ("x", "inputs: {left: {path: left.csv, label_column: null, normalize: %s}, right: {path: right.csv, normalize: all}}")
        text = text.replace("  path: x\n", "").replace("train: {rows: [0, 1200], holdout: 0.2}", "holdout: 0.2").replace("eval: {rows: [1200, 1797]}", "eval: {}")
        text = text.replace("layers: [flatten,", "layers: [{concat: {inputs: [left, right]}},")
        for name, normalize in (("both", "channels"), ("right", "none")):
            config = self.folder / f"{name}.yaml"
            config.write_text(text % normalize, encoding="utf-8")
            self.train(name, config=config, ranks=2)
        self.assertEqual(len(self.kept("both", "-left")), 32)
        self.assertEqual(self.kept("both", "-right"), self.kept("right", "-right"))
        self.assertFalse((self.folder / "right" / "normalization-left.txt").exists())
        result = self.lockstep("evaluate", self.folder / "both", ranks=2)
        self.assertEqual(json.loads(result.out)["loss"], records(self.folder / "both", "eval")[-1]["loss"])

    def test_mistakes_are_named(self):
        for sets, pattern in ((["data.mean=0.5"], "normalize: computes mean and std"),
                              (["data.eval.normalize=none"], "normalize: must be the same for both sets"),
                              (["data.normalize=channel"], "'channel' is not one of channels, elements, all, none")):
            with self.subTest(pattern):
                result = self.start("check", self.config("c", "normalize: channels"), *(word for one in sets for word in ("--set", one))).wait()
                self.assert_one_error(result, 2, pattern)

    def test_lockstep_data_shows_and_suggests_it(self):
        out = self.lockstep("data", self.config("plain", "shape: [8, 8, 1]"), "--set", "data.scale=4").out
        self.assertRegex(out, r"look at this: .*normalise them: normalize: channels in section data")
        out = self.lockstep("data", self.config("all", "normalize: all"), "--set", "data.scale=4").out
        self.assertRegex(out, r"normalised +by all: mean 19\.\d+, standard deviation 2\d\.\d+")
        self.assertNotIn("normalise them", out)
        self.assertRegex(out, r"values +-0\.\d+ to 1\.\d+, mean [-0-9.e]+, standard deviation (1|1\.0\d*|0\.99\d*)\n")


if __name__ == "__main__":
    main()
