# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""What event files say of a run beside its numbers, also after a kill and a resume; their export."""
import csv
import io
import json
import unittest

from lockstep_run import SOURCE, LockstepTest, main

CONFIG = """
seed: 1
shards: 2
data:
  format: csv
  path: %s/data/digits.csv.gz
  shape: [8, 8, 1]
  label_column: -1
  scale: 0.0625
  train: {rows: [0, 256]}
  eval: {rows: [1500, 1564]}
model:
  layers:
    - flatten
    - dense: {name: hidden, units: 16}
    - batch_norm: {name: bn}
    - relu
    - dense: {name: logits, units: 10}
  loss: softmax_cross_entropy
optimizer: {gradient_descent: {learning_rate: 0.1}}
train: {batch_size: 64, steps: 12}
eval: {every_steps: 4, metrics: [{auc_pr: {curve: true}}]}
checkpoint: {every_steps: 4}
summary: {every_steps: 1}
hooks: [{profile: {first_step: 2, last_step: 3}}]
""" % SOURCE


class EventsTest(LockstepTest):
    def train(self, name, *options, steps=12):
        config = self.folder / "net.yaml"
        config.write_text(CONFIG)
        run = self.folder / name
        self.lockstep("train", config, "--run-dir", run, "--quiet", "--steps", steps, *options, ranks=2)
        return run

    def events(self, run):
        return [json.loads(line) for line in self.lockstep("events", run).out.splitlines()]

    def test_a_resumed_run_describes_itself_once_and_no_value_is_there_twice(self):
        run = self.train("run", steps=6)
        # As after a kill: the newest checkpoint is of step 4, and two steps are lost.
        for path in run.glob("checkpoints/*"):
            if "6" in path.name and path.name.endswith(".h5"):
                path.unlink()
        self.train("run")
        events = self.events(run)
        values = [(event["file"].startswith("eval"), event["tag"], event["step"]) for event in events if "tag" in event]
        repeated = {value for value in values if values.count(value) > 1}
        self.assertEqual(repeated, set())
        steps = [event["step"] for event in events if event.get("tag") == "loss" and not event["file"].startswith("eval")]
        self.assertEqual(steps, list(range(1, 13)))
        self.assertEqual(sum("graph_bytes" in event for event in events), 1)
        self.assertEqual([event["step"] for event in events if event.get("stop")][-1], 12)
        self.assertTrue(any(event.get("restart") for event in events))
        self.assertIn(12, [event["step"] for event in events if "checkpoint" in event])
        self.assertEqual([event["run_metadata"] for event in events if "run_metadata" in event], ["steps_2-3"])
        tags = {tag for _, tag, _ in values}
        for tag in ("configuration", "_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info",
                    "auc_pr/class_9/pr_curves"):
            self.assertIn(tag, tags)

    def test_recording_does_not_change_the_bits(self):
        everything = self.train("everything", "--set", "summary.projector=true")
        nothing = self.train("nothing", "--set", "summary.events=false", "--set", "summary.metrics=false", "--set", "hooks=[]",
                             "--set", "eval.metrics=[]")
        digests = [self.lockstep("inspect", run, "--digest").out for run in (everything, nothing)]
        self.assertEqual(*digests)
        self.assertFalse(list(nothing.glob("**/*tfevents*")))

        table = self.lockstep("events", everything, "--export", "csv", "--tag", "loss,auc*").out
        rows = list(csv.DictReader(io.StringIO(table)))
        self.assertEqual({row["run"] for row in rows}, {"", "eval"})
        self.assertEqual([int(row["step"]) for row in rows if row["run"] == "" and row["tag"] == "loss"], list(range(1, 13)))
        logged = [json.loads(line) for line in (everything / "metrics.jsonl").read_text().splitlines()]
        losses = {record["step"]: record["loss"] for record in logged if record["split"] == "train"}
        for row in rows:
            if row["run"] == "" and row["tag"] == "loss":
                self.assertAlmostEqual(float(row["value"]), losses[int(row["step"])], delta=1e-6 * losses[int(row["step"])])
        curve = next(record for record in logged if record["split"] == "eval")["auc_pr/curve"]
        self.assertEqual(len(curve), 10 * 200)
        first = [row for row in curve if row[0] == 3]
        self.assertTrue(all(sum(row[2:]) == 64 for row in first), "all cases are counted at each threshold")
        self.assertEqual(first[0][4:], [0, 0], "at threshold 0 everything is taken as positive")

        lines = self.lockstep("events", everything, "--export", "jsonl", "--tag", "configuration", "--output",
                              self.folder / "table.jsonl")
        self.assertEqual(lines.out, "")
        text = json.loads((self.folder / "table.jsonl").read_text())["values"][0]
        self.assertIn("    seed: 1\n", text)

    def test_what_cannot_be_exported_is_an_error(self):
        self.assertIn("holds no event files", self.lockstep("events", self.folder, "--export", "csv", code=3).err)
        (self.folder / "events.out.tfevents.1").write_bytes(b"PK\3\4 not an event file at all")
        self.assertIn("is not an event file", self.lockstep("events", self.folder, "--export", "csv", code=3).err)
        self.lockstep("events", self.folder, "--export", "xls", code=2)
        self.lockstep("events", self.folder, "--output", self.folder / "table", code=2)


if __name__ == "__main__":
    main()
