# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The batch scripts in slurm/, under a real Slurm that this test starts (slurm_cluster.py): each of them runs the digits
example; and whatever the queue does to a job, it goes on later and ends with the bits of a run that nobody disturbed."""
import json
import re

from lockstep_run import DIGITS, DIGITS_DATA, PROGRAM, checkpoints, main, records, wait_until
from slurm_case import ENDED, HOSTILE, STEPS, SlurmCase, slow


class SlurmTest(SlurmCase):
    def test_train_with_either_launcher(self):
        for launcher, number in self.with_either_launcher():
            self.ends(number)
            log = self.log(number)
            self.assertRegex(log, r"2 ranks, 2 of them on ", log)
            self.assertNotIn("warning", log)
            self.assert_ends_as_undisturbed(launcher)
            self.assertEqual(self.status(launcher)["queue_job"], f"Slurm {number}")

    def test_train_gpu_on_the_devices_that_there_are(self):
        # This node's GPUs are numbers: the script's options are Slurm's matter, the computation goes to the CPU.
        number = self.sbatch("train_gpu.sbatch", *self.arguments(HOSTILE), variables={"DEVICE": "cpu"})
        self.assertRegex(self.cluster.command("scontrol", "show", "job", number), r"TresPerNode=gres.gpu:2")
        self.ends(number)
        self.assert_ends_as_undisturbed(HOSTILE)

    def test_a_warning_before_the_limit_of_one_minute(self):
        """USR1 comes before the end, the run saves, the job goes back into the queue, and ends in a later start."""
        steps = 800
        number = self.sbatch("train.sbatch", *self.arguments("run", steps=steps, sets=slow(0.04)),
                             options=["--time=1", "--signal=B:USR1@45"],
                             variables={"SLURM_JOB_END_TIME": "9999999999"})  # the signal alone is to stop it
        self.cluster.wait_for_state(number, "RUNNING")
        wait_until(lambda: "saved; back into the queue" in self.log(number), 70, "the signal")
        self.assertIn("stopping after step", self.log(number))
        self.assertIn("signal USR1", self.log(number))
        self.ends(number, limit=120)
        self.assert_interrupted(number)
        self.assert_ends_as_undisturbed(steps=steps)

    def test_the_end_of_the_job_is_known_without_a_signal(self):
        """From squeue, where Slurm is too old for SLURM_JOB_END_TIME."""
        sets = [*slow(0.1), "train.time_margin=50"]  # of one minute
        number = self.sbatch("train.sbatch", *self.arguments("run", steps=100, sets=sets),
                             options=["--time=1", "--signal=B:USR1@1"])
        wait_until(lambda: "saved; back into the queue" in self.log(number), 40, "the time limit")
        self.assertRegex(self.log(number), r"this job ends in (1m00s|\d+s), says SLURM_JOB_END_TIME")
        self.assertIn("the time of the job is nearly over", self.log(number))

    def test_scancel_with_usr1(self):
        """To the job's steps: every rank gets it, from Slurm and some from the launcher too."""
        jobs = self.with_either_launcher(slow(0.05))
        for launcher, number in jobs:
            self.wait_for_steps(number, 10, launcher)
            self.cluster.command("scancel", "--full", "--signal=USR1", number)
        for launcher, number in jobs:
            self.ends(number)
            self.assert_interrupted(number, 2, launcher)
            self.assert_ends_as_undisturbed(launcher)

    def test_scancel_ends_the_job_and_loses_nothing(self):
        number = self.sbatch("train.sbatch", *self.arguments("run", sets=slow(0.05)))
        self.wait_for_steps(number, 10)
        self.cluster.command("scancel", number)
        self.ends(number, "CANCELLED")
        self.assertEqual(int(checkpoints(self.folder / "run")[-1].stem.removeprefix("step-")), len(records(self.folder / "run")))
        self.assertLess(len(records(self.folder / "run")), STEPS)
        self.assertIn("nothing follows it", self.log(number))

    def test_requeue_in_mid_step(self):
        number = self.sbatch("train.sbatch", *self.arguments("run", sets=slow(0.05)))
        self.wait_for_steps(number, 10)
        self.cluster.command("scontrol", "requeue", number)
        self.cluster.wait_for_state(number, "PENDING")
        self.ends(number)
        self.assert_ends_as_undisturbed()

    def test_preempted_by_a_job_of_a_higher_partition(self):
        number = self.sbatch("train.sbatch", *self.arguments("run", sets=slow(0.05)), options=["--partition=low"])
        self.wait_for_steps(number, 10)
        urgent = self.cluster.submit("--partition=high", "--output=/dev/null", "--wrap=true", cwd=self.folder)
        self.numbers.append(urgent)
        self.ends(urgent)
        self.ends(number)
        self.assert_interrupted(number, 2)
        self.assert_ends_as_undisturbed()

    def test_chain(self):
        """Jobs of a few seconds, each of which submits the next one."""
        first = self.sbatch("chain.sbatch", *self.arguments(HOSTILE, steps=100, sets=[*slow(0.05), "train.time_limit=4s",
                                                                                     "train.time_margin=1"]),
                            variables={"SBATCH_OUTPUT": str(self.folder / "job-%j.log")})
        number, numbers = first, []
        while number:
            numbers.append(number)
            self.ends(number)
            following = re.search(r"saved; job (\d+) goes on", self.log(number))
            number = following[1] if following else None
            self.numbers.append(number or first)
        self.assertGreater(len(numbers), 1, self.log(first))
        self.assertEqual(self.status(HOSTILE)["state"], "finished")
        self.assertEqual(self.status(HOSTILE)["jobs"], len(numbers))
        self.assert_ends_as_undisturbed(HOSTILE, steps=100)

    def test_a_chain_ends_with_the_file_stop(self):
        number = self.sbatch("chain.sbatch", *self.arguments("run", sets=slow(0.05)))
        self.wait_for_steps(number, 5)
        (self.folder / "run" / "STOP").touch()
        self.ends(number, "FAILED")
        self.assertEqual(self.cluster.job(number)["ExitCode"], "130:0")
        self.assertNotIn("goes on", self.log(number))

    def test_sweep(self):
        number = self.sbatch("sweep_array.sbatch", DIGITS, self.folder / HOSTILE, "--steps", 5,
                             options=["--array=0-3", f"--output={self.folder}/job-%A-%a.log"])
        for task in range(4):
            self.ends(f"{number}_{task}")
        digests = {rate: self.digest(f"{HOSTILE}/rate-{rate}") for rate in ("0.001", "0.002", "0.004", "0.008")}
        self.assertEqual(len(set(digests.values())), 4, digests)

    def test_evaluate_behind_a_training(self):
        train = self.sbatch("train.sbatch", *self.arguments(HOSTILE))
        number = self.sbatch("evaluate.sbatch", self.folder / HOSTILE, options=[f"--dependency=afterok:{train}"])
        self.ends(number)
        found = json.loads((self.folder / HOSTILE / "evaluation.json").read_text(encoding="utf-8"))
        self.assertEqual(found["loss"], records(self.folder / HOSTILE, "eval")[-1]["loss"])

    def test_data_staged_to_the_nodes_own_disk(self):
        data, disk = self.folder / f"{HOSTILE}.csv.gz", self.folder / f"disk {HOSTILE}"
        data.write_bytes(DIGITS_DATA.read_bytes())
        number = self.sbatch("train.sbatch", *self.arguments("run"), variables={"STAGE": str(data), "SLURM_TMPDIR": str(disk)})
        self.ends(number)
        self.assert_ends_as_undisturbed()
        staged = disk / f"lockstep-{number}" / data.name
        self.assertIn(f"lockstep-{number}", (self.folder / "run" / "config.yaml").read_text(encoding="utf-8"))
        self.assertFalse(staged.exists(), "it is removed when the job ends")

    def test_srun_without_pmix_is_named(self):
        number = self.cluster.submit("--ntasks=2", "--output", self.folder / "job-%j.log", "--wrap",
                                     f"srun --mpi=none {PROGRAM} train {DIGITS} --steps 2 --run-dir run", cwd=self.folder,
                                     variables=self.variables)
        self.numbers.append(number)
        self.cluster.wait_for_state(number, *ENDED)
        self.assertIn("Slurm gave 2 tasks, MPI sees 1: start with srun --mpi=pmix or mpirun", self.log(number))


if __name__ == "__main__":
    main()
