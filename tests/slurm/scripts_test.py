# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The batch scripts in slurm/ as people use them, under a real Slurm: from any folder, as copies of their own, for programs of their
own, with site's modules and options, with mistakes, and while the queue does not answer."""
import os
import re
import shutil

from lockstep_run import DIGITS, PROGRAM, main, wait_until
from slurm_case import SCRIPTS, SlurmCase, slow

SHORT = ["train.time_limit=4s", "train.time_margin=1"]


class ScriptsTest(SlurmCase):
    def use_copy(self):
        """A copy of the scripts in a folder of its own, next to which the program is; nothing is set that says where."""
        tree = self.folder / "my tree"
        shutil.copytree(SCRIPTS, tree / "slurm")
        program = tree / "build" / "release" / "bin" / "lockstep"
        program.parent.mkdir(parents=True)
        program.symlink_to(PROGRAM)
        del self.variables["LOCKSTEP"], self.variables["LOCKSTEP_SLURM"]
        return tree / "slurm"

    def submit(self, script, *arguments, options=(), variables=None):
        number = self.cluster.submit("--output", self.folder / "job-%j.log", *options, script, *arguments, cwd=self.folder,
                                     variables={**self.variables, **(variables or {})})
        self.numbers.append(number)
        return number

    def queue_that_fails(self, when):
        """squeue fails in this job whenever the shell's `when` is true."""
        (self.folder / "bin").mkdir()
        squeue = self.folder / "bin" / "squeue"
        squeue.write_text(f"#!/bin/sh\necho x >>{self.folder}/asked\nif {when}; then echo 'squeue: error: Unable to contact slurm controller' >&2; "
                          f"exit 1; fi\nexec {shutil.which('squeue')} \"$@\"\n", encoding="utf-8")
        squeue.chmod(0o755)
        self.variables["PATH"] = f"{self.folder}/bin:{os.environ['PATH']}"

    def chain(self, first):
        """The numbers of the jobs of a chain, when all have ended."""
        numbers = []
        while first:
            numbers.append(first)
            self.ends(first)
            following = re.search(r"saved; job (\d+) goes on", self.log(first))
            first = following[1] if following else None
            self.numbers += [first] if first else []
        return numbers

    def test_submitted_from_any_folder(self):
        scripts = self.use_copy()
        number = self.submit(scripts / "train.sbatch", *self.arguments("run"))
        self.ends(number)
        self.assert_ends_as_undisturbed()

    def test_a_chain_of_a_copy_submits_the_copy(self):
        scripts = self.use_copy()
        copy = scripts / "my chain.sbatch"
        text = (SCRIPTS / "chain.sbatch").read_text(encoding="utf-8")
        copy.write_text(text.replace("--job-name=lockstep-chain", "--job-name=mine"), encoding="utf-8")
        arguments = self.arguments("run", steps=100, sets=[*slow(0.05), *SHORT])
        numbers = self.chain(self.submit(copy, *arguments, variables={"SBATCH_OUTPUT": str(self.folder / "job-%j.log")}))
        self.assertGreater(len(numbers), 1)
        self.assertEqual({self.cluster.job(number)["JobName"] for number in numbers}, {"mine"})
        self.assertEqual(self.status()["state"], "finished")

    def test_a_queue_that_fails_now_and_then_ends_no_chain(self):
        self.queue_that_fails(f'[ $(($(wc -l <{self.folder}/asked) % 2)) = 1 ]')
        arguments = self.arguments("run", steps=100, sets=[*slow(0.05), *SHORT])
        numbers = self.chain(self.sbatch("chain.sbatch", *arguments, variables={"SBATCH_OUTPUT": str(self.folder / "job-%j.log")}))
        self.assertGreater(len(numbers), 1)
        self.assertEqual(self.status()["state"], "finished")

    def test_a_queue_that_never_answers_ends_no_chain(self):
        self.queue_that_fails("true")
        arguments = self.arguments("run", steps=60, sets=[*slow(0.2), "train.time_limit=9s", "train.time_margin=1"])
        numbers = self.chain(self.sbatch("chain.sbatch", *arguments, variables={"SBATCH_OUTPUT": str(self.folder / "job-%j.log")}))
        self.assertGreater(len(numbers), 1)
        self.assertIn("note: squeue does not answer", self.log(numbers[0]))
        self.assertEqual(self.status()["state"], "finished")

    def test_a_program_of_ones_own(self):
        """It ends with 75 when it is told to; the job returns to the queue, and its second start finishes."""
        program = self.folder / "my_program"  # proctrack/linuxproc does not see a process whose name has a blank
        program.write_text(f'#!/bin/bash\necho "started with $# arguments: $1"\n[ ! -e "{self.folder}/second" ] || exit 0\n'
                           f'trap \'touch "{self.folder}/second"; exit 75\' USR1\nwhile :; do sleep 0.1; done\n', encoding="utf-8")
        program.chmod(0o755)
        number = self.sbatch("program.sbatch", program, "a b", options=["--ntasks-per-node=1"], variables={"LOCKSTEP": ""})
        wait_until(lambda: "started with" in self.log(number), 60, "the program")
        self.cluster.command("scancel", "--batch", "--signal=USR1", number)
        self.ends(number)
        self.assertEqual(self.log(number).count("started with 1 arguments: a b"), 2, self.log(number))
        self.assertIn("saved; back into the queue", self.log(number))

    def test_options_and_modules_of_a_site(self):
        (self.folder / "site.sh").write_text('echo "modules of the site"\n', encoding="utf-8")
        number = self.sbatch("train.sbatch", *self.arguments("run"), options=["--mem=500M", "--hint=nomultithread"],
                             variables={"LOCKSTEP_SITE": str(self.folder / "site.sh")})
        self.assertEqual(self.cluster.job(number)["MinMemoryNode"], "500M")
        self.ends(number)
        self.assertIn("modules of the site", self.log(number))
        self.assert_ends_as_undisturbed()

    def test_mistakes_are_one_line(self):
        nowhere = str(self.folder / "nowhere")
        cases = [("train.sbatch", (), {"LOCKSTEP": nowhere}, f"error: there is no program {nowhere}; set LOCKSTEP"),
                 ("train.sbatch", (), {"LOCKSTEP_SLURM": nowhere}, f"error: there is no {nowhere}/job.sh; set LOCKSTEP_SLURM"),
                 ("train.sbatch", (DIGITS,), {"STAGE": nowhere}, f"error: STAGE: there is no file {nowhere}"),
                 ("train.sbatch", (DIGITS,), {"LAUNCHER": "mpiexec"}, "error: LAUNCHER is 'mpiexec'"),
                 ("evaluate.sbatch", (), {}, "error: usage: sbatch evaluate.sbatch RUN_DIR"),
                 ("evaluate.sbatch", (nowhere,), {}, f"error: there is no run directory {nowhere}"),
                 ("program.sbatch", (), {}, "error: usage: sbatch program.sbatch PROGRAM"),
                 ("program.sbatch", (nowhere,), {}, f"error: there is no program {nowhere}"),
                 ("sweep_array.sbatch", (), {}, "error: usage: sbatch sweep_array.sbatch CONFIG FOLDER")]
        jobs = [(self.sbatch(script, *arguments, variables=variables, options=["--array=0"] if "array" in script else []), what)
                for script, arguments, variables, what in cases]
        for number, what in jobs:
            job = self.ends(number, "FAILED")
            self.assertEqual((job["ExitCode"], self.log(number).count("\n")), ("2:0", 1), self.log(number))
            self.assertIn(what, self.log(number))

    def test_a_program_s_own_mistakes_come_once(self):
        for arguments, what in (((self.folder / "nowhere.yaml", "--run-dir", "run"), "nowhere.yaml"), ((), "config")):
            number = self.sbatch("train.sbatch", *arguments)
            self.ends(number, "FAILED")
            errors = [line for line in self.log(number).splitlines() if line.startswith("error")]
            self.assertEqual(len(errors), 1, self.log(number))
            self.assertIn(what, self.log(number))


if __name__ == "__main__":
    main()
