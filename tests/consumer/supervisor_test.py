# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The program examples/sessions/supervisor.cpp, interrupted, killed and with an error: exit codes, and the bits of a run of
`lockstep train`.

  supervisor_test.py SUPERVISOR LOCKSTEP DIGITS.YAML SCRATCH MPIRUN...
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

SUPERVISOR, LOCKSTEP, CONFIG = sys.argv[1:4]
SCRATCH, MPIRUN = pathlib.Path(sys.argv[4]), sys.argv[5:]
MANY = 100_000_000  # more steps than any machine computes in the time of a test
LIMIT = 120


def output(*command, code=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode != code:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def wait_for(what, condition, process):
    end = time.monotonic() + LIMIT
    while not condition():
        if process.poll() is not None:
            raise AssertionError(f"ended with {process.returncode} before there was {what}")
        if time.monotonic() > end:
            raise AssertionError(f"waited {LIMIT} s for {what}")
        time.sleep(0.05)


def checkpoints(run_dir):
    return sorted(run_dir.glob("checkpoints/step-*.h5"))


class Supervised(unittest.TestCase):
    def setUp(self):
        self.run_dir = SCRATCH / self.id().rpartition(".")[2]
        self.process = None

    def tearDown(self):
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def start(self, *launcher):
        self.process = subprocess.Popen([*launcher, SUPERVISOR, CONFIG, self.run_dir, str(MANY)], start_new_session=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("config.yaml", (self.run_dir / "config.yaml").exists, self.process)

    def status(self):
        return json.loads((self.run_dir / "status.json").read_text(encoding="utf-8"))

    def check_bits(self):
        """Continues for some steps on another number of ranks; the checkpoint is that of an uninterrupted run."""
        steps = int(re.search(r"step-0*(\d+)", checkpoints(self.run_dir)[-1].name)[1]) + 5
        said = output(*MPIRUN, "-n", 2, SUPERVISOR, CONFIG, self.run_dir, steps)
        self.assertIn(f"continues after step {steps - 5}", said)
        status = self.status()
        self.assertEqual((status["state"], status["step"], status["total_steps"], status["ranks"]), ("finished", steps, steps, 2))
        self.assertIn(f"{steps} of {steps}", output(LOCKSTEP, "status", self.run_dir))
        whole = SCRATCH / (self.run_dir.name + "_whole")
        output(LOCKSTEP, "train", CONFIG, "--steps", steps, "--run-dir", whole)
        digest = output(LOCKSTEP, "inspect", whole, "--digest")
        self.assertRegex(digest, r"^[0-9a-f]{8}")
        self.assertEqual(output(LOCKSTEP, "inspect", self.run_dir, "--digest"), digest)

    def test_a_signal_saves_and_ends_with_75(self):
        self.start()
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(LIMIT), 75)
        self.assertEqual((self.status()["state"], self.status()["exit_code"]), ("requeue", 75))
        if not checkpoints(self.run_dir):
            return  # the signal came before the first step
        self.check_bits()

    def test_killed_it_continues_from_its_checkpoint(self):
        self.start(*MPIRUN, "-n", "3")
        (self.run_dir / "SAVE").touch()
        wait_for("a checkpoint", (self.run_dir / "checkpoint").exists, self.process)
        rank_0 = int(re.match(r"process (\d+) on", (self.run_dir / ".lock").read_text(encoding="utf-8"))[1])
        os.kill(rank_0, signal.SIGKILL)
        self.assertNotEqual(self.process.wait(LIMIT), 0)  # mpirun, when all ranks are gone
        self.check_bits()

    def test_the_directory_of_a_running_job_is_refused(self):
        self.start()
        said = output(SUPERVISOR, CONFIG, self.run_dir, 5, code=2)
        self.assertIn(str(self.process.pid), said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
