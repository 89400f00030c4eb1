# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""`lockstep sweep`: the same table on any number of groups, also after a kill; trials with the bits of runs alone; failing trials."""
import csv
import json
import os
import pathlib
import re
import signal

from lockstep_run import DIGITS_DATA, LockstepTest, main, wait_until

CONFIG = """
seed: 1
shards: 4
data:
  format: csv
  path: {data}
  shape: [8, 8, 1]
  label_column: -1
  scale: 0.0625
  train: {{rows: [0, 600]}}
  eval: {{rows: [1500, 1797]}}
model:
  layers: [flatten, dense: {{name: hidden, units: 16}}, relu, dropout: {{name: dropout, rate: 0.1}}, dense: {{name: logits, units: 10}}]
  loss: softmax_cross_entropy
optimizer: {{momentum: {{learning_rate: 0.05}}}}
train: {{batch_size: 60, steps: 40}}
eval: {{every_epochs: 0}}
checkpoint: {{every_steps: 10, keep: 1}}
comm: {{timeout_seconds: 20}}
sweep:
{sweep}
"""
SWEEP = """
  method: random
  trials: 7
  seed: 3
  keys:
    optimizer.learning_rate: {min: 0.001, max: 1, scale: log}
    model.layers.hidden.units: [8, 16, 24]
    optimizer.momentum.momentum: [0, 0.9]
  metric: accuracy
  mode: max
  halving: {first: 10, factor: 2}
"""


class SweepTest(LockstepTest):
    def config(self, sweep=SWEEP, name="tiny.yaml", **changes):
        text = CONFIG.format(data=DIGITS_DATA, sweep=sweep)
        for old, new in changes.items():
            text = text.replace(old, new)
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def sweep(self, run, *more, ranks=1, code=0, config=None):
        config = config or self.config()
        return self.lockstep("sweep", config, "--run-dir", self.folder / run, "--threads", 1, *more, ranks=ranks, code=code)

    def files(self, run):
        """The results, without the name of the test's own folder, which the configuration has."""
        names = ("sweep.json", "sweep.csv", "best.yaml", "report.html")
        return [re.sub(rb"lockstep-[a-z0-9_]{8}", b"", (self.folder / run / name).read_bytes()) for name in names]

    def table(self, run):
        return json.loads((self.folder / run / "sweep.json").read_text(encoding="utf-8"))

    def undisturbed(self, run="undisturbed"):
        if not (self.folder / run).exists():
            self.once("undisturbed", run, lambda: self.sweep(run, ranks=1))
        return self.files(run)


