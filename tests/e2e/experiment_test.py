# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""`lockstep experiment`: the trainings and evaluations of each schedule, also when jobs were killed between them."""
import json
import unittest

from lockstep_run import DIGITS, LockstepTest, checkpoints, main, newest_step, records, wait_until

COMMON = ("eval.every_epochs=0", "checkpoint.every_epochs=0", "checkpoint.every_steps=10", "summary.every_steps=1",
          "experiment.eval_delay_seconds=0", "experiment.throttle_seconds=0")
ENDLESS = 100_000


class ExperimentTest(LockstepTest):
    def arguments(self, schedule, run, steps, *sets):
        words = ["experiment", DIGITS, "--schedule", schedule, "--run-dir", self.folder / run, "--threads", 1]
        for override in (*COMMON, "train.epochs=null", f"train.steps={steps}", *sets):
            words += ["--set", override]
        return words

    def experiment(self, schedule, run, steps, *sets, ranks=None, code=0):
        return self.lockstep(*self.arguments(schedule, run, steps, *sets), ranks=ranks, code=code)

    def killed_after(self, evaluations, schedule, run, *sets):
        """Starts a job without an end, kills it after `evaluations` evaluations. Returns the step to resume at."""
        job = self.start(*self.arguments(schedule, run, ENDLESS, *sets), ranks=2)
        if "continuous" in schedule:  # the last one is complete with its exports
            mark = self.folder / run / "eval_one_pass" / "evaluated"
            wait_until(lambda: len(self.evaluated(run, "eval_one_pass")) >= evaluations and mark.exists()
                       and int(mark.read_text(encoding="utf-8").split()[0]) == self.evaluated(run, "eval_one_pass")[-1],
                       60, f"{evaluations} evaluations")
        else:
            mark = self.folder / run / "export" / "exported"
            wait_until(lambda: len(self.exported(run, "each")) >= evaluations and mark.exists()
                       and int(mark.read_text(encoding="utf-8").split()[0]) == self.exported(run, "each")[-1],
                       60, f"{evaluations} exports")
        job.kill()
        return newest_step(self.folder / run)

    def evaluated(self, run, folder=""):
        """The steps of the recorded evaluations in their order."""
        return [record["step"] for record in records(self.folder / run / folder, "eval")]

    def exported(self, run, name):
        return sorted(int(path.name.removeprefix("step-")) for path in (self.folder / run / "export" / name).glob("step-*"))

    @staticmethod
    def lines(result):
        return [json.loads(line) for line in result.out.splitlines() if line.startswith("{")]

    def assert_trained_as_at_once(self, run, steps):
        """Each step once, and the bits of one job that was never killed."""
        self.assertEqual([record["step"] for record in records(self.folder / run)], list(range(1, steps + 1)))
        self.lockstep("train", DIGITS, "--run-dir", self.folder / "once", "--steps", steps, "--threads", 1,
                      *(word for override in COMMON for word in ("--set", override)), ranks=1)
        self.assertEqual(self.digest(run), self.digest("once"))


