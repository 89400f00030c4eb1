# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""data.whiten: the whitening of the training set, the same on any ranks and threads, kept with the run and used by all commands."""
import array
import csv
import gzip
import json
import struct
import subprocess
import unittest

from lockstep_run import DIGITS_DATA, LockstepTest, checkpoints, main, python_with_h5py, records

CONFIG = """
seed: 3
shards: 4
data:
  format: csv
  path: %s
  whiten: %s
  scale: 0.0625
  train: {rows: [0, 800], holdout: 0.2}
  eval: {rows: [1200, 1500]}
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


class WhitenTest(LockstepTest):
    def config(self, name, whiten, data=DIGITS_DATA, more=""):
        config = self.folder / f"{name}.yaml"
        config.write_text(CONFIG % (data, whiten + more), encoding="utf-8")
        return config

    def path(self, run, name=""):
        return self.folder / run / f"whitening{name}.npy"

    def kept(self, run, name=""):
        """Rows of the .npy file: the mean, and then the matrix."""
        content = self.path(run, name).read_bytes()
        begin = 10 + struct.unpack("<H", content[8:10])[0]
        rows, columns = eval(content[10:begin].decode(), {"False": False})["shape"]
        values = array.array("f", content[begin:])
        self.assertEqual(len(values), rows * columns)
        return [values[i * columns:(i + 1) * columns] for i in range(rows)]

    def test_the_same_bits_on_any_ranks_and_threads(self):
        config = self.config("zca", "{zca: {epsilon: 0.01}}")
        result = self.train("one", config=config)
        self.assertRegex(result.err, r"whitening: covariance of 64 values over 640 vectors in [\d.]+ s, 64 components in")
        for ranks, threads in ((1, 2), (2, 1), (3, 2), (4, 1)):
            with self.subTest(ranks=ranks, threads=threads):
                run = f"run-{ranks}-{threads}"
                self.train(run, config=config, ranks=ranks, threads=threads)
                self.assertEqual(self.path(run).read_bytes(), self.path("one").read_bytes())
                self.assert_same_run("one", run)
                self.assertEqual(records(self.folder / run, "eval"), records(self.folder / "one", "eval"))
        self.assertLess(records(self.folder / "one", "eval")[-1]["loss"], 2.3)

    def test_fewer_samples_than_ranks_have_parts(self):
        config = self.config("few", "zca")
        for run, ranks in (("alone", None), ("four", 4)):
            self.train(run, config=config, ranks=ranks, sets=["data.train={rows: [0, 3]}"], steps=1)
        self.assertEqual(self.path("alone").read_bytes(), self.path("four").read_bytes())

    def test_whitened_training_samples_have_covariance_one(self):
        """By the file that the run keeps: the components of the chosen training samples."""
        config = self.config("pca", "{pca: {components: 10, epsilon: 0}}\n  normalize: all")
        self.train("run", config=config, ranks=2, steps=1, sets=["data.train={rows: [0, 800]}"])
        mean, *matrix = self.kept("run")
        center, deviation = map(float, (self.folder / "run" / "normalization.txt").read_text().split())
        with gzip.open(DIGITS_DATA, "rt", newline="") as file:
            rows = [[(float(value) / 16 - center) / deviation for value in row[:-1]] for row in csv.reader(file)][:800]
        whitened = [[sum(w * (x - m) for w, x, m in zip(filters, row, mean)) for filters in matrix] for row in rows]
        self.assertEqual(len(matrix), 10)
        for i in range(10):
            for j in range(i + 1):
                covariance = sum(row[i] * row[j] for row in whitened) / 799
                self.assertAlmostEqual(covariance, i == j, delta=1e-4)

    def test_a_share_of_the_variance_gives_the_model_its_input(self):
        config = self.config("share", "{pca: {components: 0.9}}")
        self.train("run", config=config, steps=4)
        components = len(self.kept("run")) - 1
        self.assertTrue(15 < components < 30, components)
        number = self.config("number", "{pca: {components: %d}}" % components)
        self.train("number", config=number, steps=4)
        self.assertEqual(self.path("number").read_bytes(), self.path("run").read_bytes())
        self.assertEqual(self.digest("number"), self.digest("run"))
        self.assertRegex(self.lockstep("check", config).out, rf"features +{components} ")
        out = self.lockstep("data", config).out
        self.assertRegex(out, rf"whitened +64 values by {components} components; {components} have 90 %, \d+ have 99 %")
        self.train("run", config=config, ranks=3)
        self.train("number", config=number)
        self.assertEqual(self.digest("number"), self.digest("run"))
        self.assertEqual(json.loads(self.lockstep("evaluate", self.folder / "run", ranks=2).out)["loss"], records(self.folder / "run", "eval")[-1]["loss"])

    def test_everything_later_takes_the_numbers_of_the_run(self):
        """Numbers of the checkpoint: none of the commands computes its own."""
        config = self.config("zca", "zca")
        self.train("run", config=config, steps=4)
        run, path = self.folder / "run", self.path("run")
        right = path.read_bytes()
        with gzip.open(DIGITS_DATA, "rt") as file:
            (self.folder / "new.csv").write_text("".join(line for line, _ in zip(file, range(20))))

        def outputs():
            loss = json.loads(self.lockstep("evaluate", run).out)["loss"]
            out = self.folder / "out.csv"
            self.lockstep("predict", run, "--input", self.folder / "new.csv", "--output", out)
            return loss, out.read_text()
        before = outputs()
        # They are those of the checkpoint, whatever the run directory has.
        path.write_bytes(right[:128] + struct.pack("<f", 0.5) * ((len(right) - 128) // 4))
        self.assertEqual(outputs(), before)
        path.unlink()
        self.assertEqual(outputs(), before)
        self.train("run", config=config)  # goes on, and writes the file again
        self.assertEqual(path.read_bytes(), right)

    def test_a_checkpoint_of_before_takes_the_numbers_of_the_run_directory(self):
        python = python_with_h5py()
        if python is None:
            self.skipTest("no Python has h5py")
        self.train("run", config=self.config("zca", "zca"), steps=4)
        run, path = self.folder / "run", self.path("run")
        right, before = path.read_bytes(), self.lockstep("evaluate", run).out
        without = "import h5py, sys\nwith h5py.File(sys.argv[1], 'r+') as file:\n    del file['data']"
        subprocess.run([python, "-c", without, checkpoints(run)[-1]], check=True)
        self.assertEqual(self.lockstep("evaluate", run).out, before)
        for content, pattern in ((None, "whitening.npy: is missing: the model was trained with its whitening"), (right[:-1], "is no whitening: it has"),
                                 (b"nonsense" * 20, "is no whitening")):
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
            self.assert_one_error(self.start("evaluate", run, ranks=2).wait(), 3, pattern)

    def test_a_run_that_stops_goes_on_with_the_same_bits_and_says_when_the_data_have_changed(self):
        data = self.folder / "data.csv"
        with gzip.open(DIGITS_DATA, "rt") as file:
            lines = file.readlines()
        data.write_text("".join(lines))
        config = self.config("zca", "{zca: {epsilon: 0.1}}", data=data)
        self.train("whole", config=config)
        for steps, ranks in ((3, 2), (7, 3), (None, 1)):
            self.train("parts", config=config, steps=steps, ranks=ranks)
        self.assert_same_run("whole", "parts")
        kept = self.path("parts").read_bytes()
        data.write_text("".join(lines[1:] + lines[:1]))
        more = ["train.epochs=2"]
        self.assert_one_error(self.start(*self.train_arguments("parts", config=config, sets=more)).wait(), 2, "changed since the run began")
        self.lockstep(*self.train_arguments("parts", config=config, sets=more, more=["--accept-changes"]))
        self.assertEqual(self.path("parts").read_bytes(), kept, "the numbers stay those that the model was trained with")

    @unittest.skipUnless(python_with_h5py(), "no Python with numpy and h5py")
    def test_a_set_that_is_read_while_it_is_used_has_the_same_whitening(self):
        subprocess.run([python_with_h5py(), "-c", SAVE_NPY, DIGITS_DATA, self.folder], check=True, timeout=60)
        text = CONFIG % ("", "{zca: {epsilon: 0.01}}\n  normalize: all\n  features: x.npy\n  labels: y.npy")
        config = self.folder / "npy.yaml"
        text = text.replace("format: csv", "format: npy").replace("  path: \n", "").replace("holdout: 0.2}", "holdout: 0.2, transforms: [{random_crop: {padding: 1}}]}")
        config.write_text(text, encoding="utf-8")
        self.train("memory", config=config)
        for ranks, threads in ((2, 1), (1, 2)):
            run = f"stream-{ranks}"
            result = self.train(run, config=config, ranks=ranks, threads=threads, sets=["data.memory_gb=0.00005", "data.block_samples=16"])
            self.assertRegex(result.err, "read while they are used")
            self.assertEqual(self.path("memory").read_bytes(), self.path(run).read_bytes())
            self.assert_same_run("memory", run)

    def test_an_input_has_a_whitening_of_its_own(self):
        with gzip.open(DIGITS_DATA, "rt", newline="") as file:
            rows = list(csv.reader(file))
        for name, columns in (("left", slice(0, 32)), ("right", slice(32, 65))):
            with open(self.folder / f"{name}.csv", "w", newline="") as file:
                csv.writer(file).writerows(row[columns] for row in rows)
        text = CONFIG % ("x", "zca")
        text = text.replace("  path: x\n", "").replace("  whiten: zca\n", "  inputs: {left: {path: left.csv, label_column: null, whiten: {pca: {components: %s}}}, right: {path: right.csv}}\n")
        text = text.replace("train: {rows: [0, 800], holdout: 0.2}", "holdout: 0.2").replace("eval: {rows: [1200, 1500]}", "eval: {}")
        text = text.replace("layers: [flatten,", "layers: [{concat: {inputs: [left, right]}},")
        config = self.folder / "both.yaml"
        config.write_text(text % 6, encoding="utf-8")
        self.train("both", config=config, ranks=2)
        self.assertEqual(len(self.kept("both", "-left")), 7)
        self.assertEqual(json.loads(self.lockstep("evaluate", self.folder / "both", ranks=2).out)["loss"], records(self.folder / "both", "eval")[-1]["loss"])
        config.write_text(text % 0.5, encoding="utf-8")
        self.assert_one_error(self.start("check", config).wait(), 2, "the number of components is needed where samples have several inputs")

    def test_mistakes_are_named(self):
        config = self.config("zca", "{zca: {epsilon: 0}}")
        self.assert_one_error(self.start(*self.train_arguments("run", config=config), ranks=2).wait(), 3, "has variance in 59 of 64 directions only")
        for sets, pattern in ((["data.whiten=zka"], "unknown whitening 'zka'"), (["data.eval.whiten=pca"], "whiten: must be the same for both sets"),
                              (["data.whiten={pca: {components: 65}}"], "65 components, but vectors have 64 values"),
                              (["data.whiten={pca: {n_components: 5}}"], "'components'"), (["data.zca_whitening=true"], "'whiten'"),
                              (["data.whiten={pca: {components: 0.5}}", "data.train.mix={mixup: 1, classes: 10}"], "is needed where samples .* are mixed"),
                              (["data.transforms=[whiten]"], "stands beside transforms")):
            with self.subTest(pattern):
                result = self.start("check", config, *(word for one in sets for word in ("--set", one))).wait()
                self.assert_one_error(result, 2, pattern)


if __name__ == "__main__":
    main()
