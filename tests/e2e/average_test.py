# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Moving averages of the variables: the same bits on any number of ranks and threads and when resumed, what evaluation,
prediction, export and warm start do with them, and that they change nothing in training."""
import gzip
import json

from lockstep_run import DIGITS, DIGITS_DATA, LockstepTest, main, records

# An epoch has 24 steps. Batch norm has moving statistics; the embedding's gradient is sparse.
EMA = "average={ema: {decay: 0.9, num_updates: true, start_step: 10}}"
SWA = "average={swa: {start_epoch: 1, every_steps: 5}}"
AVERAGED = "average={swa: {start_epoch: 1, every_steps: 5, statistics: average}}"
SCHEDULED = "average={ema: {decay: {polynomial_decay: {initial: 0.2, last: 0.95, decay_steps: 1, unit: epochs}}, start_step: 10}}"
# Batch norm behind a layer with weights; an epoch has four batches, of which the last is smaller.
STATISTICS = f"""
seed: 4
shards: 4
data: {{format: csv, path: {DIGITS_DATA}, label_column: -1, scale: 0.0625, train: {{rows: [0, 150]}}}}
model:
  layers:
    - dense: {{name: first, units: 3}}
    - batch_norm: {{name: norm}}
    - relu
    - dense: {{units: 10}}
optimizer: {{momentum: {{learning_rate: 0.3}}}}
train: {{batch_size: 40, steps: 8, shuffle: false}}
"""
STEPS = 40
SETS = ["eval.every_steps=20", "eval.every_epochs=0"]
SPARSE = """
seed: 3
shards: 4
data: {{format: csv, path: {path}, label_column: -1}}
model:
  layers:
    - embedding: {{rows: 700, units: 5}}
    - flatten
    - dense: {{units: 3}}
