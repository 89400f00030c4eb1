# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Trials that leave no run behind: `lockstep lr-find` and `lockstep check --overfit-batch`."""
import csv
import json
import math
import random
import re

from lockstep_run import DIGITS, LockstepTest, main, records

SMALL = """
seed: 3
shards: 4
data: {format: csv, path: points.csv, label_column: -1}
model: {layers: [dense: {units: 16}, relu, dense: {units: 3}], loss: softmax_cross_entropy}
optimizer: {adam: {learning_rate: 0.02}}
train: {batch_size: 24, epochs: 3}
"""


class TrialTest(LockstepTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(7)
        rows = [[draw.gauss(2 * label, 0.4), draw.gauss(-label, 0.4), label] for label in (draw.randrange(3) for _ in range(120))]
        (self.folder / "points.csv").write_text("".join(f"{x:.4f},{y:.4f},{label}\n" for x, y, label in rows), encoding="utf-8")
        (self.folder / "small.yaml").write_text(SMALL, encoding="utf-8")

    def names(self):
        return {path.name for path in self.folder.iterdir() if not path.name.startswith(("ompi", "pmix"))}

    def test_the_range_test_suggests_a_rate_that_trains(self):
        before = self.names()
        result = self.lockstep("lr-find", "small.yaml", "--from", "1e-5", "--to", "100", "--csv", "rates.csv", "--svg", "rates.svg", cwd=self.folder)
        self.assertEqual(self.names() - before, {"rates.csv", "rates.svg"})
        with open(self.folder / "rates.csv", encoding="utf-8") as file:
            rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
        self.assertLess(len(rows), 100)
        self.assertRegex(result.out, rf"ended +after step {len(rows)} of the test: the mean loss of 5 steps, .* is above")
        for one, two in zip(rows, rows[1:]):
            self.assertAlmostEqual(two["learning_rate"] / one["learning_rate"], 1e7 ** (1 / 99), delta=1e-5)
        self.assert_rates_on_the_axis((self.folder / "rates.svg").read_text(encoding="utf-8"), rows, result.out)
        found = re.search(r"suggestion +(\S+) \(step (\d+)\)", result.out)
        rate = float(found[1])
        self.assertAlmostEqual(rate, rows[int(found[2]) - 1]["learning_rate"], delta=0.01 * rate)
        self.train("run", config=self.folder / "small.yaml", sets=re.findall(r"--set (\S+=[^; ]+)", result.out))
        trained = records(self.folder / "run")
        self.assertAlmostEqual(trained[0]["learning_rate"], rate, delta=1e-6 * rate)
        self.assertLess(trained[-1]["loss"], 0.7 * trained[0]["loss"])

    def assert_rates_on_the_axis(self, svg, rows, out):
        """The axis of the picture has powers of ten, where their logarithms are."""
        ticks = [(float(x), text) for x, text in re.findall(r'x="([0-9.]+)" y="[0-9.]+" text-anchor="middle">([^<]+)<', svg)]
        self.assertEqual(ticks.pop()[1], "learning rate")
        self.assertGreater(len(ticks), 2)
        first, last = (math.log10(rows[i]["learning_rate"]) for i in (0, -1))
        for x, text in ticks:
            self.assertRegex(text, r"^(1e-0\d|0\.0*1|10*)$")
            self.assertTrue(first <= math.log10(float(text)) <= last, text)
            self.assertAlmostEqual((x - 84) / (876 - 84), (math.log10(float(text)) - first) / (last - first), delta=1e-3)
        self.assertRegex(out, r"1e-05 .* 0\.001 [\s\S]*learning rate\n")

    def test_the_same_bits_on_any_number_of_ranks(self):
        arguments = ("lr-find", "small.yaml", "--json", "--steps", 20, "--from", "1e-4", "--to", 1)
        alone = self.lockstep(*arguments, cwd=self.folder).out
        self.assertEqual(len(json.loads(alone)["points"]), 20)
        self.assertEqual(json.loads(alone)["option"], "optimizer.adam.learning_rate")
        self.assertEqual(self.lockstep(*arguments, "--threads", 2, cwd=self.folder, ranks=2).out, alone)
        for ranks in (3, 4):
            self.assertEqual(self.lockstep(*arguments, cwd=self.folder, ranks=ranks).out, alone)
        # The first step is that of a run.
        self.train("run", config=self.folder / "small.yaml", steps=1)
        self.assertAlmostEqual(json.loads(alone)["points"][0]["loss"], records(self.folder / "run")[0]["loss"], delta=1e-6)

    def test_mistakes(self):
        self.assert_one_error(self.start("lr-find", "small.yaml", "--from", 2, "--to", 1, cwd=self.folder).wait(), 2, "--from is not below --to")
        result = self.lockstep("lr-find", "small.yaml", "--from", "1e-12", "--to", "1e-11", "--steps", 30, cwd=self.folder)
        self.assertIn("suggestion", result.out)
        for word, answer in (("lr_find", "lr-find"), ("auto_lr_find", "lr-find"), ("find_lr", "lr-find"), ("overfit_batches", "check.*--overfit-batch")):
            result = self.start("train", "small.yaml", "--set", f"train.{word}=1", cwd=self.folder).wait()
            self.assert_one_error(result, 2, answer)
        self.assert_one_error(self.start("check", "small.yaml", "--overfit-steps", 3, cwd=self.folder).wait(), 2, "needs --overfit-batch")

    def test_one_batch_is_learnt_by_heart(self):
        before = self.names()
        alone = self.lockstep("check", "small.yaml", "--overfit-batch", cwd=self.folder).out
        self.assertRegex(alone, r"The configuration is good.\none batch +24 samples, at most 200 steps\n")
        self.assertRegex(alone, r"learnt +the loss is [\d.]+ % of the first one after \d+ steps")
        self.assertEqual(self.lockstep("check", "small.yaml", "--overfit-batch", cwd=self.folder, ranks=3).out.split("one batch")[1], alone.split("one batch")[1])
        self.assertEqual(self.names(), before)

    def test_labels_that_do_not_belong_to_their_samples_are_not_learnt(self):
        rows = [f"{i % 2},{i % 2},{i // 2 % 3}\n" for i in range(120)]  # equal samples with different labels
        (self.folder / "points.csv").write_text("".join(rows), encoding="utf-8")
        result = self.lockstep("check", "small.yaml", "--overfit-batch", "--overfit-steps", 50, cwd=self.folder, code=1)
        self.assertRegex(result.out, r"not learnt +the loss is [\d.]+ % of the first one after 50 steps, and 5 % is wanted")
        self.assertIn("equal\n", result.out)

    def test_digits(self):
        out = self.lockstep("check", DIGITS, "--overfit-batch", "--set", "train.batch_size=16").out
        self.assertRegex(out, r"\nlearnt +the loss is")


if __name__ == "__main__":
    main()
