# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A run is continued with other settings: state that depends on them is begun anew, all other state is kept, and the log says
which. A run that continues unchanged keeps all of it."""
import json
import pathlib
import re

from lockstep_run import DIGITS_DATA, LockstepTest, main, records

# An epoch has 10 steps of 40 samples.
CONFIG = f"""
seed: 4
shards: 4
data: {{format: csv, path: {DIGITS_DATA}, label_column: -1, scale: 0.0625, train: {{rows: [0, 400]}}, eval: {{rows: [400, 500]}}}}
model:
  layers:
    - dense: {{name: first, units: 6}}
    - relu
    - dense: {{name: last, units: 10}}
eval: {{every_steps: 5, metrics: [perplexity]}}
optimizer: {{adam: {{learning_rate: 0.01}}}}
checkpoint: {{keep: 0}}
train: {{batch_size: 40, steps: 20}}
"""
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
READ = """
import h5py, json, sys
with h5py.File(sys.argv[1]) as file:
    paths = []
    file.visititems(lambda name, item: paths.append(name) if isinstance(item, h5py.Dataset) else None)
    pieces = bytes(file["state_settings"].attrs["pieces"]).decode()
    print(repr(json.dumps({"paths": paths, "pieces": json.loads(pieces),
                      "values": {path: file[path][()].ravel().tolist() for path in paths if not path.startswith("data")}})))
