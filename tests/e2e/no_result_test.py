# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluations in which no sample counts have no result; the last step of a run has a record; NaN is written without a sign."""
import gzip
import json

from event_records import summaries
from lockstep_run import DIGITS, DIGITS_DATA, LockstepTest, checkpoints, main, records

IGNORED = ["model.loss={softmax_cross_entropy: {ignore_index: 77}}", "eval.every_steps=2", "eval.metrics=[f1, hamming_loss]"]
WEIGHTED = """
seed: 3
shards: 4
data:
  {format: csv, header: true, path: weighted.csv, label_column: null, inputs: {x: {columns: [a, b]}},
   targets: {kind: {columns: [kind]}, weight: {columns: [weight]}}, train: {rows: [0, 90]}, eval: {rows: [90, 120]}}
model: {layers: [{dense: {units: 3}}], heads: [%s]}
optimizer: {adam: {}}
train: {batch_size: 30, epochs: 2}
"""
KEEP = ["checkpoint.keep_best=1", "checkpoint.keep=1", "checkpoint.every_steps=3"]


class NoResultTest(LockstepTest):
    def config(self):
        """The labels of samples 1500 to 1796 are 77."""
        rows = gzip.open(DIGITS_DATA, "rt").read().splitlines()
        rows[1500:] = [row.rpartition(",")[0] + ",77" for row in rows[1500:]]
        (self.folder / "ignored.csv").write_text("\n".join(rows) + "\n")
        path = self.folder / "ignored.yaml"
        path.write_text(DIGITS.read_text(encoding="utf-8").replace("../data/digits.csv.gz", "ignored.csv"), encoding="utf-8")
        return path

    def test_there_is_no_loss(self):
        for ranks in (1, 3):
            run = f"run{ranks}"
            result = self.train(run, config=self.config(), ranks=ranks, steps=8, sets=[*IGNORED, *KEEP])
            self.assertEqual(result.err.count("has no result for"), 1, "once\n" + result.err)
            self.assertRegex(result.err, "warning: the evaluation at step 2 has no result for loss, accuracy, f1, hamming_loss: no sample counts, since all labels")
            self.assertRegex(result.err, r"evaluation at step 4: loss none  accuracy none")
            evaluated = records(self.folder / run, "eval")
            self.assertEqual([record["step"] for record in evaluated], [2, 4, 6, 8])
            for record in evaluated:
                self.assertEqual([record[name] for name in ("loss", "accuracy", "f1", "hamming_loss")], [None] * 4)
            self.assertEqual([path.stem for path in checkpoints(self.folder / run)], ["step-00000008"], "none is the best")
            self.assertNotIn("best checkpoint", result.err)
            self.assertNotIn(("loss", 2), summaries(self.folder / run / "eval"))
        found = self.lockstep("evaluate", self.folder / "run1")
        self.assertIsNone(json.loads(found.out)["loss"])
        self.assertRegex(found.err, "warning: the evaluation of step 8 has no result for loss, accuracy, f1, hamming_loss: no sample counts")

    def test_nobody_acts_on_it(self):
        """Early stopping waits; a plateau is none."""
        sets = [*IGNORED, "hooks=[{stop_if_no_decrease: {metric: loss, patience: 1}}, {stop_if_lower: {metric: loss, threshold: 1}}]",
                "optimizer={gradient_descent: {learning_rate: {reduce_on_plateau: {initial: 0.1, metric: loss, patience: 1}}}}"]
        result = self.train("run", config=self.config(), steps=8, sets=sets)
        self.assertEqual([record["learning_rate"] for record in records(self.folder / "run")], [0.1] * 8)
        self.assertEqual(records(self.folder / "run")[-1]["step"], 8, result.err)

    def weighted(self, heads):
        """A table whose samples for evaluation have weight 0."""
        rows = [f"{i % 7},{i % 5},{int(i < 90)},{i % 3}" for i in range(120)]
        (self.folder / "weighted.csv").write_text("\n".join(["a,b,weight,kind", *rows]) + "\n", encoding="utf-8")
        path = self.folder / "weighted.yaml"
        path.write_text(WEIGHTED % heads, encoding="utf-8")
        return path

    def test_all_weights_are_0(self):
        config = self.weighted("{name: one, labels: kind, sample_weights: weight, loss: softmax_cross_entropy}")
        for ranks in (1, 2, 3):
            run = f"weighted{ranks}"
            result = self.train(run, config=config, ranks=ranks, sets=["eval.every_epochs=1", "eval.metrics=[accuracy, {top_k: {k: 2}}]"])
            self.assertEqual(result.err.count("has no result for loss, loss/one, accuracy, top_k"), 1, result.err)
            for record in records(self.folder / run, "eval"):
                self.assertEqual([record[name] for name in ("loss", "accuracy", "top_k")], [None] * 3)

    def test_a_head_without_samples_next_to_others(self):
        """The loss is that of the heads that count."""
        config = self.weighted("{name: one, labels: kind, sample_weights: weight, loss: softmax_cross_entropy}, "
                               "{name: other, labels: kind, loss: softmax_cross_entropy}")
        for ranks in (1, 2, 3):
            run = f"heads{ranks}"
            result = self.train(run, config=config, ranks=ranks, sets=["eval.every_epochs=1"])
            self.assertIn("has no result for loss/one, one/accuracy: no sample counts", result.err)
            for record in records(self.folder / run, "eval"):
                self.assertEqual((record["loss/one"], record["one/accuracy"]), (None, None))
                self.assertEqual(record["loss"], record["loss/other"])
                self.assertIsNotNone(record["other/accuracy"])