class Experiment(ExperimentTest):
    def test_accepted_changes(self):
        """As for train: refused without the option, and needed once."""
        self.experiment("train", "run", 10)
        changed = ("optimizer={adam: {learning_rate: 0.002}}",)
        refused = self.start(*self.arguments("train", "run", 20, *changed)).wait()
        self.assert_one_error(refused, 2, r"would change the result(.|\n)*--accept-changes")
        accepted = self.lockstep(*self.arguments("train_and_evaluate", "run", 20, *changed), "--accept-changes", ranks=2)
        self.assertIn("the configuration is another one (--accept-changes)", accepted.err)
        self.experiment("train", "run", 30, *changed)
        self.assertEqual(newest_step(self.folder / "run"), 30)

    def test_train_and_evaluate_killed_and_resumed_evaluates_after_checkpoints_and_at_the_end(self):
        sets = ("experiment.min_eval_frequency=15", "checkpoint.background=false",
                "experiment.exports=[final, latest: {name: each, keep: 0}]")  # checkpoints are 10 steps apart: every 20
        end = self.killed_after(2, "train_and_evaluate", "run", *sets) + 25
        self.assertEqual(self.exported("run", "final"), [])  # not at the end yet
        result = self.experiment("train_and_evaluate", "run", end, *sets, ranks=3)
        self.assertEqual(self.evaluated("run"), [*range(20, end, 20), end])
        # No evaluation apart from training, unless the job was killed between one and its exports.
        self.assertLessEqual(len(self.lines(result)), 1)
        self.assertEqual(self.exported("run", "each"), [*range(20, end, 20), end])
        self.assertEqual(self.exported("run", "final"), [end])
        self.assert_trained_as_at_once("run", end)
        export = self.folder / "run" / "export" / "final" / f"step-{end:08}"  # a run directory for evaluate and predict
        of_export, of_run = (json.loads(self.lockstep("evaluate", at, ranks=2).out) for at in (export, self.folder / "run"))
        self.assertEqual((of_export["loss"], of_export["global_step"]), (of_run["loss"], end))
        again = self.experiment("train_and_evaluate", "run", end, *sets, ranks=2)  # killed before its exports, say
        self.assertEqual([line["global_step"] for line in self.lines(again)], [end])
        self.assertEqual(self.exported("run", "final"), [end])

    def test_continuous_train_and_eval_killed_and_resumed_alternates_to_the_end(self):
        sets = ("experiment.train_steps_per_iteration=20", "experiment.exports=[latest: {keep: 2}]")
        at = self.killed_after(2, "continuous_train_and_eval", "run", *sets)
        end = at // 20 * 20 + 50
        self.experiment("continuous_train_and_eval", "run", end, *sets, ranks=3)
        # Each evaluation once, unless the job was killed in the middle of one.
        steps = self.evaluated("run", "eval_one_pass")
        self.assertEqual(sorted(set(steps)), [*range(20, end, 20), end])
        self.assertLessEqual(len(steps) - len(set(steps)), 1)
        again = self.experiment("continuous_train_and_eval", "run", end, *sets, ranks=1)
        self.assertEqual(self.lines(again), [])  # a run at its end is evaluated
        self.assertEqual(self.evaluated("run"), [])  # none during training
        jobs = (self.folder / "run" / "jobs.jsonl").read_text(encoding="utf-8").splitlines()
        jobs.append((self.folder / "run" / "status.json").read_text(encoding="utf-8"))
        begins = [json.loads(job)["begin_step"] for job in jobs]
        self.assertEqual(begins[-3:], [at, at // 20 * 20 + 20, at // 20 * 20 + 40])  # the trainings of the second job
        self.assertEqual(self.exported("run", "latest"), [end - 10, end])
        self.assert_trained_as_at_once("run", end)

    def test_train_evaluates_nothing_and_evaluate_and_test_evaluate_once(self):
        self.assertEqual(self.lines(self.experiment("train", "run", 7, ranks=2)), [])
        self.assertEqual(self.evaluated("run"), [])
        self.assert_trained_as_at_once("run", 7)
        line, = self.lines(self.experiment("evaluate", "run", 7, ranks=3))
        self.assertEqual((line["global_step"], line["samples"]), (7, 297))
        self.assertEqual(self.evaluated("run", "eval_one_pass"), [7])
        for steps in (1, 2):  # each test is a step
            line, = self.lines(self.experiment("test", "tested", 7, ranks=2))
            self.assertEqual(line["global_step"], steps)

    def test_continuous_eval_beside_a_training_that_is_killed_and_resumed_ends_with_it(self):
        sets = ("experiment.exports=[latest: {name: newest, keep: 1}, best]",)
        job = self.start(*self.arguments("train", "run", ENDLESS), ranks=1)
        wait_until(lambda: checkpoints(self.folder / "run"), 60, "a checkpoint")
        job.kill()
        (self.folder / "run" / "checkpoint").unlink(missing_ok=True)  # as if killed before it was written
        end = newest_step(self.folder / "run") + 10
        watch = self.start(*self.arguments("continuous_eval", "run", end, *sets), ranks=2)
        wait_until(lambda: self.evaluated("run", "eval_continuous"), 60, "a first evaluation")
        self.experiment("train", "run", end, ranks=1)
        result = watch.wait()
        self.assertEqual(result.code, 0, str(result))
        steps = [line["global_step"] for line in self.lines(result)]
        self.assertEqual((steps[0], steps[-1]), (end - 10, end))
        self.assertEqual(steps, self.evaluated("run", "eval_continuous"))
        self.assertEqual(self.exported("run", "newest"), [end])
        self.assertTrue(self.exported("run", "best"))
        on_train, = self.lines(self.experiment("continuous_eval_on_train_data", "run", end, ranks=3))
        self.assertEqual((on_train["global_step"], on_train["samples"]), (end, 1500))

    def test_check_says_what_it_will_do_and_refuses_what_cannot_be(self):
        def check(*sets, code=0):
            words = [word for override in sets for word in ("--set", override)]
            return self.lockstep("check", DIGITS, *words, code=code)
        self.assertNotIn("experiment", check().out)
        told = check("experiment.min_eval_frequency=15", "checkpoint.every_steps=10",
                     "experiment.exports=[best: {metric: accuracy, mode: max}]").out
        self.assertRegex(told, r"experiment +train_and_evaluate: an evaluation every 20 steps, and at the end")
        self.assertRegex(told, r"export/best: a checkpoint with the largest accuracy so far, the newest 5 stay")
        for wrong, pattern in (("experiment.exports=[best: {metric: recall}]", "no evaluation gives 'recall'"),
                               ("experiment.exports=[latest, latest]", "two exports have the name latest"),
                               ("experiment.exports=[latest: {name: ../x}]", "is no name of a folder"),
                               ("experiment.schedule=train_and_eval", "train_and_evaluate"),
                               ("experiment.eval_delay_secs=1", "eval_delay_seconds"),
                               ("data.eval=null", "there is no evaluation set")):
            self.assert_one_error(check("experiment.min_eval_frequency=0", wrong, code=2), 2, pattern)
        result = self.experiment("training", "run", 7, ranks=2, code=2)
        self.assertRegex(result.err, "one of train_and_evaluate, train, evaluate")
        result = self.experiment("test", "run", 7, "data.eval=null", ranks=2, code=2)
        self.assertRegex(result.err, "test evaluates, and there is no evaluation set")


if __name__ == "__main__":
    main()
