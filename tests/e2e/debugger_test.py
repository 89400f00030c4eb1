# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""One rank in a debugger: a run without mpirun under gdb, and one rank of many that is parked until gdb lets it go on
(--hang-rank). gdb runs in batch mode."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from lockstep_run import PROGRAM, LockstepTest, Job, main, wait_until

GDB = shutil.which("gdb")
CONTINUE = "set var {int}&lockstep_debugger_continue = 1"


def gdb_words(*commands):
    return [GDB, "--batch", "-nx", *(word for command in commands for word in ("-ex", command))]


def can_attach():
    """Containers may forbid it."""
    if GDB is None:
        return False
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            result = subprocess.run([*gdb_words("detach"), "-p", str(process.pid)], capture_output=True, text=True,
                                    timeout=60, check=False)
        finally:
            process.kill()
    return "detached" in result.stdout


@unittest.skipIf(GDB is None, "gdb is not installed")
class OneRankTest(LockstepTest):
    def test_run_without_mpirun_stops_at_a_breakpoint(self):
        """Also in the shell that salloc gives, whose environment is full of Slurm's variables."""
        for run, variables in (("shell", {}), ("salloc", {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_NNODES": "2",
                                                          "SLURM_JOB_NODELIST": "n[1-2]"})):
            words = [*gdb_words("break lockstep::Trainer::compute", "run", "backtrace 3", "delete", "continue"),
                     "--args", PROGRAM, *self.train_arguments(run, steps=4)]
            job = Job(words, self.folder, variables=variables)
            self.jobs.append(job)
            result = job.wait()
            self.assertEqual(result.code, 0, str(result))
            self.assertRegex(result.out, r"Breakpoint 1(\.\d)?, .*lockstep::Trainer::compute")
            self.assertRegex(result.out, r"#1 .*lockstep::MonitoredSession::compute_step")
            self.assertRegex(result.out, r"exited normally")
        self.train("plain", ranks=1, steps=4)
        for run in ("shell", "salloc"):
            self.assert_same_run("plain", run)


class HangRankTest(LockstepTest):
    def parked(self, job):
        """The process that says where it is, as its message has it."""
        def message():
            job.err.seek(0)
            return re.search(r"(rank (\d) on \S+: )?warning: waiting for a debugger on host (\S+), process (\d+), for "
                             r"at most (\S+) s \(--hang-seconds\).*\n +gdb -p (\d+)\n", job.err.read().decode())
        found = wait_until(lambda: message() or not job.running(), 60, "a rank to be parked")
        self.assertIsNot(found, True, "the run has ended")
        self.assertEqual(found[4], found[6])
        return int(found[4]), int(found[2] or 0), found[5]

    @unittest.skipUnless(can_attach(), "gdb is not installed, or may not attach here")
    def test_a_held_rank_continues_with_a_debugger(self):
        arguments = self.train_arguments("run", steps=5, sets=["comm.timeout_seconds=1"],
                                         more=["--hang-rank", 1, "--hang-seconds", 100])
        job = self.start(*arguments, ranks=3)
        pid, rank, limit = self.parked(job)
        self.assertEqual((pid, rank, limit), (job.ranks()[1], 1, "100"))
        time.sleep(3)  # longer than the limit of the configuration: nobody ends the run
        self.assertTrue(job.running())
        gdb = subprocess.run([*gdb_words(CONTINUE, "break lockstep::Trainer::compute", "continue", "shell sleep 3",
                                         "backtrace 3", "delete", "detach"), "-p", str(pid)],
                             capture_output=True, text=True, timeout=100, check=False)
        self.assertRegex(gdb.stdout, r"hit Breakpoint 1(\.\d)?, .*lockstep::Trainer::compute", gdb.stderr)
        self.assertRegex(gdb.stdout, r"#1 .*lockstep::MonitoredSession::compute_step", gdb.stderr)
        result = job.wait()
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("rank 1 is parked for a debugger; the others wait for it", result.err)
        self.train("plain", ranks=1, steps=5)
        self.assert_same_run("plain", "run")

    @unittest.skipUnless(can_attach(), "gdb is not installed, or may not attach here")
    def test_evaluate_parks_a_rank_too(self):
        self.train("run", steps=2)
        job = self.start("evaluate", self.folder / "run", "--hang-rank", 0, ranks=2)
        pid, rank, limit = self.parked(job)
        self.assertEqual((rank, limit), (0, "3600"))
        subprocess.run([*gdb_words(CONTINUE, "detach"), "-p", str(pid)], capture_output=True, timeout=100, check=True)
        self.assertEqual(json.loads(job.wait().out)["samples"], 297)

    def test_the_wait_for_a_debugger_has_an_end(self):
        begin = time.monotonic()
        result = self.train("run", ranks=2, code=2, steps=2, more=["--hang-rank", 1, "--hang-seconds", 2])
        self.assertGreater(time.monotonic() - begin, 2)
        self.assert_one_error(result, 2, r"no debugger has let the rank go on within 2 s \(on rank 1, host ")
        self.assertEqual(list((self.folder / "run").glob("checkpoints/*")), [])

    def test_a_signal_ends_the_wait(self):
        """The run stops in order, as it would without the option."""
        job = self.start(*self.train_arguments("run", steps=5, more=["--hang-rank", 1]), ranks=2)
        pid, _, _ = self.parked(job)
        os.kill(pid, signal.SIGUSR1)
        result = job.wait()
        self.assertEqual(result.code, 75, str(result))
        self.assertIn("signal USR1: no debugger is waited for any more", result.err)

    def test_a_rank_that_is_not_there_is_wrong_usage(self):
        for ranks, rank, says in ((2, 2, "there are ranks 0 to 1 only"), (None, 1, "there is rank 0 only")):
            result = self.train("run", ranks=ranks, code=2, steps=2, more=["--hang-rank", rank])
            self.assert_one_error(result, 2, f"error: --hang-rank {rank}: {says}")
        self.assert_one_error(self.train("run", code=2, more=["--hang-rank", "-1"]), 2, "--hang-rank")
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    main()
