# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Hooks that a configuration names, by their effect; plugins; errors of hooks on one rank."""
import json
import os
import re
import unittest

from lockstep_run import LockstepTest, checkpoints, main, records, wait_until

EARLY = ["eval.every_steps=4", "checkpoint.every_steps=4"]


def hooks(*entries):
    return f"hooks=[{', '.join(entries)}]"


class HooksTest(LockstepTest):
    def test_stop_after_steps_counts_each_job_and_saves(self):
        sets = [hooks("stop_after_steps: {steps: 5}")]
        for expected in (5, 10):
            result = self.train("run", ranks=2, steps=50, sets=sets)
            self.assertIn("stopping: 5 steps are done", result.err)
            self.assertEqual(checkpoints(self.folder / "run")[-1].name, f"step-{expected:08}.h5")
        self.train("whole", steps=10)
        self.assertEqual(self.header(self.folder / "run")["digest"], self.header(self.folder / "whole")["digest"])

    def test_stop_after_seconds_ends_all_ranks_in_order(self):
        result = self.train("run", ranks=3, steps=10**6, sets=[hooks("stop_after_seconds: {seconds: 0.5}")])
        self.assertIn("stopping: 0.5 seconds have passed", result.err)
        self.assertEqual(len(checkpoints(self.folder / "run")), 1)

    def test_early_stopping_same_when_resumed(self):
        early = [*EARLY, hooks("stop_if_no_decrease: {metric: eval/loss, max_steps: 12, min_steps: 8}"),
                 "optimizer={momentum: {learning_rate: 0.05, momentum: 0.99}}", "checkpoint.keep_best=1", "checkpoint.best_metric=accuracy",
                 "checkpoint.best_mode=max"]
        self.train("whole", ranks=1, steps=400, sets=early)
        end = self.header(self.folder / "whole")["global_step"]
        self.assertLess(end, 400, "nothing was stopped")
        self.assertGreater(end, 24)
        for at in (4, 7, 24, end - 4):  # 24: between two epochs
            run = f"parts-{at}"
            self.train(run, ranks=2, steps=at, sets=early)
            self.train(run, ranks=3, steps=400, sets=early)
            self.assert_same_run("whole", run, f"stopped at step {at}")

    def test_hooks_of_one_kind_have_states_of_their_own(self):
        """Each is known by its number in the list; a single one has no number."""
        def state(run):
            names = json.loads(self.lockstep("inspect", self.folder / run, "--json").out)["tensors"]
            return sorted(name["path"].removeprefix("state/hooks/") for name in names if name["path"].startswith("state/hooks/stop"))
        both = [*EARLY, "eval.metrics=[mean_iou]",
                hooks("stop_if_no_increase: {metric: mean_iou, patience: 100}", "stop_if_no_decrease: {metric: loss, max_steps: 12, min_steps: 8}",
                      "stop_if_no_increase: {metric: accuracy, patience: 3}", "logging: {tensors: [loss], every_steps: 100}",
                      "logging: {tensors: [loss], every_steps: 50}", "stop_if_no_increase: {metric: eval/loss, patience: 100}"),
                "optimizer={momentum: {learning_rate: 0.05, momentum: 0.99}}"]
        self.assert_one_error(self.start(*self.train_arguments("wrong", steps=9, sets=both)).wait(), 2,
                              "hook stop_if_no_increase_3: a smaller 'loss' is better")
        both[3] = both[3].replace(", stop_if_no_increase: {metric: eval/loss, patience: 100}", "")
        whole = self.train("whole", ranks=1, steps=400, sets=both)
        end = self.header(self.folder / "whole")["global_step"]
        self.assertLess(end, 400, "nothing was stopped")
        self.assertRegex(whole.err, "stopping: eval/(loss|accuracy) has not")
        self.assertEqual(state("whole"), ["stop_if_no_decrease/best", "stop_if_no_increase/best", "stop_if_no_increase/worse",
                                          "stop_if_no_increase_2/best", "stop_if_no_increase_2/worse"])
        self.train("parts", ranks=2, steps=end - 4, sets=both)
        self.train("parts", ranks=3, steps=400, sets=both)
        self.assert_same_run("whole", "parts", "resumed with several hooks")

    def test_a_metric_that_no_evaluation_gives_is_named(self):
        arguments = self.train_arguments("run", steps=20, sets=[*EARLY, hooks("stop_if_higher: {metric: eval/f1, threshold: 1}")])
        self.assert_one_error(self.start(*arguments, ranks=2).wait(), 2, r"hook stop_if_higher.*no evaluation gives the metric 'eval/f1'\n.*eval/accuracy, eval/loss")
        self.assertEqual(records(self.folder / "run"), [], "it is found before the first step")

    def test_logging_shows_numbers_and_variables(self):
        result = self.train("run", ranks=2, steps=7, sets=[
            hooks("logging: {tensors: [loss, conv1/kernel], every_steps: 3, at_end: true}")])
        lines = re.findall(r"step (\d+): loss = ([0-9.]+), conv1/kernel = mean \S+ norm ([0-9.]+)( \([0-9.]+ s\))?", result.err)
        self.assertEqual([line[0] for line in lines], ["1", "3", "6", "7"], result.err)
        self.assertEqual([bool(line[3]) for line in lines], [False, True, True, True])
        self.assertGreater(float(lines[0][2]), 0)
        arguments = self.train_arguments("other", steps=7, sets=[hooks("logging: {tensors: [lost], every_steps: 3}")])
        self.assert_one_error(self.start(*arguments, ranks=2).wait(), 2, "there is no tensor 'lost'")

    def test_profile_has_every_rank_thread_and_layer(self):
        self.train("run", ranks=2, threads=2, steps=9, sets=[
            hooks("profile: {first_step: 3, last_step: 4, every_steps: 5}"), "comm.overlap=on", "checkpoint.every_steps=1"])
        files = sorted((self.folder / "run" / "profile").iterdir())
        self.assertEqual([file.name for file in files], ["trace-00000003-00000004.json", "trace-00000008-00000009.json"])
        events = json.loads(files[0].read_text(encoding="utf-8"))["traceEvents"]
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        for rank in (0, 1):
            self.assertIn(f"rank {rank} (", next(e["args"]["name"] for e in events if e["name"] == "process_name" and e["pid"] == rank))
            threads = {name for (pid, _), name in names.items() if pid == rank}
            saving = {"checkpoint writer"} if rank == 0 else set()
            self.assertEqual(threads - {"checkpoint writer"}, {"main", "compute 1", "communication"})
            self.assertLessEqual(threads & {"checkpoint writer"}, saving)
            spans = [e for e in events if e["ph"] == "X" and e["pid"] == rank]
            for category in ("forward", "backward", "communication", "waiting", "input", "update"):
                self.assertTrue([e for e in spans if e["cat"] == category], f"rank {rank} has no {category}")
            for category in ("forward", "backward"):  # eight shards in two steps, half of them this rank's
                layer = [e for e in spans if e["cat"] == category and e["name"] == "conv1"]
                self.assertEqual(len(layer), 8, category)
        for event in events:
            if event["ph"] == "X":
                self.assertGreaterEqual(event["ts"], 0)
                self.assertGreaterEqual(event["dur"], 0)
                self.assertIn((event["pid"], event["tid"]), names)

    def test_profile_shows_the_checkpoint_writer(self):
        # Of the many checkpoints in a window of a second and more some begin and end within it, however slow the disk.
        self.train("run", steps=120, sets=[f"plugins=[{os.environ['LOCKSTEP_SLOW_PLUGIN']}]", "checkpoint.every_steps=1",
                                           hooks("profile: {first_step: 2, last_step: 119}", "slow: {seconds: 0.012}")])
        file = self.folder / "run" / "profile" / "trace-00000002-00000119.json"
        self.assertIn("saving", {e.get("cat") for e in json.loads(file.read_text(encoding="utf-8"))["traceEvents"]})

    def test_a_profile_does_not_change_the_bits(self):
        self.train("plain", ranks=2, steps=6)
        self.train("profiled", ranks=2, steps=6, sets=[hooks("profile: {first_step: 2, last_step: 5}")])
        self.assert_same_run("plain", "profiled")

    def test_wait_for_step_waits_with_a_time_limit(self):
        waiting = self.start(*self.train_arguments("second", steps=2, sets=[
            hooks(f"wait_for_step: {{run_dir: {self.folder / 'first'}, step: 4, poll_seconds: 0.05}}")]), ranks=2)
        wait_until(lambda: (self.folder / "second" / "lockstep.log").exists() and
                   "waiting for step 4" in (self.folder / "second" / "lockstep.log").read_text(encoding="utf-8"), 60, "the second run to wait")
        self.train("first", steps=3)
        self.assertTrue(waiting.running(), "step 3 is not step 4")
        self.assertEqual(records(self.folder / "second"), [])
        self.train("first", steps=4)
        self.assertEqual(waiting.wait().code, 0)
        self.assertEqual(len(records(self.folder / "second")), 2)
        arguments = self.train_arguments("third", steps=2, sets=[
            hooks(f"wait_for_step: {{run_dir: {self.folder / 'first'}, step: 5, poll_seconds: 0.05, timeout_seconds: 0.2}}")])
        self.assert_one_error(self.start(*arguments, ranks=2).wait(), 4, "for a checkpoint of step 5, and there is only one of step 4")

    def test_non_finite_loss_is_error_stop_or_skip(self):
        rate = "optimizer={gradient_descent: {learning_rate: 1e30}}"
        self.assert_one_error(self.start(*self.train_arguments("error", steps=9, sets=[rate]), ranks=2).wait(), 1,
                              r"hook nan_guard, before_update: the loss of step \d is -?(nan|inf)")
        result = self.train("stop", ranks=2, steps=9, sets=[rate, "train.on_nan=stop"])
        step = int(re.search(r"stopping: the loss of step (\d) is", result.err)[1])
        self.assertEqual(self.header(self.folder / "stop")["global_step"], step)
        self.assertLess(step, 9)
        result = self.train("skip", ranks=2, steps=9, sets=[rate, "train.on_nan=skip"])
        self.assertRegex(result.err, r"the loss of step \d is \S+: training has diverged: this step's update is skipped")
        self.assertEqual(self.header(self.folder / "skip")["global_step"], 9)

    def test_a_checkpoint_at_the_start_and_by_the_clock(self):
        self.train_until_checkpoints("run", 3, ["checkpoint.at_start=true", "checkpoint.every_seconds=0.02"])
        steps = [int(path.stem[5:]) for path in checkpoints(self.folder / "run")]
        self.assertEqual(steps[0], 0)
        self.assertGreater(len(steps), 2)

    def test_unknown_hooks_are_found_at_the_start(self):
        for entry, pattern in (("profil", "unknown hook 'profil'.*\n.*Did you mean 'profile'"),
                               ("profile: {frist_step: 3}", "unknown key 'frist_step'"),
                               ("profile: {first_step: 9, last_step: 3}", "last_step 3 is before first_step 9"),
                               ("logging", "neither every_steps nor every_seconds nor at_end")):
            arguments = self.train_arguments("run", steps=2, sets=[hooks(entry)])
            self.assert_one_error(self.start(*arguments, ranks=2).wait(), 2, pattern)
        self.assertFalse((self.folder / "run").exists())


