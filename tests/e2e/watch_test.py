# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""`lockstep watch`: a job that evaluates the checkpoints of a run that another job trains."""
import json
import os
import signal
import unittest

from lockstep_run import LockstepTest, main, newest_step, wait_until

FAST = ("--throttle", "0")


class WatchTest(LockstepTest):
    def watch(self, run, *arguments, ranks=None):
        return self.start("watch", self.folder / run, *arguments, ranks=ranks)

    @staticmethod
    def lines(result):
        return [json.loads(line) for line in result.out.splitlines() if line.startswith("{")]

    def recorded(self, run, name="continuous"):
        path = self.folder / run / f"eval_{name}" / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Watch(WatchTest):
    def test_beside_a_job_that_is_killed_and_goes_on_each_checkpoint_is_evaluated_until_the_run_ends(self):
        watch = self.watch("run", *FAST, ranks=2)  # before there is a run directory
        sets = ["checkpoint.every_steps=10"]
        job = self.start(*self.train_arguments("run", steps=100_000, sets=sets), ranks=1)
        wait_until(lambda: (self.folder / "run" / "eval_continuous" / "metrics.jsonl").exists(), 60, "a first evaluation")
        job.kill()
        end = newest_step(self.folder / "run") + 10
        self.train("run", ranks=2, steps=end, sets=sets)
        result = watch.wait()
        self.assertEqual(result.code, 0, str(result))
        steps = [line["global_step"] for line in self.lines(result)]
        self.assertEqual(steps[-1], end)
        self.assertGreater(len(steps), 1)
        self.assertEqual(steps, [record["step"] for record in self.recorded("run")])
        # The numbers are those of an evaluation by hand, on another number of ranks.
        alone = json.loads(self.lockstep("evaluate", self.folder / "run").out)
        last = self.lines(result)[-1]
        self.assertEqual((alone["loss"], alone["accuracy"]), (last["loss"], last["accuracy"]))

    def test_a_finished_run_is_evaluated_once(self):
        self.train("run", ranks=1, steps=3)
        result = self.watch("run", "--name", "again", *FAST).wait()
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual([line["global_step"] for line in self.lines(result)], [3])
        self.assertEqual([record["step"] for record in self.recorded("run", "again")], [3])

    def test_a_signal_ends_it(self):
        job = self.watch("run", *FAST)
        wait_until(lambda: b"does not exist yet" in os.pread(job.err.fileno(), 1 << 16, 0), 30, "the warning")
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.wait().code, 130)

    def test_no_checkpoint_and_a_wrong_name_are_errors(self):
        result = self.watch("nothing", *FAST, "--max-wait", "0.5").wait()
        self.assertEqual(result.code, 4, str(result))
        self.assertIn("no new checkpoint for", result.err)
        self.assertEqual(result.err.count("error:"), 1)
        result = self.watch("nothing", "--name", "../x", *FAST, ranks=2).wait()  # before any wait
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("no name for an evaluation", result.err)
        self.assertEqual(result.err.count("error:"), 1)


if __name__ == "__main__":
    main()
