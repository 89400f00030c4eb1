# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A run directory that someone changes during the run, and results that cannot be written."""
import os
import shutil
import subprocess
import unittest

from lockstep_run import DIGITS, PROGRAM, LockstepTest, checkpoints, main, records, wait_until

LONG = 10**6  # steps: it does not end by itself
WITHOUT_RIGHTS = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]  # root without its capabilities


class TakenAway(LockstepTest):
    def running(self, ranks):
        job = self.start(*self.train_arguments("run", steps=LONG, sets=["summary.flush_seconds=0.2"]),
                         ranks=ranks)
        wait_until(lambda: not job.running() or len(records(self.folder / "run")) > 2, 60, "the first steps")
        self.assertTrue(job.running())
        return job

    def ends(self, job, what):
        """It looks every second; the limit is for a busy machine."""
        self.assert_one_error(job.wait(60), 1, what)

    def test_a_removed_lock_ends_the_run(self):
        job = self.running(ranks=2)
        (self.folder / "run" / ".lock").unlink()
        other = self.start(*self.train_arguments("run", steps=LONG, sets=["checkpoint.at_start=true"]))
        self.ends(job, r"the file \.lock has been (removed|replaced)")
        self.assertTrue(other.running(), "the run that holds the lock goes on")

    def test_a_renamed_directory_ends_the_run(self):
        job = self.running(ranks=None)
        # The event files can be read while the run goes on.
        wait_until(lambda: '"tag":"loss"' in self.lockstep("events", self.folder / "run").out, 60, "values in event files")
        (self.folder / "run").rename(self.folder / "elsewhere")
        self.ends(job, "the run directory has been removed or renamed")
        self.assertFalse((self.folder / "run").exists(), "it is not made again")
        self.assertEqual(self.start("status", self.folder / "elsewhere").wait().code, 0)

    def test_a_removed_directory_ends_the_run_on_all_ranks(self):
        job = self.running(ranks=3)
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        self.ends(job, "the run directory has been removed or renamed|has been removed")


class Links(LockstepTest):
    def test_links_are_not_followed(self):
        precious = self.folder / "precious"
        for name, code in ((".lock", 2), ("lockstep.log", 2), ("metrics.jsonl", 0), ("jobs.jsonl", 0), ("status.json", 0),
                           ("checkpoint", 0), ("config.yaml", 0)):
            with self.subTest(name):
                run = self.folder / f"run-{name}"
                run.mkdir()
                precious.write_text("precious\n", encoding="ascii")
                (run / name).symlink_to(precious)
                sets = ["checkpoint.background=false"]
                result = self.start(*self.train_arguments(run.name, steps=2, sets=sets)).wait()
                self.assertEqual(result.code, code, str(result))
                if code != 0:
                    self.assertRegex(result.err, f"{name}: is a symbolic link, which is not followed", str(result))
                again = self.start(*self.train_arguments(run.name, steps=4, sets=sets)).wait()
                self.assertEqual(again.code, code, str(again))
                self.assertEqual(precious.read_text(encoding="ascii"), "precious\n", str(again))

    def test_a_fifo_does_not_block(self):
        for name, code in ((".lock", 2), ("lockstep.log", 2), ("jobs.jsonl", 0), ("status.json", 0), ("checkpoint", 0)):
            with self.subTest(name):
                run = self.folder / f"run-{name}"
                run.mkdir()
                os.mkfifo(run / name)
                result = self.start(*self.train_arguments(run.name, steps=2)).wait(20)
                self.assertEqual(result.code, code, str(result))


class Permission(LockstepTest):
    def test_an_unreadable_checkpoint_is_not_called_damaged(self):
        if os.geteuid() == 0 and (shutil.which("setpriv") is None or
                                  subprocess.run([*WITHOUT_RIGHTS, "true"], capture_output=True).returncode != 0):
            self.skipTest("root reads everything here")
        self.train("run", steps=4, sets=["checkpoint.every_steps=2", "checkpoint.background=false"])
        run = self.folder / "run"
        checkpoints(run)[-1].chmod(0)
        prefix = WITHOUT_RIGHTS if os.geteuid() == 0 else []
        for command, code in ((["train", DIGITS, "--run-dir", run, "--steps", "6"], 4), (["evaluate", run], 4),
                              (["inspect", run], 4), (["inspect", checkpoints(run)[-1]], 4),
                              (["checkpoint", "verify", run], 4), (["checkpoint", "list", run], 0)):
            found = subprocess.run([*prefix, PROGRAM, *map(str, command)], capture_output=True, text=True, timeout=60)
            said = found.stdout + found.stderr
            self.assertEqual(found.returncode, code, said)
            self.assertIn("Permission denied", said)
            self.assertNotRegex(said, "(?i)damaged")


class FullOutput(LockstepTest):
    def test_every_command_says_the_same(self):
        self.train("run", steps=2, more=["--record", "2"])
        run = self.folder / "run"
        commands = (["--help"], ["--version"], ["info"], ["config-reference"], ["check", DIGITS], ["status", run],
                    ["status", run, "--json"], ["inspect", run], ["inspect", run, "--digest"], ["events", run],
                    ["evaluate", run], ["checkpoint", "list", run], ["checkpoint", "verify", run],
                    ["checkpoint", "diff", run, run], ["replay", run, "--step", "2"])
        for command in commands:
            with self.subTest(command[0]), open("/dev/full", "wb") as full:
                found = subprocess.run([PROGRAM, *map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True,
                                       timeout=60)
                self.assertEqual(found.returncode, 1, found.stderr)
                self.assertEqual(found.stderr.count("error: standard output could not be written\n"), 1, found.stderr)


if __name__ == "__main__":
    main()
