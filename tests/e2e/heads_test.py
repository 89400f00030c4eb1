# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Several heads, labels that count nowhere, regularization: the same bits, the right means, reports and messages."""
import csv
import gzip
import itertools
import json
import math
import unittest

from lockstep_run import DIGITS_DATA, LockstepTest, main, records

# 203 = 4 x 50 + 3 samples in 7 microshards: some are empty at the end of an epoch, and digits are not spread evenly.
HEADS = f"""
seed: 5
shards: 7
data:
  format: csv
  path: {DIGITS_DATA}
  shape: [8, 8, 1]
  label_column: -1
  scale: 0.0625
  train: {{rows: [0, 203]}}
  eval: {{rows: [1500, 1601]}}
model:
  layers:
    - flatten: {{name: pixels}}
    - dense: {{name: trunk, units: 16}}
    - relu: {{name: shared}}
    - dense: {{name: digit, units: 10}}
    - dense: {{name: traits, units: 2, inputs: shared}}
    - dense: {{name: value, units: 1, inputs: shared}}
  heads:
    - name: digit
      output: digit
      loss: {{softmax_cross_entropy: {{ignore_index: 3}}}}
    - name: traits  # even, greater than four
      output: traits
      loss: {{sigmoid_cross_entropy: {{pos_weight: [1, 2]}}}}
      weight: 0.5
      label_table: [[1, 0], [0, 0], [1, 0], [0, 0], [1, 0], [0, 1], [1, 1], [0, 1], [1, 1], [0, 1]]
    - name: value
      output: value
      loss: {{huber: {{ignore_index: 9}}}}
      weight: 0.1
    - {{name: again, output: traits, loss: {{hinge: {{ignore_index: 0}}}}, weight: 0.25, label_table: [[0, 1], [1, 0],
       [1, 0], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1]]}}
  regularization:
    - {{variables: "*/kernel", l2: 0.01}}
    - {{variables: "trunk/*", l1: 0.001}}
optimizer: {{momentum: {{learning_rate: 0.05, momentum: 0.9}}}}
train: {{batch_size: 50, epochs: 2}}
"""
NUMBERS = ["loss/digit", "loss/traits", "loss/value", "loss/again"]

# Outputs begin at 0: the loss of a sample is known.
ZEROS = f"""
seed: 1
shards: 4
data: {{format: csv, path: {DIGITS_DATA}, label_column: -1, scale: 0.0625, train: {{rows: [0, 100]}}}}
model:
  layers: [dense: {{name: logits, units: 10, kernel_initializer: zeros}}]
  loss: {{softmax_cross_entropy: {{ignore_index: 4}}}}
optimizer: {{gradient_descent: {{learning_rate: 0.5}}}}
train: {{batch_size: 25, epochs: 1}}
"""


