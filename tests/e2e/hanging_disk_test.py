# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A disk that does not take event files and metrics.jsonl any more: steps and checkpoints go on, the end waits with a limit and
says so; a disk that answers again, or has room again, gets everything; a full one is a warning, and a run that goes on. LD_PRELOAD of hanging_disk.cpp is
the disk."""
import os

from event_records import summaries
from lockstep_run import LockstepTest, checkpoints, main, records, wait_until

STEPS = 160
SETS = ["checkpoint.every_steps=20", "checkpoint.keep=100", "summary.every_steps=2", "summary.timeout_seconds=1",
        "summary.flush_seconds=0.1", "summary.weights={every_steps: 20}"]


class HangingDiskTest(LockstepTest):
    def hang_in_the_middle(self, run, steps, how="HANG_WHILE"):
        """The job, whose disk hangs, or is full, since it has recorded something."""
        flag = self.folder / "hangs"
        job = self.start(*self.train_arguments(run, steps=steps, sets=SETS), ranks=2,
                         variables={"LD_PRELOAD": os.environ["LOCKSTEP_HANGING_DISK"], how: str(flag),
                                    "HANG_NAMES": "metrics.jsonl,tfevents"})
        wait_until(lambda: (self.folder / run / "metrics.jsonl").exists() and len(records(self.folder / run)) > 2, 60, "records")
        flag.touch()
        return job, flag

    def test_a_run_ends_without_it(self):
        job, flag = self.hang_in_the_middle("run", STEPS)
        result = job.wait()
        self.assertEqual(result.code, 0, result)
        recorded = records(self.folder / "run")[-1]["step"]
        self.assertLess(recorded, STEPS, "the disk hung")
        self.assertEqual(int(checkpoints(self.folder / "run")[-1].stem.split("-")[1]), STEPS)
        self.assertRegex(result.err, r"metrics.jsonl: the disk has not answered for 1 s; nothing waits for it any longer")
        self.assertRegex(result.err, r"tfevents.*: the disk has not answered for 1 s")
        self.assertLessEqual(result.err.count("has not answered"), 3, "once for each file")
        # What it left is a run that goes on.
        flag.unlink()
        self.train("run", ranks=2, steps=STEPS + 4, sets=["summary.every_steps=2"])
        self.assertEqual(records(self.folder / "run")[-1]["step"], STEPS + 4)

    def test_a_disk_that_answers_again_gets_everything(self):
        job, flag = self.hang_in_the_middle("run", 1_000_000)  # it goes on until it is stopped
        seen = len(records(self.folder / "run"))
        wait_until(lambda: len(checkpoints(self.folder / "run")) > 1, 60, "checkpoints meanwhile")
        self.assertLessEqual(len(records(self.folder / "run")), seen + 1)
        flag.unlink()
        wait_until(lambda: len(records(self.folder / "run")) > seen + 20, 60, "records of the disk that answers again")
        (self.folder / "run" / "STOP").touch()
        result = job.wait()
        self.assertEqual(result.code, 130, result)
        steps = [record["step"] for record in records(self.folder / "run")]
        self.assertEqual(steps, list(range(2, steps[-1] + 1, 2)), "each one, once, in order")
        last = int(checkpoints(self.folder / "run")[-1].stem.split("-")[1])
        self.assertLessEqual(last - steps[-1], 2)
        weights = [step for tag, step in summaries(self.folder / "run") if tag == "weights/conv1/kernel"]
        self.assertEqual(weights, [1, *range(20, last + 1, 20)])

    def test_a_disk_that_fills_up(self):
        self.train("plain", steps=STEPS)
        job, flag = self.hang_in_the_middle("run", STEPS, "FULL_WHILE")
        result = job.wait()
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.err, r"warning: .*metrics.jsonl: cannot write metrics: No space left on device; metrics wait in memory until it takes them again, the run continues")
        self.assertRegex(result.err, r"warning: .*run/events.out.tfevents.*: cannot write events: No space left on device; events wait in memory until it takes them again, the run continues")
        self.assertRegex(result.err, rf"warning: .*metrics.jsonl: missing: \d+ records of steps \d+ to {STEPS}; ")
        self.assertRegex(result.err, r"warning: .*run/events.out.tfevents.*: missing: \d+ events of steps \d+ to \d+; ")
        self.assertLessEqual(result.err.count("wait in memory"), 3, "once for each file, with that of evaluations\n" + result.err)
        self.assertEqual(self.digest("run"), self.digest("plain"))
        flag.unlink()
        self.train("run", ranks=2, steps=STEPS + 4, sets=["summary.every_steps=2"])
        steps = [record["step"] for record in records(self.folder / "run")]
        self.assertEqual(steps, sorted(set(steps)))
        self.assertEqual(steps[-2:], [STEPS + 2, STEPS + 4])
        recorded = [step for tag, step in summaries(self.folder / "run") if tag == "loss"]
        self.assertEqual(recorded, sorted(set(recorded)), "each once")
        self.assertEqual(recorded[-2:], [STEPS + 2, STEPS + 4])

    def test_a_disk_that_was_full_for_a_while(self):
        """Every record is there in the end, once, and the log says so."""
        job, flag = self.hang_in_the_middle("run", 1_000_000, "FULL_WHILE")
        wait_until(lambda: len(checkpoints(self.folder / "run")) > 2, 60, "checkpoints meanwhile")
        seen = len(records(self.folder / "run"))
        flag.unlink()
        wait_until(lambda: len(records(self.folder / "run")) > seen + 30, 60, "records of the disk that has room again")
        (self.folder / "run" / "STOP").touch()
        result = job.wait()
        self.assertEqual(result.code, 130, result)
        self.assertRegex(result.err, r"metrics.jsonl: metrics are written again; none is missing")
        self.assertRegex(result.err, r"run/events.out.tfevents.*: events are written again; none is missing")
        steps = [record["step"] for record in records(self.folder / "run")]
        self.assertEqual(steps, list(range(2, steps[-1] + 1, 2)), "each one, once, in order")
        self.assertGreater(steps[-1], 2 * seen)
        last = int(checkpoints(self.folder / "run")[-1].stem.split("-")[1])
        recorded = [step for tag, step in summaries(self.folder / "run") if tag == "loss"]
        self.assertEqual(recorded, steps, "the events, too")
        weights = [step for tag, step in summaries(self.folder / "run") if tag == "weights/conv1/kernel"]
        self.assertEqual(weights, [1, *range(20, last + 1, 20)])


if __name__ == "__main__":
    main()
