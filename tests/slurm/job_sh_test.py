# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""slurm/job.sh alone, in a shell of `set -euo pipefail`, with commands of the queue that are made up: each fails, hangs or is missing
when the test says so."""
import signal
import subprocess

from lockstep_run import SOURCE, LockstepTest, main, wait_until

JOB_SH = SOURCE / "slurm" / "job.sh"


class JobShTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name in ("squeue", "scontrol", "srun", "mpirun"):
            self.command(name, "true")
        self.command("sleep", "exit 0")  # the pauses between tries

    def command(self, name, text):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def start(self, text, **variables):
        environment = dict({"PATH": f"{self.bin}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1"}, **variables)
        return subprocess.Popen(["bash", "-euo", "pipefail", "-c", f'. "{JOB_SH}"\n{text}'], env=environment, cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def shell(self, text, code=0, **variables):
        with self.start(text, **variables) as process:
            output = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, code, output)
        return output

    def test_an_exit_code_is_kept_where_errors_end_the_shell(self):
        self.assertEqual(self.shell('run sh -c "exit 75"; echo "code $code"'), "code 75\n")
        self.assertEqual(self.shell('run true; echo "code $code"; wants_another_job || echo no'), "code 0\nno\n")

    def test_a_queue_that_fails_three_times_is_asked_a_fourth(self):
        self.command("squeue", f'echo x >>{self.folder}/tries; [ "$(wc -l <{self.folder}/tries)" -ge 4 ] || exit 1; echo RUNNING')
        self.assertEqual(self.shell("code=75; wants_another_job && echo yes"), "yes\n")

    def test_a_queue_that_never_answers_ends_no_chain(self):
        self.command("squeue", "exit 1")
        output = self.shell("run sh -c 'exit 75'; wants_another_job && echo yes")
        self.assertIn("note: squeue does not answer", output)
        self.assertEqual(output.splitlines()[-1], "yes")

    def test_but_a_job_that_was_told_to_end_is_not_submitted_again_by_guess(self):
        self.command("squeue", "exit 1")
        text = f"run sh -c 'trap \"exit 75\" USR1; touch {self.folder}/on; while :; do /bin/sleep 0.1; done'; wants_another_job || echo no"
        with self.start(text) as process:
            wait_until((self.folder / "on").exists, 30, "the program")
            process.send_signal(signal.SIGTERM)
            output = process.communicate(timeout=60)[0]
        self.assertEqual(output.splitlines()[-1], "no", output)

    def test_a_warning_before_the_program_starts_is_an_error_of_one_line(self):
        output = self.shell("kill -USR1 $$; run true", code=1)
        self.assertEqual(output, "error: the time of the job was nearly over before its program started; give it more (--time)\n")

    def test_a_hint_binds_instead_of_an_option(self):
        self.assertIn("--cpu-bind=cores", self.shell('choose_launcher; echo "${launcher[@]}"'))
        self.assertNotIn("--cpu-bind", self.shell('choose_launcher; echo "${launcher[@]}"', SLURM_HINT="nomultithread"))

    def test_each_mpi_gets_its_own_options(self):
        self.assertIn("--mpi=pmix ", self.shell('choose_launcher; echo "${launcher[@]}"'))
        self.assertIn("--mpi=pmi2 ", self.shell('choose_launcher; echo "${launcher[@]}"', SLURM_MPI_TYPE="pmi2"))
        options = {"LAUNCHER": "mpirun", "SLURM_CPUS_PER_TASK": "3", "SLURM_NTASKS": "5"}
        self.command("mpirun", "echo 'mpirun (Open MPI) 4.1.4'")
        self.assertEqual(self.shell('choose_launcher; echo "${launcher[@]}"', **options), "mpirun --map-by slot:PE=3 --bind-to core\n")
        self.command("mpirun", "echo 'HYDRA build details:'")
        self.assertEqual(self.shell('choose_launcher; echo "${launcher[@]}"', **options), "mpirun -n 5 -bind-to core:3\n")

    def test_mistakes_are_one_line(self):
        for text, variables, what in (("choose_launcher", {"LAUNCHER": "mpiexec"}, "LAUNCHER is 'mpiexec', not srun or mpirun"),
                                      ("choose_launcher", {"PATH": str(self.narrow_path())}, "there is no srun in PATH"),
                                      ("stage_data", {"STAGE": "/nowhere/x.h5"}, "STAGE: there is no file /nowhere/x.h5"),
                                      ("choose_program", {"LOCKSTEP": "/nowhere"}, "there is no program /nowhere; set LOCKSTEP"),
                                      ("true", {"LOCKSTEP_SITE": "/nowhere"}, "LOCKSTEP_SITE: there is no file /nowhere")):
            with self.subTest(what):
                output = self.shell(text, code=2, **variables)
                self.assertEqual(output.count("\n"), 1, output)
                self.assertIn(f"error: {what}", output)

    def narrow_path(self):
        """A folder with what job.sh needs, and without a launcher."""
        folder = self.folder / "narrow"
        folder.mkdir()
        for name in ("dirname", "bash", "timeout", "date"):
            (folder / name).symlink_to(f"/usr/bin/{name}")
        return folder

    def test_the_commands_of_the_site_come_first(self):
        (self.folder / "my site.sh").write_text("export WHO=site\nLAUNCHER=mpirun\n", encoding="utf-8")
        output = self.shell('choose_launcher; echo "$WHO ${launcher[0]}"', LOCKSTEP_SITE=str(self.folder / "my site.sh"))
        self.assertEqual(output, "site mpirun\n")

    def test_data_that_cannot_be_copied_end_the_job(self):
        (self.folder / "data.h5").write_text("", encoding="utf-8")
        self.command("srun", "exit 1")
        output = self.shell("stage_data; echo on", code=1, STAGE=str(self.folder / "data.h5"))
        self.assertEqual(output, f"error: STAGE: {self.folder}/data.h5 was not copied to /tmp/lockstep-7 on each node\n")


if __name__ == "__main__":
    main()
