# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""What event files say of a run in addition to its numbers, also after a kill and a resume; their export."""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
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

    def exported_by(self, module, **variables):
        """What the documentation's script for `module` prints about a run's export, and the Python that has the module."""
        python = next((one for one in (sys.executable, SOURCE / "build" / "python" / "bin" / "python3") if pathlib.Path(one).exists()
                       and subprocess.run([one, "-c", f"import {module}"], capture_output=True).returncode == 0), None)
        if python is None:
            self.skipTest(f"no Python has {module}")
        page = (SOURCE / "docs" / "events.md").read_text(encoding="utf-8")
        script = next(code for code in re.findall(r"```python\n(.*?)```", page, re.S) if module in code)
        (self.folder / "script.py").write_text(script, encoding="utf-8")
        run = self.train("run")
        self.lockstep("events", run, "--export", "csv", "--output", self.folder / "run.csv")
        done = subprocess.run([python, "script.py", "run.csv"], cwd=self.folder, env=dict(os.environ, **variables), capture_output=True,
                              text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr, python

    def last_loss(self):
        rows = list(csv.DictReader((self.folder / "run.csv").open()))
        return [float(row["value"]) for row in rows if row["run"] == "" and row["tag"] == "loss"][-1]

    def test_the_script_for_weights_and_biases(self):
        said, _ = self.exported_by("wandb", WANDB_MODE="offline")
        shown = re.search(r"Run summary:.*?wandb:\s+loss (\S+)", said, re.S)
        self.assertIsNotNone(shown, said)
        self.assertAlmostEqual(float(shown.group(1)), self.last_loss(), delta=1e-4)
        self.assertRegex(said, r"eval/auc_pr")

    def test_the_script_for_mlflow(self):
        _, python = self.exported_by("mlflow")
        script = ("import mlflow\nclient = mlflow.MlflowClient()\n"
                  "runs = client.search_runs([client.get_experiment_by_name('lockstep').experiment_id])\n"
                  "print([m.step for m in client.get_metric_history(runs[0].info.run_id, 'loss')], runs[0].data.metrics['loss'])")
        said = subprocess.run([python, "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=100, check=True).stdout
        self.assertIn(str(list(range(1, 13))), said)
        self.assertAlmostEqual(float(said.split()[-1]), self.last_loss(), delta=1e-6)

    def test_what_cannot_be_exported_is_an_error(self):
        self.assertIn("holds no event files", self.lockstep("events", self.folder, "--export", "csv", code=3).err)
        (self.folder / "events.out.tfevents.1").write_bytes(b"PK\3\4 not an event file at all")
        self.assertIn("is not an event file", self.lockstep("events", self.folder, "--export", "csv", code=3).err)
        self.lockstep("events", self.folder, "--export", "xls", code=2)
        self.lockstep("events", self.folder, "--output", self.folder / "table", code=2)


if __name__ == "__main__":
    main()
