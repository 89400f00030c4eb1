# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A rank dies or stops in the middle of a run: the run ends in time with a code other than 0, and loses nothing."""
import os
import platform
import re
import signal
import time
import unittest

from lockstep_run import LockstepTest, alive, checkpoints, main, wait_until

STEPS = 4000  # far more than any of these runs completes
EVERY = 20    # steps between two checkpoints


class FaultsTest(LockstepTest):
    def disturbed(self, ranks, signal_number, victim, limit, sets=()):
        """Sends a signal to one rank during a run. Returns the result of mpirun."""
        options = {"steps": STEPS, "sets": [f"checkpoint.every_steps={EVERY}", *sets]}
        job = self.start(*self.train_arguments("run", **options), ranks=ranks)
        wait_until(lambda: not job.running() or len(checkpoints(self.folder / "run")) >= 2, 60, "two checkpoints")
        pids = job.ranks()
        self.assertEqual(sorted(pids), list(range(ranks)))
        begin = time.monotonic()
        os.kill(pids[victim], signal_number)
        result = job.wait(limit=60)
        seconds = time.monotonic() - begin
        self.assertNotEqual(result.code, 0, str(result))
        self.assertLess(seconds, limit, str(result))
        for rank, pid in pids.items():
            wait_until(lambda: not alive(pid), 10, f"the process of rank {rank} to be gone")
        return result

    def assert_resumes(self, ranks):
        """The run resumes and ends with the bits of an undisturbed run."""
        reached = self.header(self.folder / "run")["global_step"]
        self.assertGreaterEqual(reached, EVERY)  # a file that the state file does not name yet does not count
        self.assertLess(reached, STEPS)
        resumed = self.train("run", ranks=ranks, steps=reached + 10)
        self.assertIn(f"continuing at step {reached}", resumed.err)
        self.train("whole", ranks=None, steps=reached + 10)
        self.assert_same_run("whole", "run")

    def test_killed_rank(self):
        for ranks, victim, resumed_on in ((2, 1, 2), (3, 0, 2)):  # also the chief
            with self.subTest(ranks=ranks, victim=victim):
                self.folder = self.folder / f"victim-{victim}"
                self.folder.mkdir()
                self.disturbed(ranks, signal.SIGKILL, victim, limit=30)
                self.assert_resumes(resumed_on)

    def test_unresponsive_rank(self):
        result = self.disturbed(3, signal.SIGSTOP, victim=1, limit=5 + 10, sets=["comm.timeout_seconds=5"])
        host = re.escape(platform.node())
        self.assertRegex(result.err, rf"rank \d of 3 on host {host} has waited \d+ s in '.+' .*\(phase 'step \d+'\)")
        self.assertRegex(result.err, r"rank 1: no answer")
        self.assertEqual(len(re.findall("the run ends here", result.err)), 1, str(result))
        self.assert_resumes(2)

    def test_slow_rank_is_waited_for(self):
        """A rank that is stopped for less than the limit does not change the bits."""
        job = self.start(*self.train_arguments("run", steps=200, sets=["comm.timeout_seconds=20"]), ranks=2)
        wait_until(lambda: not job.running() or len(job.ranks()) == 2, 60, "both ranks")
        metrics = self.folder / "run" / "metrics.jsonl"
        wait_until(lambda: not job.running() or metrics.exists(), 60, "the first step")
        pid = job.ranks()[1]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(3)
        size = metrics.stat().st_size
        time.sleep(1)
        self.assertEqual(metrics.stat().st_size, size, "the run does not wait for a stopped rank")
        os.kill(pid, signal.SIGCONT)
        result = job.wait()
        self.assertEqual(result.code, 0, str(result))
        self.train("whole", ranks=None, steps=200)
        self.assert_same_run("whole", "run")


if __name__ == "__main__":
    main()
