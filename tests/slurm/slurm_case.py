# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of the batch scripts share: jobs in a real Slurm of their own (slurm_cluster.py)."""
import json
import os
import re
import unittest

import slurm_cluster
from lockstep_run import PROGRAM, SOURCE, LockstepTest, records, wait_until

SCRIPTS = SOURCE / "slurm"
SLOW_PLUGIN = os.environ["LOCKSTEP_SLOW_PLUGIN"]
STEPS = 60
SETS = ["eval.every_steps=25"]
# A name that shells and YAML take apart, where a script forgets to quote it.
HOSTILE = "it's \"$(touch owned)\"; touch owned #: 1"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")


def slow(seconds):
    """Steps of this length, so that a job is in the middle of the run when the queue disturbs it."""
    return [f"plugins=[{SLOW_PLUGIN}]", f"hooks=[{{slow: {{seconds: {seconds}}}}}]"]


@unittest.skipIf(slurm_cluster.why_not(), str(slurm_cluster.why_not()))
class SlurmCase(LockstepTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = slurm_cluster.SlurmCluster()
        cls.addClassCleanup(cls.cluster.stop)

    def setUp(self):
        super().setUp()
        self.numbers = []
        # What a real cluster has not: one node on which all is small, shared and root's.
        self.variables = {"LOCKSTEP": PROGRAM, "LOCKSTEP_SLURM": str(SCRIPTS), "TMPDIR": str(self.folder),
                          "OMPI_MCA_btl_vader_backing_directory": str(self.folder),
                          "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        self.addCleanup(lambda: self.cluster.command("scancel", "--quiet", "--full", "--signal=KILL", *self.numbers, check=False)
                        if self.numbers else None)
        self.addCleanup(lambda: self.assertFalse((self.folder / "owned").exists(), "a script ran a part of a name"))

    def arguments(self, run, steps=STEPS, sets=()):
        """What comes behind the script's name."""
        return self.train_arguments(run, steps=steps, sets=[*SETS, *sets])[1:]

    def sbatch(self, script, *arguments, options=(), variables=None):
        output = self.folder / "job-%j.log"
        number = self.cluster.submit("--output", output, *options, SCRIPTS / script, *arguments, cwd=self.folder,
                                     variables={**self.variables, **(variables or {})})
        self.numbers.append(number)
        return number

    def with_either_launcher(self, sets=()):
        """Two jobs side by side: [(launcher and run, number)]."""
        return [(launcher, self.sbatch("train.sbatch", *self.arguments(launcher, sets=sets), variables={"LAUNCHER": launcher}))
                for launcher in ("srun", "mpirun")]

    def log(self, number):
        path = self.folder / f"job-{number}.log"
        return path.read_text(errors="replace") if path.exists() else f"no {path}"

    def ends(self, number, state="COMPLETED", limit=90):
        job = self.cluster.wait_for_state(number, *ENDED, limit=limit)
        self.assertEqual(job["JobState"], state, f"{job}\n{self.log(number)}")
        return job

    def wait_for_steps(self, number, count, run="run"):
        def look():
            self.assertNotIn(self.cluster.job(number).get("JobState"), ENDED, self.log(number))
            return len(records(self.folder / run)) >= count
        wait_until(look, 60, f"step {count}")

    def assert_ends_as_undisturbed(self, run="run", steps=STEPS):
        if not (self.folder / "whole").exists():
            self.train("whole", ranks=None, steps=steps, sets=SETS, threads=2)
        self.assert_same_run("whole", run)
        self.assertEqual(records(self.folder / "whole", "eval"), records(self.folder / run, "eval"))

    def status(self, run="run"):
        return json.loads(self.lockstep("status", self.folder / run, "--json").out)

    def assert_interrupted(self, number, starts=None, run="run"):
        """`starts` starts (None: two or more), each but the first from where the one before it had stopped: no step was done twice."""
        log = self.log(number)
        starts = starts or max(2, log.count(" parameters, "))
        self.assertEqual(log.count(" parameters, "), starts, log)
        stops = re.findall(r"stopping after step (\d+)", log)
        self.assertEqual(stops, re.findall(r"continuing at step (\d+)", log), log)
        self.assertEqual(len(stops), starts - 1, log)
        self.assertEqual(self.status(run)["jobs"], starts)