class Heads(LockstepTest):
    def config(self, text=HEADS):
        path = self.folder / "config.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def test_same_bits_on_any_ranks_and_threads(self):
        config = self.config()
        self.train("one", config=config, steps=10)
        for ranks, threads in itertools.product((1, 2, 3, 4), (1, 2)):
            if (ranks, threads) != (1, 1):
                with self.subTest(ranks=ranks, threads=threads):
                    self.train(f"{ranks}-{threads}", ranks=ranks, threads=threads, config=config, steps=10)
                    self.assert_same_run("one", f"{ranks}-{threads}")

    def test_a_run_that_goes_on_later_is_the_same(self):
        config = self.config()
        self.train("whole", config=config, steps=8)
        self.train("parts", config=config, steps=3)
        self.train("parts", config=config, steps=8, ranks=2)
        self.assert_same_run("whole", "parts")

    def test_how_the_batch_is_cut_changes_rounding_alone(self):
        config = self.config()
        self.train("seven", config=config, steps=10)
        self.train("one", config=config, steps=10, sets=["shards=1"])
        for cut, whole in zip(records(self.folder / "seven"), records(self.folder / "one")):
            for name in ["loss", "loss/regularization", *NUMBERS]:
                self.assertAlmostEqual(cut[name], whole[name], delta=2e-5 * (1 + whole[name]), msg=name)

    def test_ignored_labels_are_not_in_the_mean(self):
        run = self.folder / "run"
        self.train("run", config=self.config(ZEROS), steps=1)
        self.assertAlmostEqual(records(run)[0]["loss"], math.log(10), delta=1e-6)

    def test_batch_without_weight_has_no_loss_or_update(self):
        # The fifth sample is a 4.
        sets = ["data.train.rows=[4, 5]", "train.batch_size=1", "shards=1"]
        self.train("run", config=self.config(ZEROS), steps=3, sets=["train.epochs=null", *sets])
        self.assertEqual([record["loss"] for record in records(self.folder / "run")], [0, 0, 0])

    def test_all_parts_are_reported_and_add_up(self):
        config = self.config()
        run = self.folder / "run"
        self.train("run", config=config, steps=5, sets=["eval.every_steps=5"])
        weights = dict(zip(NUMBERS, (1, 0.5, 0.1, 0.25)))
        for record in records(run):
            total = sum(weight * record[name] for name, weight in weights.items())
            self.assertAlmostEqual(record["loss"], total + record["loss/regularization"], delta=1e-9)
            self.assertIn("digit/accuracy", record)
            self.assertNotIn("accuracy", record)
        evaluation = records(run, "eval")[-1]
        found = json.loads(self.lockstep("evaluate", run).out)
        for values in (evaluation, found):
            total = sum(weight * values[name] for name, weight in weights.items())
            self.assertAlmostEqual(values["loss"], total, delta=1e-9, msg="without regularization")
            self.assertNotIn("loss/regularization", values)
        self.assertEqual(found["digit/accuracy"], evaluation["digit/accuracy"])

    def test_predictions_have_columns_for_each_head(self):
        run, out = self.folder / "run", self.folder / "out.csv"
        self.train("run", config=self.config(), steps=2)
        self.lockstep("predict", run, "--input", DIGITS_DATA, "--output", out, ranks=2)
        with open(out, encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 1797)
        digit = [f"digit/probability_{i}" for i in range(10)]
        self.assertEqual(list(rows[0]), ["digit/class", *digit, "traits/logit_0", "traits/logit_1", "value/value_0",
                                         "again/value_0", "again/value_1"])
        self.assertAlmostEqual(sum(float(rows[7][name]) for name in digit), 1, delta=1e-5)
        self.assertEqual(rows[7]["traits/logit_1"], rows[7]["again/value_1"], "the same output")

    def test_true_labels_of_each_head(self):
        run, out = self.folder / "run", self.folder / "out.h5"
        self.train("run", config=self.config(), steps=2)
        self.lockstep("predict", run, "--input", DIGITS_DATA, "--output", out, ranks=2)
        found = self.read_by_h5py("import h5py, sys\nwith h5py.File(sys.argv[1]) as file:\n"
                                  "    print({head: (file[head]['labels'][:].tolist(), file[head]['labels'].dtype.name)\n"
                                  "           for head in file if head != 'sample'})", out)
        with gzip.open(DIGITS_DATA, "rt", encoding="ascii") as file:
            digits = [int(line.rpartition(",")[2]) for line in file]
        self.assertEqual(found, {"digit": (digits, "int32"), "traits": (digits, "int32"), "again": (digits, "int32"),
                                 "value": ([[digit] for digit in digits], "float32")}, "not those of the label tables")

    def test_a_label_that_a_head_cannot_take_is_named(self):
        text = HEADS.replace(", [1, 1], [0, 1]]\n", "]\n")
        self.assertNotEqual(text, HEADS)
        result = self.lockstep("check", self.config(text), code=3)
        self.assertRegex(result.err, r"digits\.csv\.gz, line 9.*label 8 is not one of 8 classes")

    def test_unmatched_pattern_names_nearest_variable(self):
        result = self.lockstep("check", self.config(HEADS.replace("*/kernel", "*/kernels")), code=2)
        self.assertRegex(result.err, r"no trainable variable matches '\*/kernels'")
        self.assertIn("The nearest is", result.err)


if __name__ == "__main__":
    main()