class PluginTest(LockstepTest):
    HEARTBEAT = os.environ["LOCKSTEP_HEARTBEAT_PLUGIN"]
    FAILING = os.environ["LOCKSTEP_FAILING_PLUGIN"]

    def test_a_hook_of_a_plugin_runs(self):
        self.train("run", ranks=2, steps=5, sets=[f"plugins={self.HEARTBEAT}", hooks("heartbeat: {every_seconds: 0.001}")])
        self.assertEqual((self.folder / "run" / "heartbeat").read_text(encoding="utf-8"), "finished 5\n")
        self.train("plain", ranks=3, steps=5)
        self.assert_same_run("plain", "run")

    def test_hook_error_on_one_rank_stops_all(self):
        for rank in (0, 2):
            for method in ("begin", "after_create_session", "before_run", "after_run", "end"):
                arguments = self.train_arguments(f"run-{rank}-{method}", steps=5, sets=[
                    f"plugins={self.FAILING}", hooks(f"failing: {{method: {method}, rank: {rank}}}")])
                result = self.start(*arguments, ranks=3).wait(60)
                self.assert_one_error(result, 1, rf"hook failing, {method}: as it was asked to \(on rank {rank}, host ")

    def test_what_is_no_plugin_is_refused(self):
        other = self.folder / "other.so"
        other.write_text("no shared object", encoding="utf-8")
        for path, pattern in ((self.folder / "absent.so", "cannot load the plugin"), (other, "cannot load the plugin")):
            arguments = self.train_arguments("run", steps=2, sets=[f"plugins={path}"])
            self.assert_one_error(self.start(*arguments, ranks=2).wait(), 2, pattern)


if __name__ == "__main__":
    main()