"""


class StateSettingsTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "run.yaml"
        self.config.write_text(CONFIG, encoding="utf-8")

    def run_to(self, run, steps, *sets, accept=False, ranks=None, **options):
        more = ["--accept-changes"] if accept else []
        return self.train(run, config=self.config, steps=steps, sets=sets, more=more, ranks=ranks, **options)

    def state(self, run, step):
        return json.loads(self.read_by_h5py(READ, self.folder / run / "checkpoints" / f"step-{step:08}.h5"))

    def forget_settings(self, run, step):
        """The checkpoint as earlier versions wrote it."""
        script = "import h5py, sys\nwith h5py.File(sys.argv[1], 'r+') as file: del file['state_settings']\nprint(None)"
        self.read_by_h5py(script, self.folder / run / "checkpoints" / f"step-{step:08}.h5")

    def lines(self, result):
        return re.findall(r"state of (.*)", result.err)

    def test_an_unchanged_run_keeps_everything_and_its_bits(self):
        kind = ("average={swa: {start_step: 5, every_steps: 2}}", "hooks=[{loss_spike: {window: 3}}]", "checkpoint.keep_best=1")
        self.run_to("whole", 20, *kind)
        self.run_to("run", 11, *kind, ranks=2)
        again = self.run_to("run", 20, *kind, ranks=3)
        self.assertEqual(self.lines(again), ["optimizer, average, loss_spike/losses, loss_spike/seen, checkpoint_saver/best: kept"])
        self.assertEqual(self.digest("run"), self.digest("whole"))

    def test_an_average_that_is_added_counts_from_there(self):
        added = "average={swa: {start_step: 3, every_steps: 1, statistics: last}}"
        for ranks in (None, 2, 3):
            run = f"run{ranks}"
            self.run_to(run, 10, "checkpoint.every_steps=1", ranks=ranks)
            result = self.run_to(run, 16, "checkpoint.every_steps=1", added, accept=True, ranks=ranks)
            self.assertIn("average: begun anew: the checkpoint has none", self.lines(result))
            values = [self.state(run, step)["values"]["variables/first/kernel"] for step in range(10, 17)]
            mean = [sum(column) / len(values) for column in zip(*values)]
            found = self.state(run, 16)["values"]["moving_averages/first/kernel"]
            self.assertLess(max(abs(a - b) for a, b in zip(mean, found)), 1e-6)
        # Its count goes on where it was, also through another interruption.
        self.run_to("again", 10, "checkpoint.every_steps=1")
        self.run_to("again", 13, added, accept=True)
        self.run_to("again", 16, added)
        self.assertEqual(self.state("again", 16)["values"]["moving_averages/first/kernel"], found)

    def test_an_average_of_another_kind_begins_anew(self):
        self.run_to("run", 10, "average={ema: {decay: 0.9}}")
        result = self.run_to("run", 11, "average={swa: {start_step: 0, every_steps: 1}}", accept=True)
        self.assertIn("average: begun anew: kind was ema and is swa", self.lines(result))
        longer = self.run_to("run", 12, "average={swa: {start_step: 0, every_steps: 2}}", accept=True)
        self.assertIn("optimizer, average: kept", self.lines(longer))

    def test_early_stopping_by_another_metric(self):
        hook = "hooks=[{stop_if_no_decrease: {metric: %s, patience: 2}}]"
        self.run_to("run", 10, hook % "loss")
        result = self.run_to("run", 20, hook % "perplexity", accept=True)
        self.assertRegex("\n".join(self.lines(result)), r"stop_if_no_decrease/best: begun anew: metric was eval/loss and is eval/perplexity")
        self.assertNotIn("has not decreased", result.err)
        best = self.state("run", 20)["values"]["state/hooks/stop_if_no_decrease/best"]
        self.assertGreater(best[0], 1)  # a perplexity
        # The same metric on other data: its values do not compare.
        other = self.run_to("run", 25, hook % "perplexity", "data.eval.rows=[500, 600]", accept=True)
        self.assertRegex("\n".join(self.lines(other)), r"best: begun anew: data.eval.rows was \[400, 500\] and is \[500, 600\]")
        # What does not concern it is kept.
        kept = self.run_to("run", 26, hook % "perplexity", "data.eval.rows=[500, 600]", "optimizer.adam.learning_rate=0.02", accept=True)
        self.assertEqual(len(self.lines(kept)), 1)

    def test_the_loss_is_another_one(self):
        hook = "hooks=[{stop_if_no_decrease: {metric: loss, max_steps: 100}}]"
        self.run_to("run", 10, hook, "model.loss=softmax_cross_entropy")
        result = self.run_to("run", 15, hook, "model.loss={softmax_cross_entropy: {label_smoothing: 0.1}}", accept=True)
        self.assertRegex("\n".join(self.lines(result)), r"best: begun anew: model.loss.label_smoothing was 0 and is 0.1")

    def test_the_best_checkpoint_by_another_metric(self):
        keep = ("checkpoint.keep=1", "checkpoint.keep_best=1")
        self.run_to("run", 10, *keep)
        result = self.run_to("run", 20, *keep, "checkpoint.best_metric=perplexity", accept=True)
        self.assertRegex("\n".join(self.lines(result)), "checkpoint_saver/best: begun anew: metric was eval/loss and is eval/perplexity")
        state = (self.folder / "run" / "checkpoint").read_text(encoding="utf-8")
        self.assertTrue(all(float(value) > 1 for value in re.findall(r'checkpoint_metric: "[^"]*" (\S+)', state)), state)

    def test_a_plateau_by_another_metric_keeps_its_rate(self):
        rate = "optimizer={momentum: {learning_rate: {reduce_on_plateau: {initial: 0.1, factor: 0.5, patience: 0, threshold: 10, metric: %s}}}}"
        self.run_to("run", 15, rate % "loss")
        before = records(self.folder / "run")[-1]["learning_rate"]
        self.assertLess(before, 0.1)
        result = self.run_to("run", 17, rate % "perplexity", accept=True)
        self.assertRegex("\n".join(self.lines(result)), "schedules/learning_rate: begun anew: metric was")
        self.assertAlmostEqual(self.state("run", 17)["values"]["state/hooks/schedules/learning_rate"][0],
                               self.state("run", 15)["values"]["state/hooks/schedules/learning_rate"][0])

    def test_a_window_of_another_length(self):
        hook = "hooks=[{loss_spike: {factor: 4, window: %d, action: skip}}]"
        self.run_to("run", 10, hook % 5)
        for window in (3, 8):
            result = self.run_to("run", 20 + window, hook % window, accept=True)
            self.assertRegex("\n".join(self.lines(result)), f"loss_spike/losses: begun anew: window was . and is {window}")
            self.assertNotIn("skipped", result.err)

    def test_another_rule_begins_with_fresh_slots(self):
        self.run_to("run", 10)
        refused = self.run_to("run", 20, "optimizer={lion: {learning_rate: 0.001}}", code=2)
        self.assertIn("--accept-changes", refused.err)
        result = self.run_to("run", 11, "optimizer={lion: {learning_rate: 0.001}}", accept=True, ranks=2)
        self.assertRegex("\n".join(self.lines(result)), "optimizer of .*first/kernel.*: begun anew: rule was adam and is lion")
        # Lion's first step moves each element by the rate, whatever Adam's first moments, which have the same name, were.
        before, after = (self.state("run", step)["values"]["variables/first/kernel"] for step in (10, 11))
        moves = {round(abs(a - b), 6) for a, b in zip(before, after)}
        self.assertLessEqual(moves, {0.0, 0.001})
        sharded = self.run_to("run", 12, "optimizer={adam: {}, shard: true}", accept=True, ranks=2)
        self.assertRegex("\n".join(self.lines(sharded)), "optimizer of .*: begun anew: rule was lion and is adam")

    def test_a_slot_that_an_option_adds(self):
        self.run_to("run", 10)
        result = self.run_to("run", 11, "optimizer={adam: {learning_rate: 0.01, amsgrad: true}}", accept=True)
        self.assertRegex("\n".join(self.lines(result)), "v_max of the optimizer, of .*: begun anew: the checkpoint has none")
        kept = self.run_to("run", 12, "optimizer={adamw: {learning_rate: 0.01, amsgrad: true}}", accept=True)
        self.assertIn("optimizer: kept", self.lines(kept))
        self.run_to("run", 13, "optimizer={shampoo: {learning_rate: 0.01}}", accept=True, ranks=2)
        blocks = self.run_to("run", 14, "optimizer={shampoo: {learning_rate: 0.01, block_size: 4}}", accept=True)
        self.assertRegex("\n".join(self.lines(blocks)), "first/kernel.*begun anew: .*blocks of 128.*blocks of 4")

    def test_another_model_is_refused_before_it_is_accepted(self):
        self.run_to("run", 10)
        result = self.run_to("run", 20, "model.layers.first.units=7", accept=True, code=4)
        self.assertIn("another model", result.err)
        self.assertNotIn("from step 10 on", result.err)

    def test_epochs_that_are_done_stay_done(self):
        rate = "optimizer={momentum: {learning_rate: {piecewise_constant: {boundaries: [4], values: [0.1, 0.001], unit: epochs}}}}"
        ends = ("train.steps=null", "train.epochs=6", "summary.every_steps=1")
        for ranks in (None, 2, 3):
            run = f"run{ranks}"
            self.train(run, config=self.config, sets=[rate, "train.steps=null", "train.epochs=2", "summary.every_steps=1"], ranks=ranks)
            result = self.train(run, config=self.config, sets=[rate, *ends, "train.batch_size=10"], more=["--accept-changes"], ranks=ranks)
            self.assertIn("from step 20 on an epoch has 40 steps of 10 samples: 2 epochs are done, and the run ends after step 180", result.err)
            rates = {record["step"]: record["learning_rate"] for record in records(self.folder / run)}
            self.assertEqual([rates[step] for step in (20, 21, 101, 102, 180)], [0.1, 0.1, 0.1, 0.001, 0.001])
            self.assertEqual(max(rates), 180)
            status = self.lockstep("status", self.folder / run).out
            self.assertIn("180 of 180", status)
            self.assertNotIn("250", status)
        self.assertEqual(len({self.digest(f"run{ranks}") for ranks in (None, 2, 3)}), 1)

    def test_a_batch_that_changes_inside_an_epoch_and_an_interruption_after_it(self):
        rate = "optimizer={momentum: {learning_rate: {cosine_decay: {initial: 0.1, decay_steps: 4, unit: epochs}}}}"
        halves = (rate, "train.batch_size=20")
        for run, pieces in (("whole", ()), ("pieces", (18, 25))):
            self.run_to(run, 15, rate)
            for stop in pieces:
                self.run_to(run, stop, *halves, accept=True)
            self.train(run, config=self.config, sets=[*halves, "train.steps=null", "train.epochs=4"], more=["--accept-changes"])
            rates = [record["learning_rate"] for record in records(self.folder / run)]
            self.assertTrue(all(a >= b for a, b in zip(rates, rates[1:])), rates)
            self.assertEqual(len(rates), 15 + 10 + 40)
            self.assertLess(rates[-1], 0.001)
        self.assertEqual(self.digest("whole"), self.digest("pieces"))

    def test_every_piece_of_state_declares_its_settings_and_is_in_the_documentation(self):
        self.run_to("run", 10, "average={ema: {decay: 0.9, statistics: average}}", "checkpoint.keep_best=1", "gradients.noise_scale=true",
                    "precision={compute: float16, loss_scale: dynamic}", "train.on_nan=skip",
                    "optimizer={momentum: {learning_rate: {reduce_on_plateau: {initial: 0.1}}}}",
                    "hooks=[{stop_if_no_decrease: {metric: loss, patience: 50}}, {loss_spike: {window: 3}}]")
        state = self.state("run", 10)
        owner = {"slots": "optimizer", "updates": "optimizer", "moving_averages": "average"}
        tensors = [path for path in state["paths"] if not path.startswith("variables/")]
        pieces = {owner.get(path.split("/")[0], path) for path in tensors}
        self.assertGreater(len(pieces), 8)
        self.assertEqual(pieces - set(state["pieces"]), set(), "these tensors belong to no piece of state that says what it depends on")
        text = (DOCS / "checkpoints.md").read_text(encoding="utf-8").split("## State and settings")[1].split("\n## ")[0]
        hooks = {"loss_scale": "loss scale", "noise_scale": "gradient noise scale", "nan_guard": "skipped steps"}
        for piece in state["pieces"]:
            name = piece.removeprefix("state/hooks/")
            self.assertIn(hooks.get(name.split("/")[0], name.split("/")[0]), text, piece)

    def test_a_checkpoint_of_an_earlier_version_is_kept(self):
        self.run_to("run", 10, "average={ema: {decay: 0.9}}")
        self.forget_settings("run", 10)
        result = self.run_to("run", 20, "average={ema: {decay: 0.9}}")
        self.assertEqual(self.lines(result), ["optimizer, average: kept"])
        self.run_to("whole", 20, "average={ema: {decay: 0.9}}")
        self.assertEqual(self.digest("run"), self.digest("whole"))

    def test_a_checkpoint_of_an_earlier_version_keeps_its_epochs_with_another_batch(self):
        rate = "optimizer={momentum: {learning_rate: {piecewise_constant: {boundaries: [4], values: [0.1, 0.001], unit: epochs}}}}"
        self.run_to("run", 20, rate)
        self.forget_settings("run", 20)
        result = self.run_to("run", 110, rate, "train.batch_size=10", accept=True)
        self.assertIn("from step 20 on an epoch has 40 steps of 10 samples: 2 epochs are done", result.err)
        rates = {record["step"]: record["learning_rate"] for record in records(self.folder / "run")}
        self.assertEqual([rates[step] for step in (101, 102)], [0.1, 0.001])


if __name__ == "__main__":
    main()
