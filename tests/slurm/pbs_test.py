# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""slurm/train.pbs. No PBS is at hand: its variables, qsub and qstat are made up, the rest is real."""
import os
import shutil
import signal
import subprocess

from lockstep_run import DIGITS, PROGRAM, SOURCE, LockstepTest, main, records, wait_until

SCRIPTS = SOURCE / "slurm"
HOSTILE = "it's \"$(touch owned)\"; touch owned #: 1"


class PbsTest(LockstepTest):
    def setUp(self):
        super().setUp()
        (self.folder / "nodes").write_text("localhost\nlocalhost\n", encoding="utf-8")
        (self.folder / "bin").mkdir()
        self.command("qsub", f'for word; do printf "%s\\n" "$word"; done >{self.folder}/qsub.txt\nenv >{self.folder}/qsub.env')
        self.command("qstat", "exit 1")
        self.variables = {"PBS_O_WORKDIR": str(self.folder), "PBS_JOBID": "4711.server", "PBS_NODEFILE": str(self.folder / "nodes"),
                          "CONFIG": str(DIGITS), "RUN_DIR": str(self.folder / HOSTILE), "LOCKSTEP": PROGRAM,
                          "LOCKSTEP_SLURM": str(SCRIPTS), "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}

    def command(self, name, text):
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def start(self, script=SCRIPTS / "train.pbs", **variables):
        environment = {key: value for key, value in {**os.environ, **self.variables, **variables}.items() if value is not None}
        return subprocess.Popen(["bash", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True)

    def interrupted(self, **options):
        """(exit code, output) of a job that is told to end in the middle of the run."""
        with self.start(**options) as script:
            try:
                wait_until(lambda: script.poll() is not None or records(self.folder / HOSTILE), 60, "a step")
                script.send_signal(signal.SIGTERM)
                output = script.communicate(timeout=60)[0]
            finally:
                if script.poll() is None:
                    os.killpg(script.pid, signal.SIGKILL)
        self.assertFalse((self.folder / "owned").exists())
        return script.returncode, output

    def submitted(self):
        return (self.folder / "qsub.txt").read_text(encoding="utf-8").splitlines()

    def test_the_pbs_script_trains_and_goes_on(self):
        """The next job gets all that this one was given: also where the program and its scripts are."""
        code, output = self.interrupted()
        self.assertEqual(code, 0, output)
        self.assertIn("stopping after step", output)
        self.assertIn("depend=afterany:4711.server", self.submitted())
        names = self.submitted()[self.submitted().index("-v") + 1].split(",")
        self.assertLessEqual({"CONFIG", "RUN_DIR", "LOCKSTEP", "LOCKSTEP_SLURM"}, set(names))
        given = (self.folder / "qsub.env").read_text(encoding="utf-8").splitlines()
        for name in ("CONFIG", "RUN_DIR", "LOCKSTEP", "LOCKSTEP_SLURM"):
            self.assertIn(f"{name}={self.variables[name]}", given)
        self.assertEqual(self.submitted()[-1], str(SCRIPTS / "train.pbs"))

    def test_a_copy_submits_itself(self):
        copy = self.folder / "my train.pbs"
        shutil.copy(SCRIPTS / "train.pbs", copy)
        code, output = self.interrupted(script=copy, SCRIPT=str(copy))
        self.assertEqual(code, 0, output)
        self.assertEqual(self.submitted()[-1], str(copy))

    def test_a_node_that_may_not_submit_says_what_to_do(self):
        self.command("qsub", "echo 'qsub: command not permitted' >&2; exit 1")
        code, output = self.interrupted()
        self.assertEqual(code, 75, output)
        self.assertRegex(output.splitlines()[-1], r"^error: this node may not submit jobs; the run is saved.*login node")

    def test_jobs_that_were_submitted_together_submit_nothing(self):
        code, output = self.interrupted(RESUBMIT="no")
        self.assertEqual(code, 75, output)
        self.assertFalse((self.folder / "qsub.txt").exists())

    def test_the_limit_is_the_job_s_own(self):
        self.command("qstat", '[ "$2" = 4711.server ] && printf "Job Id: 4711.server\\n    Resource_List.walltime = 00:40:00\\n"')
        _, output = self.interrupted()
        self.assertRegex(output, r"ends in (40m|39m)", output)
        self.command("qstat", "exit 1")
        shutil.rmtree(self.folder / HOSTILE)
        _, output = self.interrupted(WALLTIME="00:30:00")
        self.assertRegex(output, r"ends in (30m|29m)", output)

    def test_mistakes_are_one_line(self):
        for variables, what in (({"CONFIG": None}, "error: usage: qsub -v CONFIG=FILE"),
                                ({"LOCKSTEP_SLURM": "/nowhere"}, "error: there is no /nowhere/job.sh; set LOCKSTEP_SLURM"),
                                ({"LOCKSTEP": "/nowhere/lockstep"}, "error: there is no program /nowhere/lockstep; set LOCKSTEP")):
            with self.subTest(variables), self.start(**variables) as script:
                output = script.communicate(timeout=60)[0]
                self.assertEqual((script.returncode, output.count("\n")), (2, 1), output)
                self.assertIn(what, output)


if __name__ == "__main__":
    main()
