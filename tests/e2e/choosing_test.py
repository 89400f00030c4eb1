# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Which samples a run uses, and how often: the same bits on any ranks and threads, changes are refused, mistakes are named."""
import gzip
import json
import shutil

from lockstep_run import DIGITS_DATA, LockstepTest, checkpoints, main, records

CONFIG = f"""
seed: 3
shards: 4
data:
  format: csv
  path: {DIGITS_DATA}
  shape: [8, 8, 1]
  scale: 0.0625
  holdout: 0.1
  split_seed: 7
  split_by_class: true
  train: {{balance: classes, class_shares: {{"3": 2.5}}, repeat: 2}}
  eval: {{}}
model:
  layers: [flatten, {{dense: {{units: 32}}}}, batch_norm, relu, {{dense: {{units: 10}}}}]
  loss: softmax_cross_entropy
optimizer:
  adam: {{learning_rate: 0.003}}
train: {{batch_size: 64, epochs: 1, last_batch: fill}}
"""


BALANCED = f"""
seed: 3
shards: 4
data: {{format: csv, path: {DIGITS_DATA}, scale: 0.0625, train: {{rows: [0, 116]}}, eval: {{rows: [300, 400]}}}}
model: {{layers: [{{dense: {{units: 10}}}}], loss: {{softmax_cross_entropy: {{class_weights: WEIGHTS}}}}}}
optimizer: {{momentum: {{learning_rate: 0.1}}}}
train: {{batch_size: 29, epochs: 1}}
"""


class BalancedTest(LockstepTest):
    def config(self, weights):
        path = self.folder / "config.yaml"
        path.write_text(BALANCED.replace("WEIGHTS", weights), encoding="utf-8")
        return path

    def evaluated(self, run):
        found = json.loads(self.lockstep("evaluate", run).out)
        return {key: value for key, value in found.items() if key != "checkpoint"}

    def test_class_weights_are_those_of_the_training_set(self):
        with gzip.open(DIGITS_DATA, "rt", encoding="utf-8") as file:
            labels = [int(line.split(",")[-1]) for line, _ in zip(file, range(116))]
        counts = [labels.count(digit) for digit in range(10)]
        self.assertGreater(len(set(counts)), 2)
        self.train("numbers", config=self.config(repr([116 / (10 * count) for count in counts])))
        result = self.train("run", config=self.config("balanced"))
        self.assertRegex(result.err, r"class weights, balanced: ")
        self.assertEqual(self.digest("run"), self.digest("numbers"))
        for ranks, threads in ((2, 1), (3, 2), (4, 1)):
            self.train(f"run-{ranks}", ranks=ranks, threads=threads, config=self.config("balanced"))
            self.assert_same_run("run", f"run-{ranks}")
        text = (self.folder / "run" / "class_counts.txt").read_text(encoding="utf-8")
        self.assertEqual([int(line) for line in text.split()], counts)
        # What is evaluated is weighted as in training, also far from the run and its training set.
        expected = self.evaluated(self.folder / "numbers")
        self.assertEqual(self.evaluated(self.folder / "run"), expected)
        away = self.folder / "away"
        away.mkdir()
        shutil.copy(checkpoints(self.folder / "run")[-1], away / "model.h5")
        self.assertEqual(self.evaluated(away / "model.h5"), expected)
        self.train("run", config=self.config("balanced"), more=["--set", "train.epochs=2"])
        self.train("numbers", config=self.config(repr([116 / (10 * count) for count in counts])), more=["--set", "train.epochs=2"])
        self.assertEqual(self.digest("run"), self.digest("numbers"), "a run that continues")

    def test_a_run_that_goes_on_with_other_labels_says_that_it_keeps_its_counts(self):
        config = self.config("balanced")
        text = config.read_text(encoding="utf-8").replace("rows: [0, 116]", "rows: [0, 40]").replace(str(DIGITS_DATA), "data.csv")
        config.write_text(text, encoding="utf-8")
        with gzip.open(DIGITS_DATA, "rt", encoding="utf-8") as file:
            lines = [line for line, _ in zip(file, range(400))]
        (self.folder / "data.csv").write_text("".join(lines), encoding="utf-8")
        self.train("run", config=config, ranks=2)
        kept = (self.folder / "run" / "class_counts.txt").read_text(encoding="utf-8")
        before, after = (int(lines[i].rsplit(",", 1)[1]) for i in (0, 1))
        lines[0] = lines[0].rsplit(",", 1)[0] + f",{after}\n"
        (self.folder / "data.csv").write_text("".join(lines), encoding="utf-8")
        counts = [int(line) for line in kept.split()]
        expected = ", ".join(f"class {digit}: {counts[digit] + change}, kept {counts[digit]}" for digit, change in sorted([(before, -1), (after, 1)]))
        result = self.train("run", config=config, ranks=3, more=["--accept-changes", "--set", "train.epochs=2"])
        self.assertEqual(result.err.count("keeps the class counts with which the run began"), 1, str(result))
        self.assertIn(f"the training set has others ({expected})", " ".join(result.err.split()))
        self.assertEqual((self.folder / "run" / "class_counts.txt").read_text(encoding="utf-8"), kept)
        # Other samples with the same labels: nothing to say.
        lines[1] = "1" + lines[1][1:]
        (self.folder / "data.csv").write_text("".join(lines), encoding="utf-8")
        shutil.rmtree(self.folder / "run")
        self.train("run", config=config)
        lines[2] = "1" + lines[2][1:]
        (self.folder / "data.csv").write_text("".join(lines), encoding="utf-8")
        result = self.train("run", config=config, more=["--accept-changes", "--set", "train.epochs=2"])
        self.assertRegex(result.err, "data changed since the run began")
        self.assertNotIn("class counts", result.err)

    def test_rows_of_values_have_no_counts(self):
        config = self.config("balanced")
        text = config.read_text(encoding="utf-8").replace("loss: {softmax", "heads: [{name: h, label_table: TABLE, loss: {softmax")
        rows = [[0.1] * 10] * 10
        config.write_text(text.replace("TABLE", repr(rows)).replace("balanced}}}", "balanced}}}]}"), encoding="utf-8")
        self.assert_one_error(self.train("run", config=config, code=2), 2, "head h: class_weights: balanced counts class indices")


class ChoosingTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "digits.yaml"
        self.config.write_text(CONFIG, encoding="utf-8")

    def run_it(self, name, **options):
        return self.train(name, config=self.config, **options)

    def test_the_same_bits_on_any_ranks_and_threads_and_after_stops(self):
        """A stratified part, classes with given shares, two passes and a filled batch; stopped in the middle of the epoch."""
        self.run_it("whole")
        for ranks, threads in ((1, 2), (2, 1), (3, 1), (4, 1)):
            with self.subTest(ranks=ranks, threads=threads):
                run = f"run-{ranks}-{threads}"
                self.run_it(run, ranks=ranks, threads=threads)
                self.assert_same_run("whole", run)
                self.assertEqual(records(self.folder / run, "eval"), records(self.folder / "whole", "eval"))
        for steps, ranks, threads in ((9, 3, 1), (31, 1, 2), (None, 4, 1)):
            self.run_it("parts", ranks=ranks, steps=steps, threads=threads)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_another_choice_is_refused_in_a_run(self):
        self.run_it("run", steps=3)
        for change, pattern in (("data.split_seed=8", r"- data\.split_seed: 7\n *\+ data\.split_seed: 8"),
                                ("data.train.repeat=3", r"data\.train\.repeat"),
                                ("data.train.class_shares={3: 2}", r"data\.train\.class_shares"),
                                ("train.last_batch=drop", r"train\.last_batch")):
            with self.subTest(change):
                result = self.start(*self.train_arguments("run", config=self.config, steps=4, sets=[change])).wait()
                self.assert_one_error(result, 2, pattern)

    def test_check_says_what_is_chosen(self):
        out = self.lockstep("check", self.config).out
        self.assertRegex(out, r"training set      161\d of 1797 samples")
        self.assertRegex(out, r"evaluation set    1[78]\d of 1797 samples")
        self.assertRegex(out, r"in an epoch       0: 2\d\d of 1\d\d, .*3: [67]\d\d of 1\d\d")


if __name__ == "__main__":
    main()
