# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluation and prediction go over every sample exactly once, on any number of ranks."""
import csv
import gzip
import json
import unittest

from lockstep_run import DIGITS, DIGITS_DATA, LockstepTest, main, records

FIRST, LAST = 1500, 1797  # the rows that examples/digits.yaml holds out


class EvaluateTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.train("run", ranks=2, steps=30, sets=["eval.every_steps=15", "checkpoint.every_steps=15", "checkpoint.background=false"])
        with gzip.open(DIGITS_DATA, "rt", encoding="ascii") as file:
            self.rows = file.read().splitlines()[FIRST:LAST]

    def test_same_metrics_on_1_to_4_ranks_as_in_training(self):
        run = self.folder / "run"
        texts = [self.lockstep("evaluate", run, ranks=ranks).out for ranks in (None, 1, 2, 3, 4)]
        self.assertEqual(len(set(texts)), 1, texts)
        metrics = json.loads(texts[0])
        self.assertEqual(metrics["samples"], LAST - FIRST)
        self.assertEqual(metrics["global_step"], 30)
        recorded = {record["step"]: record for record in records(run, "eval")}
        self.assertEqual(sorted(recorded), [15, 30])
        # An older checkpoint, and a configuration in place of the run directory's.
        older = json.loads(self.lockstep("evaluate", DIGITS, "--run-dir", run, "--checkpoint",
                                         run / "checkpoints" / "step-00000015.h5", ranks=3).out)
        for found in (metrics, older):
            for name in ("loss", "accuracy"):
                self.assertEqual(found[name], recorded[found["global_step"]][name])
        self.assertNotEqual(metrics["loss"], older["loss"])

    def test_the_size_of_the_batch_does_not_matter(self):
        run = self.folder / "run"
        whole = json.loads(self.lockstep("evaluate", run).out)
        for size in (297, 50, 8):
            other = json.loads(self.lockstep("evaluate", run, "--set", f"eval.batch_size={size}", ranks=2).out)
            self.assertEqual((other["samples"], other["accuracy"]), (whole["samples"], whole["accuracy"]))
            self.assertAlmostEqual(other["loss"], whole["loss"], delta=1e-6)

    def test_predictions_are_those_of_the_evaluation(self):
        run = self.folder / "run"
        inputs = self.folder / "held-out.csv"
        inputs.write_text("\n".join(self.rows) + "\n", encoding="ascii")
        files = []
        for ranks in (None, 1, 3):
            files.append(self.folder / f"predictions-{ranks}.csv")
            self.lockstep("predict", run, "--input", inputs, "--output", files[-1], ranks=ranks)
            self.assertEqual(files[-1].read_bytes(), files[0].read_bytes(), f"{ranks} ranks")
        with files[0].open(newline="", encoding="ascii") as file:
            predictions = list(csv.DictReader(file))
        self.assertEqual(len(predictions), len(self.rows))
        correct = 0
        for row, prediction in zip(self.rows, predictions):
            outputs = [float(prediction[f"probability_{i}"]) for i in range(10)]
            self.assertEqual(int(prediction["class"]), max(range(10), key=outputs.__getitem__))
            self.assertAlmostEqual(sum(outputs), 1, delta=1e-5)
            correct += int(prediction["class"]) == int(row.rpartition(",")[2])
        accuracy = json.loads(self.lockstep("evaluate", run).out)["accuracy"]
        self.assertEqual(accuracy, correct / len(self.rows))
        self.assertGreater(accuracy, 0.5, "a net that learned nothing shows nothing")

    def test_predictions_need_no_labels(self):
        with_labels, without = self.folder / "with.csv", self.folder / "without.csv"
        with_labels.write_text("\n".join(self.rows[:13]) + "\n", encoding="ascii")
        without.write_text("".join(row.rpartition(",")[0] + "\n" for row in self.rows[:13]), encoding="ascii")
        for path in (with_labels, without):
            self.lockstep("predict", self.folder / "run", "--input", path, "--output", f"{path}.out.csv", ranks=2)
        self.assertEqual(*((self.folder / f"{name}.csv.out.csv").read_bytes() for name in ("with", "without")))


if __name__ == "__main__":
    main()
