# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Best is best: the direction comes from the metric, the best state is kept however slow the disk is, and every command takes
--checkpoint best."""
import json
import os
import unittest

from lockstep_run import DIGITS, LockstepTest, checkpoints, main, records

BY_ACCURACY = ["eval.every_steps=6", "checkpoint.keep_best=1", "checkpoint.keep=1", "checkpoint.best_metric=accuracy"]
# The loss falls for twelve steps and then rises: the best evaluation is neither the first nor the last.
RISES = ["optimizer={gradient_descent: {learning_rate: {piecewise_constant: {boundaries: [12], values: [0.3, 10]}}}}",
         "eval.every_steps=2", "checkpoint.keep_best=1", "checkpoint.keep=1"]


def step_of(path):
    return int(path.stem.partition("-")[2])


class BestTest(LockstepTest):
    def kept(self, run):
        return [step_of(path) for path in checkpoints(self.folder / run)]

    def evaluated(self, run, name="loss"):
        return {record["step"]: record[name] for record in records(self.folder / run, "eval")}

    def best_step(self, run):
        values = self.evaluated(run)
        return min(values, key=lambda step: (values[step], step))


class Direction(BestTest):
    def assert_refused(self, pattern, *sets):
        """By check and by train, before the first step."""
        for command in ("check", "train"):
            words = [word for text in ("train.steps=1", "train.epochs=null", *sets) for word in ("--set", text)]
            self.assert_one_error(self.start(command, DIGITS, "--run-dir", self.folder / "refused", *words).wait(), 2, pattern)
        self.assertFalse((self.folder / "refused" / "metrics.jsonl").exists())

    def assert_good(self, *sets):
        words = [word for text in ("train.steps=1", "train.epochs=null", *sets) for word in ("--set", text)]
        self.assertIn("The configuration is good", self.lockstep("check", DIGITS, "--run-dir", self.folder / "good", *words).out)

    def test_the_largest_accuracy_is_kept(self):
        self.train("run", ranks=2, steps=36, sets=BY_ACCURACY)
        accuracy = self.evaluated("run", "accuracy")
        best = max(accuracy, key=lambda step: (accuracy[step], -step))
        self.assertNotEqual(best, min(accuracy, key=lambda step: (accuracy[step], step)), "nothing to tell apart")
        self.assertEqual(self.kept("run"), sorted({best, 36}))

    def test_an_error_metric_is_better_when_it_is_smaller(self):
        self.train("run", steps=36, sets=[*BY_ACCURACY[:3], "eval.metrics=[hamming_loss]", "checkpoint.best_metric=hamming_loss"])
        wrong = self.evaluated("run", "hamming_loss")
        self.assertEqual(self.kept("run"), sorted({min(wrong, key=lambda step: (wrong[step], step)), 36}))

    def test_a_metric_without_a_direction_needs_the_option(self):
        sets = ["eval.metrics=[mean]", "checkpoint.keep_best=1", "checkpoint.best_metric=mean"]
        self.assert_refused(r"the metric 'mean' does not say whether a smaller or a larger value is better\n"
                            r"  Give checkpoint.best_mode: min or max", *sets)
        self.assert_good(*sets, "checkpoint.best_mode=max")

    def test_a_mode_that_contradicts_the_metric(self):
        contradiction = ["checkpoint.best_metric=accuracy", "checkpoint.best_mode=min"]
        for keep_best in (0, 1):
            self.assert_refused(r"checkpoint.best_mode is min, and a larger 'accuracy' is better\n"
                                r"  Leave checkpoint.best_mode out, or set it to null", *contradiction, f"checkpoint.keep_best={keep_best}")
        self.assert_good(*contradiction, "checkpoint.keep_best=1", "checkpoint.best_mode=null")
        plateau = "optimizer.adam.learning_rate={{reduce_on_plateau: {{initial: 0.01, metric: {}, mode: {}}}}}"
        self.assert_refused("mode is min, and a larger 'accuracy' is better", plateau.format("accuracy", "min"))
        self.assert_refused("mode is max, and a smaller 'loss' is better", plateau.format("loss", "max"))
        self.assert_good(plateau.format("accuracy", "null"))
        sweep = "sweep={{keys: {{seed: [1, 2]}}, metric: {}, mode: {}}}"
        self.assert_refused("sweep.mode is min, and a larger 'accuracy' is better", sweep.format("accuracy", "min"))
        self.assert_good(sweep.format("accuracy", "null"))
        exports = "experiment.exports=[best: {{metric: {}, mode: {}}}]"
        self.assert_refused("the mode of the export is max, and a smaller 'eval/loss' is better", exports.format("eval/loss", "max"))
        self.assert_good(exports.format("accuracy", "max"))

    def test_early_stopping_in_the_wrong_direction(self):
        for metric, wrong, right, better in (("accuracy", "decrease", "increase", "larger"), ("loss", "increase", "decrease", "smaller")):
            hook = "hooks=[stop_if_no_{}: {{metric: eval/{}, max_steps: 9}}]"
            self.assert_refused(rf"hook stop_if_no_{wrong}: a {better} '{metric}' is better.*\n  Use stop_if_no_{right}\.",
                                hook.format(wrong, metric))
            self.assert_good(hook.format(right, metric))

    def test_names_are_checked_where_nothing_uses_them_yet(self):
        self.assert_refused("best_metric: no evaluation gives 'acuracy'\n  Did you mean 'accuracy'", "checkpoint.best_metric=acuracy")
        self.assert_refused("metric: no evaluation gives 'acuracy'\n  Did you mean 'accuracy'", "sweep={keys: {seed: [1, 2]}, metric: acuracy}")
        self.assert_refused("export best: no evaluation gives 'acuracy'\n  Did you mean 'accuracy'", "experiment.exports=[best: {metric: acuracy}]")

    def test_a_schedule_that_follows_accuracy(self):
        result = self.train("run", steps=12, sets=[
            "optimizer={gradient_descent: {learning_rate: {reduce_on_plateau: {initial: 1.0e-12, metric: accuracy, patience: 1}}}}", "eval.every_steps=2"])
        self.assertRegex(result.err, "accuracy has not increased for 2 evaluations")

    def test_a_sweep_by_accuracy(self):
        words = ["--set", "sweep={keys: {optimizer.adam.learning_rate: [1.0e-9, 0.01]}, metric: accuracy}", "--set", "train.epochs=1",
                 "--run-dir", self.folder / "sweep"]
        self.lockstep("sweep", DIGITS, *words)
        table = json.loads((self.folder / "sweep" / "sweep.json").read_text(encoding="utf-8"))
        values = [trial["results"][-1]["value"] for trial in table["trials"]]
        self.assertEqual(table["best"], values.index(max(values)))
        self.assertNotEqual(values[0], values[1])


class Patience(BestTest):
    HOOK = "hooks=[stop_if_no_decrease: {metric: loss, patience: 3}]"

    def test_training_ends_after_so_many_evaluations_without_a_better_one(self):
        whole = self.train("whole", steps=400, sets=[*RISES, self.HOOK])
        best = self.best_step("whole")
        steps = sorted(self.evaluated("whole"))
        self.assertEqual(steps[-1], steps[steps.index(best) + 3])
        self.assertRegex(whole.err, rf"stopping: eval/loss has not decreased since step {best}, where it was [0-9.]+, in 3 evaluations")
        self.train("parts", ranks=2, steps=best + 3, sets=[*RISES, self.HOOK])
        self.train("parts", steps=400, sets=[*RISES, self.HOOK])
        self.assert_same_run("whole", "parts", "resumed while it waits")

    def test_exactly_one_of_patience_and_max_steps(self):
        for options in ("metric: loss", "metric: loss, patience: 2, max_steps: 9"):
            arguments = self.train_arguments("run", steps=1, sets=[f"hooks=[stop_if_no_decrease: {{{options}}}]"])
            self.assert_one_error(self.start(*arguments).wait(), 2, "exactly one of patience and max_steps says how long to wait")


class SlowDisk(BestTest):
    @unittest.skipUnless(os.environ.get("LOCKSTEP_HAS_FAULTS") == "1", "a build without LOCKSTEP_FAULTS")
    def test_the_best_is_kept_however_slow_the_disk_is(self):
        self.train("plain", steps=24, sets=[*RISES, "checkpoint.background=false"])
        best = self.best_step("plain")
        self.assertIn(best, range(4, 22), "the best evaluation is neither the first nor the last")
        self.assertEqual(self.kept("plain"), [best, 24])
        for ranks in (1, 2):
            # The checkpoint of the first evaluation, the best one then, takes three seconds: all steps fit into them.
            self.train(f"slow{ranks}", ranks=ranks, steps=24, sets=RISES, variables={"LOCKSTEP_FAULT": "2:0:slow_write"})
            self.assertEqual(self.kept(f"slow{ranks}"), [best, 24], f"{ranks} ranks")
            self.assert_same_run("plain", f"slow{ranks}")

    @unittest.skipUnless(os.environ.get("LOCKSTEP_HAS_FAULTS") == "1", "a build without LOCKSTEP_FAULTS")
    def test_periodic_checkpoints_are_of_the_steps_at_which_they_are_due(self):
        result = self.train("run", ranks=2, steps=20, sets=["checkpoint.every_steps=4", "checkpoint.keep=0", "checkpoint.every_epochs=0"],
                            variables={"LOCKSTEP_FAULT": "4:0:slow_write"})
        self.assertEqual(self.kept("run"), [4, 8, 12, 16, 20])
        self.assertRegex(result.err, r"checkpoints are due faster than the disk takes them: training has waited [23]\.\d s")


class Choice(BestTest):
    def run_with_a_best(self):
        result = self.train_once("run", steps=24, sets=RISES)
        return result, self.best_step("run")

    def test_training_says_which_one_is_the_best(self):
        result, best = self.run_with_a_best()
        self.assertRegex(result.err, rf"best checkpoint: step {best}, eval/loss [0-9.]+; commands use the last one, step 24, "
                                     "or with --checkpoint best this one")
        early = self.train("early", steps=400, sets=[*RISES, "hooks=[stop_if_no_decrease: {metric: loss, max_steps: 6}]"])
        self.assertRegex(early.err, rf"best checkpoint: step {best}, eval/loss")
        self.assertEqual(self.kept("early")[0], best)

    def test_every_command_takes_it(self):
        _, best = self.run_with_a_best()
        run = self.folder / "run"
        file_of = {word: run / "checkpoints" / f"step-{step:08}.h5" for word, step in (("best", best), ("last", 24))}
        for word, step in (("best", best), ("last", 24)):
            choice = ("--checkpoint", word)
            evaluation = json.loads(self.lockstep("evaluate", run, *choice).out)
            self.assertEqual((evaluation["global_step"], evaluation["checkpoint"]), (step, str(file_of[word])))
            self.assertAlmostEqual(evaluation["loss"], self.evaluated("run")[step], places=6)
            self.assertEqual(self.lockstep("inspect", run, "--digest", *choice).out, self.lockstep("inspect", file_of[word], "--digest").out)
            for name, command in (("weights.h5", ["export", run]), ("named.safetensors", ["export", run]), ("part.h5", ["checkpoint", "export", run])):
                files = []
                for target, more in ((run, choice), (file_of[word], ())):
                    output = self.folder / f"{len(files)}{word}-{name}"
                    self.lockstep(*command[:-1], target, "--output", output, *more)
                    files.append(output.read_bytes() if name.endswith("safetensors") else
                                 self.lockstep("inspect", output, "--digest").out)
                self.assertEqual(files[0], files[1], f"{command}, {word}")
            diff = self.lockstep("checkpoint", "diff", run, file_of[word], *choice).out
            self.assertRegex(diff, rf"^(\d+) of \1 tensors are equal; steps {step} and {step}")
            self.lockstep("checkpoint", "average", run, file_of[word], "--output", self.folder / f"mean-{word}.h5", *choice)
            self.lockstep("report", run, "--output", self.folder / f"{word}.html", *choice)
        self.assertEqual(json.loads(self.lockstep("evaluate", run).out)["global_step"], 24, "without a word it is the last")
        # The number of a step is a word, too.
        self.assertEqual(json.loads(self.lockstep("evaluate", run, "--checkpoint", best).out)["checkpoint"], str(file_of["best"]))
        self.assertEqual(self.lockstep("inspect", run, "--digest", "--checkpoint", best).out, self.lockstep("inspect", file_of["best"], "--digest").out)
        for command in ("evaluate", "inspect"):
            self.assert_one_error(self.lockstep(command, run, "--checkpoint", 7, code=4), 4, rf"has no checkpoint of step 7\n  It has those of step {best}, 24\.")
        ensemble = json.loads(self.lockstep("evaluate", run, run, "--checkpoint", "best").out)
        self.assertEqual(ensemble["ensemble"], [str(file_of["best"])] * 2)

    def test_a_warm_start_from_the_best(self):
        _, best = self.run_with_a_best()
        for which, step in (("best", best), ("last", 24)):
            result = self.train(f"warm-{which}", steps=1, sets=[f"warm_start={{checkpoint: {self.folder / 'run'}, which: {which}}}"])
            self.assertIn(f"step-{step:08}.h5", result.err)

    def test_there_is_none(self):
        self.train("plain", steps=2)
        for command in (["evaluate"], ["inspect"], ["checkpoint", "diff", self.folder / "plain"]):
            result = self.start(*command, self.folder / "plain", "--checkpoint", "best").wait()
            self.assert_one_error(result, 4, "no checkpoint has a metric: none is known as the best\n"
                                             "  Use the last one, or train with checkpoint.keep_best: 1 and an evaluation set.")
        file = checkpoints(self.folder / "plain")[-1]
        self.assert_one_error(self.start("inspect", file, "--checkpoint", "best").wait(), 2, "the best checkpoint is asked for, and this is a file")

    def test_a_run_of_an_older_version(self):
        """Its state file names no best one: the metrics there say which it is."""
        _, best = self.run_with_a_best()
        state = self.folder / "run" / "checkpoint"
        lines = [line for line in state.read_text(encoding="utf-8").splitlines(True) if not line.startswith("best_checkpoint_path")]
        self.assertLess(len(lines), len(state.read_text(encoding="utf-8").splitlines()))
        state.write_text("".join(lines), encoding="utf-8")
        self.assertEqual(json.loads(self.lockstep("evaluate", self.folder / "run", "--checkpoint", "best").out)["global_step"], best)


if __name__ == "__main__":
    main()