optimizer: {{adam: {{learning_rate: 0.01}}}}
average: {{ema: {{decay: 0.7}}}}
train: {{batch_size: 11, epochs: 3}}
"""


class AverageTest(LockstepTest):
    def values(self, run):
        """{path: checksum or similar} of the newest checkpoint, by `inspect --json`."""
        return json.loads(self.lockstep("inspect", self.folder / run, "--json").out)

    def paths(self, run):
        return [entry["path"] for entry in self.values(run)["tensors"]]

    def evaluation(self, run, *options):
        return json.loads(self.lockstep("evaluate", self.folder / run, *options).out)

    def test_same_bits_and_resumed(self):
        for name, kind in (("ema", EMA), ("swa", SWA), ("scheduled", SCHEDULED), ("averaged", AVERAGED)):
            self.train(name, config=DIGITS, steps=STEPS, sets=[*SETS, kind])
            for ranks, threads in ((2, 1), (3, 1), (4, 1), (1, 2)):
                run = f"{name}-{ranks}-{threads}"
                self.train(run, config=DIGITS, steps=STEPS, sets=[*SETS, kind], ranks=ranks, threads=threads)
                self.assert_same_run(name, run, run)
            for stop in (4, 32):  # before and after it begins
                self.train(f"{name}-resumed", config=DIGITS, steps=stop, sets=[*SETS, kind], ranks=2)
            self.train(f"{name}-resumed", config=DIGITS, steps=STEPS, sets=[*SETS, kind], ranks=3)
            self.assertEqual(self.digest(name), self.digest(f"{name}-resumed"))
        self.assertAlmostEqual(records(self.folder / "scheduled")[12]["average/decay"], 0.2 + 0.75 * 12 / 24)

    def test_sparse_tables(self):
        (self.folder / "words.csv").write_text("".join(f"{i * 7 % 700},{i * i % 700},{i % 3}\n" for i in range(37)))
        config = self.folder / "words.yaml"
        config.write_text(SPARSE.format(path=self.folder / "words.csv"))
        self.train("sparse", config=config)
        self.train("dense", config=config, sets=["comm.sparse_below=0"], ranks=2)
        self.assert_same_run("sparse", "dense")

    def test_training_is_the_same_and_evaluation_uses_it(self):
        self.train("plain", config=DIGITS, steps=STEPS, sets=SETS)
        result = self.train("averaged", config=DIGITS, steps=STEPS, sets=[*SETS, EMA])
        self.assertIn("evaluation at step 20, averaged variables: loss", result.err)
        self.assertEqual(records(self.folder / "plain"), records(self.folder / "averaged"))
        plain, averaged = (records(self.folder / run, "eval") for run in ("plain", "averaged"))
        self.assertNotEqual(plain, averaged)
        self.train("ignored", config=DIGITS, steps=STEPS, sets=[*SETS, EMA, "eval.averages=false"])
        self.assertEqual(records(self.folder / "ignored", "eval"), plain)

        found = self.evaluation("averaged")
        self.assertIs(found["averaged_variables"], True)
        self.assertEqual(found["loss"], averaged[-1]["loss"])
        found = self.evaluation("averaged", "--without-averages")
        self.assertNotIn("averaged_variables", found)
        self.assertEqual(found["loss"], plain[-1]["loss"])

        def predictions(run, *options):
            out = self.folder / "p.csv"
            self.lockstep("predict", self.folder / run, "--input", DIGITS_DATA, "--output", out, *options)
            return out.read_text(encoding="utf-8")

        whole = predictions("plain")
        self.assertNotEqual(predictions("averaged"), whole)
        self.assertEqual(predictions("averaged", "--without-averages"), whole)

        # Exported weights and a warm start hold the averages.
        for options in ([], ["--without-averages"]):
            self.lockstep("checkpoint", "export", self.folder / "averaged", "--output", self.folder / "w.h5", *options)
            found = json.loads(self.lockstep("evaluate", self.folder / "plain", "--checkpoint", self.folder / "w.h5").out)
            self.assertEqual(found["loss"], (plain if options else averaged)[-1]["loss"])
            self.train(f"warm{len(options)}", config=DIGITS, steps=1,
                       sets=[f"warm_start.checkpoint={self.folder / 'averaged'}",
                             f"warm_start.averages={str(not options).lower()}"])
        one, two = (records(self.folder / run)[0]["loss"] for run in ("warm0", "warm1"))
        self.assertNotEqual(one, two)

    def test_averages_of_statistics_begin_with_those_before_the_first_step(self):
        """A batch norm's moving mean begins with 0, and its average, too: after one step the average is half of the mean."""
        config = self.folder / "begin.yaml"
        config.write_text(STATISTICS + "average: {ema: {decay: 0.5, statistics: average}}\n")
        self.train("begin", config=config, sets=["train.steps=1"])
        found = {}
        for name, options in (("average", []), ("last", ["--without-averages"])):
            output = self.folder / f"{name}.h5"
            self.lockstep("checkpoint", "export", self.folder / "begin", *options, "--output", output)
            found[name] = self.read_by_h5py(
                "import h5py, sys\nwith h5py.File(sys.argv[1]) as file:\n"
                "  found = {}\n"
                "  file.visititems(lambda name, item: found.update({name.split('/', 1)[-1]: item[()].tolist()})\n"
                "                  if isinstance(item, h5py.Dataset) and item.ndim else None)\n"
                "  print(found)", output)["norm/moving_mean"]
        for average, last in zip(found["average"], found["last"]):
            self.assertNotEqual(last, 0)
            self.assertAlmostEqual(average, last / 2, delta=1e-7 + 1e-6 * abs(last))

    def statistics(self, options):
        """(variables, mean and variance of the batch norm) that go with the averages at the end of a run."""
        run = self.folder / ("run" + "".join(filter(str.isalnum, options)))
        config = self.folder / "statistics.yaml"
        config.write_text(STATISTICS + f"average: {{swa: {{start_step: 3, every_steps: 1{options}}}}}\n")
        self.train(run, config=config)
        self.lockstep("checkpoint", "export", run, "--output", run / "w.h5")
        return self.read_by_h5py("import h5py, sys\nwith h5py.File(sys.argv[1]) as file:\n"
                                 "  found = {}\n"
                                 "  file.visititems(lambda name, item: found.update({name.split('/', 1)[-1]: item[()].tolist()})\n"
                                 "                  if isinstance(item, h5py.Dataset) and item.ndim else None)\n"
                                 "  print(found)", run / "w.h5")

    def test_statistics_are_the_mean_over_batches_with_averaged_weights(self):
        with gzip.open(DIGITS_DATA, "rt", encoding="ascii") as file:
            samples = [[float(x) / 16 for x in line.split(",")[:-1]] for line in file][:150]

        def expected(found, batches):
            """By PyTorch's update_bn: means over batches of their means and unbiased variances."""
            kernel, bias = found["first/kernel"], found["first/bias"]
            outputs = [[sum(x * row[unit] for x, row in zip(sample, kernel)) + bias[unit] for unit in range(3)]
                       for sample in samples]
            parts = [outputs[first:first + 40] for first in range(0, 150, 40)][:batches]
            means = [[sum(column) / len(part) for column in zip(*part)] for part in parts]
            variances = [[sum((x - mean) ** 2 for x in column) / (len(part) - 1) for column, mean in zip(zip(*part), of_part)]
                         for part, of_part in zip(parts, means)]
            return [[sum(column) / len(parts) for column in zip(*values)] for values in (means, variances)]

        for options, batches in (("", 4), (", statistics_batches: 3", 3)):
            found = self.statistics(options)
            for name, values in zip(("norm/moving_mean", "norm/moving_variance"), expected(found, batches)):
                for actual, wanted in zip(found[name], values):
                    self.assertAlmostEqual(actual, wanted, delta=2e-6 * max(1, abs(wanted)), msg=(options, name))
        for options in (", statistics: last", ", statistics: average"):
            found = self.statistics(options)
            self.assertGreater(abs(found["norm/moving_mean"][0] - expected(found, 4)[0][0]), 1e-3, options)

    def test_statistics_fit_the_evaluation_and_the_checkpoint(self):
        self.train("run", config=DIGITS, steps=STEPS, sets=["eval.every_steps=15", SWA])  # also at step 30, after its begin
        self.assertEqual(self.evaluation("run")["loss"], records(self.folder / "run", "eval")[-1]["loss"])
        # Evaluations change neither training nor the last averages.
        self.train("rare", config=DIGITS, steps=STEPS, sets=[SETS[1], SWA, "eval.every_steps=null", "eval.averages=false"])
        self.assertEqual(self.digest("rare"), self.digest("run"))
        self.train("plain", config=DIGITS, steps=STEPS, sets=SETS)
        self.assertEqual(records(self.folder / "run"), records(self.folder / "plain"))

    def test_average_that_is_new_begins_with_the_variables(self):
        self.train("run", config=DIGITS, steps=20, sets=SETS)
        sets = [*SETS, "average={ema: {decay: 0.5}}"]
        result = self.start(*self.train_arguments("run", config=DIGITS, steps=STEPS, sets=sets)).wait()
        self.assert_one_error(result, 2, r"\+ average: \{ema: \{decay: 0.5\}\}")
        result = self.start(*self.train_arguments("run", config=DIGITS, steps=STEPS, sets=sets), "--accept-changes").wait()
        self.assertEqual(result.code, 0, str(result))
        self.assertRegex(result.err, r"state of average: begun anew: the checkpoint has none")
        self.assertTrue(any(path.startswith("moving_averages/") for path in self.paths("run")))

    def test_check_prints_it_and_finds_mistakes(self):
        out = self.lockstep("check", DIGITS, "--set", SWA).out
        self.assertRegex(out, r"moving average +0\.\d+ MB: mean of the variables, from step 24 on after every 5 steps, moving "
                         "statistics computed anew from an epoch of the training data")
        for value, message in (("{ema: {decay: 2}}", r"ema, decay: must be"), ("{swa: {}}", "neither start_epoch nor start_step"),
                               ("{ema: {statistics: mean}}", "not one of last, average, recompute"),
                               ("polyak", "unknown average 'polyak'")):
            self.assert_one_error(self.start("check", DIGITS, "--set", f"average={value}").wait(), 2, message)


if __name__ == "__main__":
    main()
