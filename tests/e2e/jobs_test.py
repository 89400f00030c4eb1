# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A run as a chain of jobs: time limits, switch files, exit codes, jobs that gain nothing, and what `lockstep status`
says of it meanwhile."""
import json
import os
import signal
import time
import unittest

from lockstep_run import LockstepTest, checkpoints, main, newest_step, records, wait_until

SETS = ["eval.every_steps=50"]
FAR = 1_000_000


class JobsTest(LockstepTest):
    def status(self, run="run"):
        return json.loads(self.lockstep("status", self.folder / run, "--json").out)

    def begin(self, run="run", ranks=None, steps=FAR, sets=(), variables=None, wait=True):
        job = self.start(*self.train_arguments(run, steps=steps, sets=[*SETS, *sets]), ranks=ranks, variables=variables)
        if wait:
            before = len(records(self.folder / run))
            wait_until(lambda: not job.running() or len(records(self.folder / run)) > before, 60, "a step")
        return job

    def assert_saved_where_it_stopped(self, run="run"):
        newest = newest_step(self.folder / run)
        self.assertEqual(newest, len(records(self.folder / run)))
        return newest

    def test_a_chain_of_short_jobs_ends_as_one_long_one(self):
        steps, codes = 120, []
        slow = [f"plugins=[{os.environ['LOCKSTEP_SLOW_PLUGIN']}]", "hooks=[{slow: {seconds: 0.025}}]"]
        for _ in range(60):  # on a busy machine a job may get no further than its start
            # Two ways to say the same: about a second of work each.
            variables = {"SLURM_JOB_END_TIME": str(time.time() + 2)} if len(codes) % 2 else None
            sets = [*slow, "train.time_margin=0.5", "train.max_jobs_without_progress=60"]
            sets += [] if variables else ["train.time_limit=2s"]
            result = self.begin(ranks=2, steps=steps, sets=sets, variables=variables, wait=False).wait()
            codes.append(result.code)
            if result.code != 75:
                break
            self.assertIn("the time of the job is nearly over", result.err)
            if records(self.folder / "run"):
                self.assert_saved_where_it_stopped()
            self.assertEqual(self.status()["state"], "waiting")
        self.assertEqual(codes, [75] * (len(codes) - 1) + [0], codes)
        self.assertGreater(len(codes), 1)
        status = self.status()
        self.assertEqual((status["state"], status["jobs"], status["step"]), ("finished", len(codes), steps))
        self.assertGreater(status["effective_share"], 0)
        self.assertEqual(status["lost"]["repeated"], 0)
        self.train("whole", ranks=None, steps=steps, sets=SETS)
        self.assert_same_run("whole", "run")
        self.assertEqual(records(self.folder / "whole", "eval"), records(self.folder / "run", "eval"))

    def test_invalid_time_limit_is_refused_at_the_start(self):
        for ranks in (None, 2):
            arguments = self.train_arguments("run", steps=3, sets=["train.time_limit='1:30'"])
            self.assert_one_error(self.start(*arguments, ranks=ranks).wait(), 2, "'1:30' is no duration(.|\n)*1:30:00")
        self.assertFalse((self.folder / "run").exists())

    def test_switch_files(self):
        job = self.begin(ranks=2)
        folder = self.folder / "run"
        (folder / "SAVE").touch()
        wait_until(lambda: not job.running() or checkpoints(folder), 60, "a checkpoint")
        wait_until(lambda: not (folder / "SAVE").exists(), 60, "SAVE to go")
        self.assertTrue(job.running())
        self.assertEqual(len(checkpoints(folder)), 1)
        (folder / "STOP").touch()
        result = job.wait()
        self.assertEqual(result.code, 130, str(result))
        self.assertFalse((folder / "STOP").exists())
        self.assert_saved_where_it_stopped()
        status = self.status()
        self.assertEqual((status["state"], status["reason"], status["exit_code"]),
                         ("stopped", "the run directory has a file STOP", 130))
        # One that comes between two jobs stops the next one before its first step.
        before = len(records(folder))
        (folder / "STOP").touch()
        self.assertEqual(self.begin(ranks=2, wait=False).wait().code, 130)
        self.assertFalse((folder / "STOP").exists())
        self.assertEqual(len(records(folder)), before)

    def test_jobs_without_progress_are_not_requeued(self):
        nothing = ["train.time_limit=1s", "train.time_margin=1"]
        for limit, codes in ((2, [75, 1]), (1, [1]), (3, [75, 75, 1])):
            run = f"run-{limit}"
            self.train(run, steps=5, sets=SETS)
            for code in codes:
                job = self.begin(run, ranks=2, wait=False, sets=[*nothing, f"train.max_jobs_without_progress={limit}"])
                result = job.wait()
                self.assertEqual(result.code, code, str(result))
                self.assertEqual("gained no step: the run is still at step 5" in result.err, code == 1, str(result))
        self.assertEqual(self.status("run-3")["state"], "failed")
        # A step makes up for all of them.
        self.train("run-3", steps=7, sets=SETS)
        self.assertEqual(self.begin("run-3", wait=False, sets=nothing).wait().code, 75)

    def test_a_finished_run_ends_before_anything_is_read(self):
        data = self.folder / "digits.csv.gz"
        data.write_bytes((self.folder.__class__(os.environ["LOCKSTEP_SOURCE"]) / "data" / "digits.csv.gz").read_bytes())
        sets = [*SETS, f"data.path={data}"]
        self.train("run", steps=5, sets=sets)
        status = (self.folder / "run" / "status.json").read_text(encoding="utf-8")
        data.unlink()
        for ranks in (None, 2):
            self.assertIn("this run is finished: step 5", self.train("run", ranks=ranks, steps=5, sets=sets).err)
        self.assertEqual((self.folder / "run" / "status.json").read_text(encoding="utf-8"), status, "it was no job")

    def test_early_stopped_run_is_finished(self):
        early = ["hooks=[{stop_if_lower: {metric: eval/loss, threshold: 100}}]", "eval.every_steps=10"]
        self.train("run", ranks=2, steps=50, sets=early)
        self.assertEqual(self.status()["step"], 10)
        again = self.train("run", ranks=2, steps=50, sets=early)
        self.assertRegex(again.err, "this run is finished: step 10 in .*, eval/loss is")
        self.train("run", ranks=2, steps=30)
        self.assertEqual((self.status()["step"], self.status()["jobs"]), (30, 2))

    def test_status_while_it_runs_and_after_a_crash(self):
        job = self.begin(ranks=2)
        status = wait_until(lambda: (s := self.status())["state"] == "running" and s, 30, "running")
        self.assertEqual((status["total_steps"], status["ranks"], status["jobs"]), (FAR, 2, 1))
        self.assertIn(status["pid"], job.ranks().values())
        self.assertIsNone(status["exit_code"])
        text = self.lockstep("status", self.folder / "run").out
        for pattern in (r"state +running: step \d+", r"job +1, 2 ranks, ", r"checkpoint +none yet", r"effective +[\d.]+ %"):
            self.assertRegex(text, pattern)
        os.kill(self.status()["pid"], signal.SIGUSR2)
        wait_until(lambda: (saved := self.status()["checkpoint"]) and saved["step"] > 0, 30, "a checkpoint")
        time.sleep(0.6)  # status shows whole seconds
        job.kill()
        self.assertEqual(self.status()["state"], "crashed")
        text = self.lockstep("status", self.folder / "run").out
        self.assertNotRegex(text, r"effective +0\.0 %")
        self.assertNotRegex(text, r"time +0s in jobs")
        # The next job knows what the crash has cost.
        path = self.folder / "run" / "status.json"
        record = json.loads(path.read_text(encoding="utf-8"))
        record["step"] = self.status()["checkpoint"]["step"] * 2  # as if it had gone on for as long again
        record["last_step"] = record["first_step"] + 100
        record["heartbeat"] = record["last_step"]
        path.write_text(json.dumps(record), encoding="utf-8")
        self.train("run", ranks=2, steps=self.status()["checkpoint"]["step"] + 5)
        status = self.status()
        self.assertEqual((status["state"], status["jobs"]), ("finished", 2))
        self.assertAlmostEqual(status["lost"]["repeated"], 50, delta=5)

    def test_status_of_nothing_and_of_a_failed_run(self):
        self.assert_one_error(self.start("status", self.folder).wait(), 2, "there is no status of a run")
        self.train("run", steps=3)
        self.train("run", steps=6, code=2, sets=["shards=4"])
        status = self.status()
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 2))
        self.assertIn("shards is 4", status["reason"])


if __name__ == "__main__":
    main()