class Tables(SweepTest):
    def test_table_is_the_same_on_any_number_of_groups_and_ranks(self):
        expected = self.undisturbed()
        for ranks, groups in ((2, 2), (4, 4), (4, 2), (3, 2), (2, 1)):
            run = f"ranks{ranks}groups{groups}"
            self.sweep(run, "--groups", groups, ranks=ranks)
            for one, other in zip(expected, self.files(run)):
                self.assertEqual(one.replace(b"undisturbed", b""), other.replace(run.encode(), b""), f"{ranks} ranks, {groups} groups")
        table = self.table("undisturbed")
        self.assertEqual([rung["trials"] for rung in table["rungs"]], [7, 3, 1])
        self.assertEqual([len(trial["results"]) for trial in table["trials"]].count(1), 4)
        self.assertEqual([trial["state"] for trial in table["trials"]].count("best"), 1)
        self.assertTrue(table["finished"])
        result = self.lockstep("report", self.folder / "undisturbed", code=2)
        self.assertRegex(result.err, r"this is the folder of a sweep, not of a run\n.*undisturbed/report.html")

    def test_only_the_best_of_a_rung_go_on(self):
        self.undisturbed()
        trials = self.table("undisturbed")["trials"]
        for rung, most in ((0, 3), (1, 1)):
            here = [trial for trial in trials if len(trial["results"]) > rung]
            on = [trial["trial"] for trial in here if len(trial["results"]) > rung + 1]
            best = sorted(here, key=lambda trial: (-trial["results"][rung]["value"], trial["trial"]))[:most]
            self.assertEqual(on, sorted(trial["trial"] for trial in best))

    def test_a_trial_has_the_bits_of_a_run_alone(self):
        self.undisturbed()
        table = self.table("undisturbed")
        config = self.config()
        for trial in table["trials"]:
            sets = [word for key, value in trial["settings"].items() for word in ("--set", f"{key}={value}")]
            run = self.folder / f"alone{trial['trial']}"
            last = trial["results"][-1]
            # All steps of the training, or those of the rung that the trial has come to. Another number of ranks than the sweep.
            steps = () if last["step"] == 40 else ("--steps", last["step"])
            self.lockstep("train", config, "--run-dir", run, "--threads", 1, *steps, *sets, ranks=1 + trial["trial"] % 3)
            self.assertEqual(self.digest(run), last["digest"], f"trial {trial['trial']}")
            self.assertEqual(json.loads(self.lockstep("evaluate", run).out)["accuracy"], last["value"], f"trial {trial['trial']}")
        self.assertEqual(len({trial["results"][-1]["digest"] for trial in table["trials"]}), 7)
        best = self.table("undisturbed")["best"]
        self.lockstep("train", self.folder / "undisturbed" / "best.yaml", "--run-dir", self.folder / "best", ranks=2)
        self.assertEqual(self.digest("best"), table["trials"][best]["results"][-1]["digest"])
        # The trial's own run directory is one for the other commands.
        own = self.folder / "undisturbed" / "trials" / f"{best:04}"
        self.assertEqual(self.digest(own), self.digest("best"))

    def test_rungs_in_epochs(self):
        sweep = SWEEP.replace("first: 10", "first: 1").replace("trials: 7", "trials: 4")
        config = self.config(sweep, **{"steps: 40": "epochs: 4", "every_steps: 10": "every_epochs: 1"})
        self.sweep("run", ranks=2, config=config)
        table = self.table("run")
        steps = {len(trial["results"]): [result["step"] for result in trial["results"]] for trial in table["trials"]}
        self.assertEqual(steps, {1: [10], 2: [10, 20], 3: [10, 20, 40]})
        again = self.sweep("run", ranks=1, config=config)  # nothing is left to do
        self.assertIn("best trial", again.out)

    def test_a_warning_of_all_trials_is_printed_once(self):
        config = self.config(**{"relu, dropout": "batch_norm: {momentum: 0.99}, dropout"})
        err = self.sweep("sweep", config=config).err
        self.assertEqual(len(re.findall("warning: batch_norm1: a run of 40 steps", err)), 1, err)
        logs = [(folder / "lockstep.log").read_text(encoding="utf-8") for folder in (self.folder / "sweep" / "trials").iterdir()]
        self.assertEqual(len(logs), 7)
        self.assertTrue(all("batch_norm1: a run of 40 steps" in log for log in logs))

    def test_printed_table_and_csv(self):
        result = self.sweep("run", "--json")
        self.assertEqual(json.loads(result.out), self.table("run"))
        with (self.folder / "run" / "sweep.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for row, trial in zip(rows, self.table("run")["trials"], strict=True):
            self.assertEqual(row["state"], trial["state"])
            self.assertEqual(row["optimizer.learning_rate"], trial["settings"]["optimizer.learning_rate"])
            self.assertEqual(float(row["accuracy"]), trial["results"][-1]["value"])


class Interrupted(SweepTest):
    def begun(self, ranks, *more, results=3):
        job = self.start("sweep", self.config(), "--run-dir", self.folder / "run", "--threads", 1, *more, ranks=ranks)
        wait_until(lambda: len(list((self.folder / "run" / "trials").glob("*/trial.json"))) >= results, 60, "results of trials")
        return job

    def assert_continues(self, ranks, *more):
        expected = self.undisturbed()
        self.sweep("run", *more, ranks=ranks)
        for one, other in zip(expected, self.files("run")):
            self.assertEqual(one, other)

    def test_killed_and_resumed_gives_the_table_of_an_undisturbed_one(self):
        for ranks, then in ((1, 2), (2, 4), (4, 1)):
            with self.subTest(ranks=ranks, then=then):
                self.begun(ranks).kill()
                self.assertFalse((self.folder / "run" / "best.yaml").exists())
                self.assert_continues(then)
                self.lockstep("sweep", self.folder / "run", ranks=1)  # the folder is enough
                os.rename(self.folder / "run", self.folder / f"was{ranks}")

    def test_signals_save_and_exit_75_or_130(self):
        for number, code in ((signal.SIGTERM, 75), (signal.SIGINT, 130)):
            with self.subTest(signal=number):
                job = self.begun(2)
                for pid in job.ranks().values():
                    os.kill(pid, number)
                result = job.wait()
                self.assertEqual(result.code, code, str(result))
                self.assertNotIn("error:", result.err)
                self.assert_continues(2)
                os.rename(self.folder / "run", self.folder / f"was{number}")

    def test_a_signal_to_one_rank_stops_all_groups(self):
        job = self.begun(2)
        os.kill(job.ranks()[1], signal.SIGUSR1)
        self.assertEqual(job.wait().code, 75)
        self.assert_continues(1)

    def test_stop_file(self):
        job = self.begun(2)
        (self.folder / "run" / "STOP").touch()
        self.assertEqual(job.wait().code, 130)
        self.assertFalse((self.folder / "run" / "STOP").exists())
        self.assert_continues(2)

    def test_time_limit(self):
        config = self.config(**{"steps: 40": "steps: 1000000", "first: 10": "first: 500000"})
        result = self.sweep("run", "--set", "train.time_limit=4s", ranks=2,
                            code=75, config=config)
        self.assertLess(result.seconds, 30)

    def test_a_stopped_rank_ends_the_sweep_by_the_watchdog_of_one_that_waits(self):
        # One trial on two groups: group 1 waits at the end of the rung, longer than the limit, as long as group 0 answers.
        config = self.config("  method: list\n  list: [{seed: 1}, {train.steps: 1}]", **{"steps: 40": "steps: 100000000", "timeout_seconds: 20": "timeout_seconds: 1"})
        job = self.start("sweep", config, "--run-dir", self.folder / "run", "--threads", 1, ranks=2)
        wait_until(lambda: (self.folder / "run" / "trials" / "0001" / "trial.json").exists(), 60, "the short trial")
        busy = {pathlib.Path(os.readlink(f"/proc/{pid}/fd/{fd}")).parent.name: pid for pid in job.ranks().values()
                for fd in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{fd}").endswith("0000/.lock")}
        self.assertFalse(wait_for_end(job, 6), "a wait for ranks that answer has a limit")
        os.kill(busy["0000"], signal.SIGSTOP)
        try:
            result = job.wait(40)
        finally:
            if job.running():
                os.kill(busy["0000"], signal.SIGCONT)
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("the end of a rung", result.err)
        self.assertIn("no answer", result.err)


def wait_for_end(job, seconds):
    try:
        return wait_until(lambda: not job.running(), seconds, "the end")
    except AssertionError:
        return False


class Failures(SweepTest):
    def test_failing_trials_are_recorded_and_the_others_train(self):
        sweep = """
  method: list
  list:
    - {optimizer.learning_rate: 0.05}
    - {optimizer.learning_rate: 1e30}
    - {train.batch_size: 0}
    - {data.path: missing.csv}
    - {train.batch_size: 3}
"""
        for ranks, groups in ((1, 1), (2, 2), (2, 1)):
            run = f"run{ranks}{groups}"
            self.sweep(run, "--groups", groups, ranks=ranks, config=self.config(sweep))
            trials = self.table(run)["trials"]
            self.assertEqual([trial["state"] for trial in trials], ["best", "failed", "failed", "failed", "failed"])
            for trial, words in zip(trials[1:], ("finite|NaN|nan", "batch_size", "missing.csv", "shards")):
                self.assertRegex(trial["error"], words)
            self.assertEqual(self.table(run), self.table("run11"))

    def test_if_all_trials_fail_the_exit_code_is_1(self):
        sweep = "  method: list\n  list: [{optimizer.learning_rate: 1e30}, {optimizer.learning_rate: 2e30}]"
        result = self.sweep("run", ranks=2, code=1, config=self.config(sweep))
        self.assertEqual([trial["state"] for trial in self.table("run")["trials"]], ["failed", "failed"])
        self.assertNotIn("best trial", result.out)

    def test_a_removed_folder_gives_its_trial_another_chance(self):
        sweep = "  method: list\n  list: [{optimizer.learning_rate: 0.05}, {data.path: " + str(self.folder / "later.csv.gz") + "}]"
        self.sweep("run", config=self.config(sweep))
        self.assertEqual(self.table("run")["trials"][1]["state"], "failed")
        (self.folder / "later.csv.gz").symlink_to(DIGITS_DATA)
        self.sweep("run", config=self.config(sweep))
        self.assertEqual(self.table("run")["trials"][1]["state"], "failed")
        for file in (self.folder / "run" / "trials" / "0001").rglob("*"):
            if file.is_file():
                file.unlink()
        self.sweep("run", config=self.config(sweep))
        self.assertEqual(self.table("run")["trials"][1]["state"], "finished")

    def test_mistakes_are_one_error(self):
        cases = (
            ("  keys: {optimizer.learning_rte: [1, 2]}", (), "no trial of the sweep can begin.*learning_rte"),
            ("  keys: {optimizer.learning_rate: [0.1]}\n  metric: acuracy", (), "no evaluation gives 'acuracy'"),
            ("  keys: {optimizer.learning_rate: [0.1, 0.2]}", ("--groups", 4), "4 groups need at least 4 ranks"),
            ("  keys: {train.steps: [10, 20]}\n  halving: {first: 5}", (), "rungs have no common end"),
            ("  keys: {optimizer.learning_rate: [0.1]}\n  mtric: loss", (), "Did you mean 'metric'"),
        )
        for i, (sweep, more, pattern) in enumerate(cases):
            for ranks in (1, 2):
                result = self.sweep(f"run{i}{ranks}", *more, ranks=ranks, code=2, config=self.config(sweep))
                self.assert_one_error(result, 2, "(?s)" + pattern)

    def test_another_sweep_in_the_folder_is_refused(self):
        sweep = "  keys: {optimizer.learning_rate: [0.1, 0.2]}"
        self.sweep("run", config=self.config(sweep))
        self.sweep("run", "--set", "sweep.groups=1", config=self.config(sweep))
        result = self.sweep("run", code=2, config=self.config(sweep.replace("0.2", "0.3")))
        self.assert_one_error(result, 2, "has another sweep")
        result = self.sweep("run", "--set", "train.batch_size=50", code=2, config=self.config(sweep))
        self.assert_one_error(result, 2, "train.batch_size")

    def test_train_and_sweep_do_not_share_a_folder(self):
        config = self.config()
        self.lockstep("train", config, "--run-dir", self.folder / "run", "--steps", 2)
        self.assert_one_error(self.sweep("run", code=2), 2, "a folder of its own")
        text = config.read_text(encoding="utf-8").partition("sweep:")[0]
        config.write_text(text, encoding="utf-8")
        self.assert_one_error(self.sweep("other", code=2, config=config), 2, "no section sweep")


if __name__ == "__main__":
    main()
