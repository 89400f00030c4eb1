# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Signals: to each rank in turn, to mpirun, to the process group; in training, evaluation, saving and start-up. One to any
one rank is enough, no step is lost, and the run that goes on ends as one that nobody interrupted, record by record."""
import os
import shutil
import signal
import tempfile
import time
import unittest

from lockstep_run import LockstepTest, checkpoints, main, newest_step, records, wait_until

STEPS, EARLY = 360, 40  # of a run, nearly a second; signals come when EARLY are done
SETS = ["eval.every_steps=150"]
LONG_EVALUATION = ["eval.every_steps=30", "eval.batch_size=1", "data.eval.rows=[0, 1797]"]  # some seconds
SAVED_TO_GO_ON, STOPPED_BY_USER = 75, 130


class SignalsTest(LockstepTest):
    shared = None

    def begin(self, run="run", ranks=2, steps=STEPS, sets=SETS, variables=None):
        return self.start(*self.train_arguments(run, steps=steps, sets=sets), ranks=ranks, variables=variables)

    def done(self, run="run"):
        return len(records(self.folder / run))

    def wait_for_step(self, job, step, run="run"):
        wait_until(lambda: not job.running() or self.done(run) >= step, 60, f"step {step}")
        self.assertTrue(job.running(), "it ended before the signal")

    def rank(self, job, rank):
        """The process of a rank; the only one without a launcher."""
        return job.process.pid if rank is None else wait_until(lambda: job.ranks().get(rank), 30, f"rank {rank}")

    def newest(self, run="run"):
        return newest_step(self.folder / run)

    def assert_no_step_lost(self, result, run="run", reason="signal"):
        """Saved behind the last step that was done, and said why."""
        self.assertRegex(result.err, rf"stopping after step \d+: {reason}", str(result))
        self.assertEqual(self.newest(run), self.done(run), str(result))
        self.assertLess(self.done(run), STEPS, "the signal came too late to show anything")

    def whole(self):
        """The run that nobody interrupts: made once, for all tests."""
        if not (self.folder / "whole").exists():
            if self.shared is None:
                type(self).shared = tempfile.TemporaryDirectory(prefix="lockstep-")
                self.train(f"{self.shared.name}/whole", ranks=None, steps=STEPS, sets=SETS, threads=2)
            shutil.copytree(f"{self.shared.name}/whole", self.folder / "whole")

    @classmethod
    def tearDownClass(cls):
        if cls.shared is not None:
            cls.shared.cleanup()

    def assert_ends_as_uninterrupted(self, run="run"):
        self.whole()
        self.train(run, ranks=2, steps=STEPS, sets=SETS)
        self.assert_same_run("whole", run)
        self.assertEqual(records(self.folder / "whole", "eval"), records(self.folder / run, "eval"))
        self.assertGreater(len(records(self.folder / run, "eval")), 0)

    def test_to_each_rank_in_turn(self):
        for number, code in ((signal.SIGUSR1, SAVED_TO_GO_ON), (signal.SIGTERM, SAVED_TO_GO_ON), (signal.SIGINT, STOPPED_BY_USER)):
            run = number.name
            for rank in (0, 1, 2) if number == signal.SIGTERM else (1,):
                before = self.done(run)  # stops of one run, one behind the other
                job = self.begin(run, ranks=3)
                self.wait_for_step(job, before + EARLY, run)
                os.kill(self.rank(job, rank), number)
                result = job.wait()
                self.assertEqual(result.code, code, str(result))
                self.assert_no_step_lost(result, run, f"signal {number.name[3:]}")
            self.assert_ends_as_uninterrupted(run)

    def test_without_a_launcher(self):
        for number, code in ((signal.SIGUSR1, SAVED_TO_GO_ON), (signal.SIGTERM, SAVED_TO_GO_ON), (signal.SIGHUP, SAVED_TO_GO_ON),
                             (signal.SIGINT, STOPPED_BY_USER)):
            run = number.name
            job = self.begin(run, ranks=None)
            self.wait_for_step(job, EARLY, run)
            os.killpg(job.process.pid, number)  # as a terminal does
            result = job.wait()
            self.assertEqual(result.code, code, str(result))
            self.assert_no_step_lost(result, run, f"signal {number.name[3:]}")
        self.assert_ends_as_uninterrupted("SIGTERM")

    def test_hup_stays_ignored_under_nohup(self):
        previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # children inherit it
        self.addCleanup(signal.signal, signal.SIGHUP, previous)
        job = self.begin(ranks=None)
        self.wait_for_step(job, EARLY)
        os.kill(job.process.pid, signal.SIGHUP)
        self.assertEqual(job.wait().code, 0)

    def test_usr2_saves_and_goes_on(self):
        for rank in (0, 1):
            run = f"rank-{rank}"
            job = self.begin(run)
            self.wait_for_step(job, EARLY, run)
            os.kill(self.rank(job, rank), signal.SIGUSR2)
            wait_until(lambda: not job.running() or checkpoints(self.folder / run), 60, "a checkpoint")
            result = job.wait()
            self.assertEqual(result.code, 0, str(result))
            self.assertEqual(len(checkpoints(self.folder / run)), 2, "one by the signal, one at the end")
        self.assert_ends_as_uninterrupted("rank-1")

    def test_to_mpirun(self):
        """It forwards USR1 and USR2. TERM and INT it takes itself, and ends its ranks two seconds later: enough, because
        it lets them know at once. Its exit code is its own then."""
        for number, code, reason in ((signal.SIGUSR1, SAVED_TO_GO_ON, "signal USR1"), (signal.SIGTERM, 1, "mpirun is ending the run"),
                                     (signal.SIGINT, 1, "mpirun is ending the run")):
            for to_group in (False, True):  # mpirun alone is in its process group
                run = f"{number.name}-{to_group}"
                job = self.begin(run)
                self.wait_for_step(job, EARLY, run)
                (os.killpg if to_group else os.kill)(job.process.pid, number)
                result = job.wait()
                self.assertEqual(result.code, code, str(result))
                self.assert_no_step_lost(result, run, reason)
        self.assert_ends_as_uninterrupted(run)

    def test_usr2_to_mpirun_is_one_checkpoint(self):
        job = self.begin(ranks=3)
        self.wait_for_step(job, EARLY)
        os.killpg(job.process.pid, signal.SIGUSR2)
        result = job.wait()
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(len(checkpoints(self.folder / "run")), 2, "one by the signal, one at the end")

    def test_to_all_ranks_and_mpirun_at_once_and_again(self):
        """As srun and scancel do, and a user in a hurry: duplicates change nothing."""
        job = self.begin(ranks=3)
        self.wait_for_step(job, EARLY)
        pids = [job.process.pid, *job.ranks().values()]
        for number in (signal.SIGUSR1, signal.SIGUSR1, signal.SIGUSR1):
            for pid in pids:
                os.kill(pid, number)
        result = job.wait()
        self.assertEqual(result.code, SAVED_TO_GO_ON, str(result))
        self.assert_no_step_lost(result)
        self.assert_ends_as_uninterrupted()

    def test_in_an_evaluation(self):
        """It is given up, and the next job makes up for it: whether it comes between steps or at the end."""
        for at, steps in ((30, 60), (60, 60)):
            run = f"run-{at}"
            sets = LONG_EVALUATION if at < steps else [*LONG_EVALUATION, "eval.every_steps=1000"]
            for rank in (1, 0):  # twice in the same evaluation
                job = self.begin(run, steps=steps, sets=sets)
                pid = self.rank(job, rank)
                wait_until(lambda: not job.running() or self.evaluating(at, run), 60, "the evaluation")
                os.kill(pid, signal.SIGTERM)
                result = job.wait()
                self.assertEqual(result.code, SAVED_TO_GO_ON, str(result))
                self.assertEqual((self.newest(run), self.done(run)), (at, at), str(result))
                self.assertEqual(records(self.folder / run, "eval"), [], "it had ended already")
            self.train("whole-" + run, ranks=None, steps=steps, sets=sets, threads=2)
            self.train(run, ranks=2, steps=steps, sets=sets)
            self.assert_same_run("whole-" + run, run)
            evaluations = records(self.folder / run, "eval")
            self.assertEqual(records(self.folder / ("whole-" + run), "eval"), evaluations)
            self.assertEqual([record["step"] for record in evaluations], [30, 60] if at < steps else [60])
            self.assertIn("this run is finished", self.train(run, ranks=2, steps=steps, sets=sets).err)

    def evaluating(self, at, run):
        """The record of the step is written just before the evaluation begins; a run that goes on has it already."""
        log = self.folder / run / "lockstep.log"
        text = log.read_text(encoding="utf-8") if log.exists() else ""
        return self.done(run) >= at and text.count(" parameters, ") > text.count("stopping after")

    @unittest.skipUnless(os.environ.get("LOCKSTEP_FAULTS"), "a build without LOCKSTEP_FAULTS")
    def test_while_a_checkpoint_is_written(self):
        for background in ("true", "false"):
            run = f"background-{background}"
            sets = [*SETS, "checkpoint.every_steps=60", f"checkpoint.background={background}"]
            job = self.begin(run, sets=sets, variables={"LOCKSTEP_FAULT": "60:0:slow_write"})
            folder = self.folder / run / "checkpoints"
            wait_until(lambda: not job.running() or folder.exists() and list(folder.glob(".*")), 60, "a temporary file")
            os.kill(self.rank(job, 1), signal.SIGUSR1)
            result = job.wait()
            self.assertEqual(result.code, SAVED_TO_GO_ON, str(result))
            self.assert_no_step_lost(result, run)
            self.assertIn(folder / "step-00000060.h5", checkpoints(self.folder / run))
            self.assert_ends_as_uninterrupted(run)

    @unittest.skipUnless(os.environ.get("LOCKSTEP_FAULTS"), "a build without LOCKSTEP_FAULTS")
    def test_second_int_ends_at_once_a_duplicate_does_not(self):
        # The last checkpoint takes three seconds: time for a second signal.
        job = self.begin(ranks=None, variables={"LOCKSTEP_FAULT": "1:0:slow_write"})
        self.wait_for_step(job, EARLY)
        os.kill(job.process.pid, signal.SIGINT)
        time.sleep(0.1)
        os.kill(job.process.pid, signal.SIGINT)  # the same Ctrl-C, forwarded by a launcher
        wait_until(lambda: list((self.folder / "run" / "checkpoints").glob(".*")), 60, "the last checkpoint")
        time.sleep(1.2)
        self.assertTrue(job.running(), "two within a second are one")
        os.kill(job.process.pid, signal.SIGINT)
        result = job.wait(limit=10)
        self.assertEqual(result.code, -signal.SIGINT, str(result))
        self.assertIn("ending at once, without saving", result.err)
        self.assertEqual(checkpoints(self.folder / "run"), [])
        self.assert_ends_as_uninterrupted()

    def test_before_the_first_step(self):
        # It waits for another run, for ever: time for a signal.
        hook = "hooks=[{wait_for_step: {run_dir: nowhere, step: 5, poll_seconds: 0.05, timeout_seconds: 600}}]"
        for ranks, target, number, code in ((2, 1, signal.SIGTERM, SAVED_TO_GO_ON), (2, 0, signal.SIGINT, STOPPED_BY_USER),
                                            (None, None, signal.SIGUSR1, SAVED_TO_GO_ON)):
            run = f"{target}"
            job = self.begin(run, ranks=ranks, sets=[*SETS, hook])
            log = self.folder / run / "lockstep.log"
            wait_until(lambda: log.exists() and "waiting for step" in log.read_text(encoding="utf-8"), 60, "the hook")
            os.kill(self.rank(job, target), number)
            result = job.wait(limit=30)
            self.assertEqual(result.code, code, str(result))
            self.assertRegex(result.err, "stopping (after|before)", str(result))
            self.assertEqual(self.done(run), 0)
        self.assert_ends_as_uninterrupted("1")

    def test_while_it_starts(self):
        """At some moments between the first sign of life and the first step."""
        for i in range(3):
            run = f"run-{i}"
            job = self.begin(run)
            wait_until(lambda: (self.folder / run / ".lock").exists(), 60, "the run directory")
            time.sleep(0.02 * i)
            os.kill(self.rank(job, i % 2), signal.SIGUSR1)
            result = job.wait()
            self.assertEqual(result.code, SAVED_TO_GO_ON, str(result))
            self.assertRegex(result.err, "stopping (after|before)", str(result))
        self.assert_ends_as_uninterrupted(run)


if __name__ == "__main__":
    main()