class LastRecordTest(LockstepTest):
    def steps(self, run):
        return [record["step"] for record in records(self.folder / run)]

    def recorded(self, run):
        return sorted(step for tag, step in summaries(self.folder / run) if tag == "loss")

    def test_the_last_step_is_recorded(self):
        for ranks in (1, 2):
            run = f"run{ranks}"
            self.train(run, ranks=ranks, steps=7, sets=["summary.every_steps=100"])
            self.assertEqual(self.steps(run), [7])
            self.assertEqual(self.recorded(run), [7])
        self.assertIn("loss", self.lockstep("plot", self.folder / "run1").out)
        self.start(*self.train_arguments("run1", steps=7, sets=["summary.every_steps=100"])).wait()  # it is finished
        self.assertEqual(self.steps("run1"), [7])
        self.train("even", steps=8, sets=["summary.every_steps=4"])
        self.assertEqual(self.steps("even"), [4, 8], "once")

    def test_a_run_that_goes_on_has_the_records_of_one_that_did_not_end(self):
        sets = ["summary.every_steps=5"]
        self.train("whole", steps=17, sets=sets)
        self.train("parts", steps=7, sets=sets, ranks=2)
        self.assertEqual(self.steps("parts"), [5, 7])
        self.train("parts", steps=10, sets=sets)
        self.train("parts", steps=17, sets=sets)
        self.assertEqual(self.steps("whole"), [5, 10, 15, 17])
        self.assert_same_run("whole", "parts")
        self.assertEqual(self.recorded("parts"), self.recorded("whole"))

    def test_an_interrupted_job_records_no_more(self):
        self.train_until_checkpoints("run", 2, ["summary.every_steps=1000", "checkpoint.every_steps=2"])
        self.assertFalse([step for step in (self.steps("run") if (self.folder / "run/metrics.jsonl").exists() else []) if step % 1000])


class SignTest(LockstepTest):
    def test_nan_has_no_sign(self):
        """A rate that is far too large, and labels that are no numbers."""
        rate = ["optimizer={gradient_descent: {learning_rate: 1e30}}", "train.on_nan=warn", "eval.every_steps=2",
                "hooks=[{logging: {tensors: [loss, logits/kernel, eval/loss], every_steps: 1}}]"]
        result = self.train("run", steps=6, sets=rate)
        text = result.err + result.out + self.lockstep("inspect", self.folder / "run").out + self.lockstep("status", self.folder / "run").out
        self.assertIn("nan", text)
        self.assertNotIn("-nan", text)
        predicted = self.lockstep("predict", self.folder / "run", "--input", DIGITS_DATA, "--output", self.folder / "out.csv")
        text = (self.folder / "out.csv").read_text() + predicted.err + predicted.out
        self.assertIn("nan", text)
        self.assertNotIn("-nan", text)


if __name__ == "__main__":
    main()
