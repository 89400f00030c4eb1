# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A run that is killed at any moment and continued, on any number of ranks, ends with the bits of one that was not."""
import hashlib
import random
import time
import unittest

from lockstep_run import STEPS_PER_EPOCH, LockstepTest, checkpoints, main, records, wait_until

STEPS = 60  # two and a half epochs
EVERY = 5   # steps between checkpoints: none but those of steps 120, 240 ... lie between two epochs
BACKGROUND = [f"checkpoint.every_steps={EVERY}", "eval.every_epochs=1"]
SETS = [*BACKGROUND, "checkpoint.background=false"]  # none is late: exactly the steps that are due


def contents(folder):
    """{path: hash} of all files of a run directory but those that tell who ran when."""
    who_and_when = ("lockstep.log", ".lock", "status.json", "jobs.jsonl")
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in who_and_when]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


class ResumeTest(LockstepTest):
    def uninterrupted(self):
        self.train("whole", ranks=None, steps=STEPS, sets=SETS)
        self.assertEqual([record["step"] for record in records(self.folder / "whole")], list(range(1, STEPS + 1)))

    def assert_as_uninterrupted(self, run, what=""):
        """Digest, and every record of metrics.jsonl, once and in order."""
        self.assert_same_run("whole", run, what)
        for split in ("train", "eval"):
            self.assertEqual(records(self.folder / "whole", split), records(self.folder / run, split), what)

    def killed(self, run, ranks, at_step):
        """Starts a run and kills all its processes when it has written a checkpoint."""
        job = self.start(*self.train_arguments(run, steps=STEPS, sets=SETS), ranks=ranks)
        folder = self.folder / run
        path = folder / "checkpoints" / f"step-{at_step:08}.h5"
        wait_until(lambda: not job.running() or path.exists(), 60, path)
        if not job.running():
            self.fail(f"it ended before the kill\n{job.wait()}")
        job.kill()
        self.assertLess(records(folder)[-1]["step"], STEPS, "the kill came too late to show anything")

    def test_killed_in_epoch_and_resumed_on_other_ranks(self):
        self.uninterrupted()
        for before, after in ((2, 2), (2, 3), (3, 1), (1, 4)):
            with self.subTest(killed_on=before, resumed_on=after):
                run = f"run-{before}-{after}"
                self.killed(run, before, at_step=2 * EVERY)
                header = self.header(self.folder / run)
                self.assertEqual(header["global_step"] % EVERY, 0)
                self.assertEqual(header["epoch"], header["global_step"] // STEPS_PER_EPOCH)
                consumed = 64 * (header["global_step"] % STEPS_PER_EPOCH)
                self.assertEqual(header["samples_consumed"], consumed)
                self.assertGreater(consumed, 0, "the checkpoint must lie inside an epoch")
                resumed = self.train(run, ranks=after, steps=STEPS, sets=SETS)
                self.assertIn(f"continuing at step {header['global_step']}", resumed.err)
                self.assert_as_uninterrupted(run)

    def test_killed_again_and_again_at_random_moments(self):
        self.uninterrupted()
        seed = random.SystemRandom().randrange(10**6)
        choose = random.Random(seed)
        what = f"random.Random({seed})"
        folder = self.folder / "run"
        kills = 0
        while kills < 6:
            before = len(records(folder))
            job = self.start(*self.train_arguments("run", steps=STEPS, sets=BACKGROUND, threads=choose.choice((1, 2))),
                             ranks=choose.choice((1, 2, 3)))
            if kills > 0 and choose.random() < 0.3:  # while it starts; the others in a step or while it writes
                end = time.monotonic() + choose.uniform(0, 0.3)
                wait_until(lambda: not job.running() or time.monotonic() > end, 60, "the delay")
            else:
                target = before + choose.randrange(1, STEPS // 6)
                wait_until(lambda: not job.running() or len(records(folder)) >= target, 60, f"step {target}")
            if not job.running():
                self.assertEqual(job.wait().code, 0, what)
                break
            job.kill()
            kills += 1
        self.assertGreater(kills, 0)
        self.train("run", ranks=2, steps=STEPS, sets=BACKGROUND)
        self.assert_as_uninterrupted("run", f"{what}, {kills} kills")
        leftovers = [name for name in contents(folder) if "tmp" in name]
        self.assertEqual(leftovers, [], "files of killed writers remain")

    def test_more_steps_later_are_the_same_as_all_at_once(self):
        self.uninterrupted()
        for steps, ranks in ((7, 2), (31, 1), (STEPS, 3)):
            self.train("run", ranks=ranks, steps=steps, sets=SETS)
        self.assert_same_run("whole", "run")

    def test_finished_run_ends_at_once(self):
        self.train("run", ranks=2, steps=12, sets=SETS)
        before = contents(self.folder / "run")
        self.assertGreater(len(before), 4)
        for ranks in (None, 2, 3):
            again = self.train("run", ranks=ranks, steps=12, sets=SETS)
            self.assertIn("this run is finished: step 12", again.err)
            self.assertEqual(contents(self.folder / "run"), before)

    def test_resume_never_and_must(self):
        arguments = self.train_arguments("run", steps=3, more=["--resume", "must"])
        for ranks in (None, 2):
            self.assert_one_error(self.start(*arguments, ranks=ranks).wait(), 4, "no checkpoint to continue from")
        self.train("run", steps=3, more=["--resume", "never"])
        before = contents(self.folder / "run")
        arguments = self.train_arguments("run", steps=6, more=["--resume", "never"])
        for ranks in (None, 2):
            self.assert_one_error(self.start(*arguments, ranks=ranks).wait(), 2, "already holds a run")
        self.assertEqual(contents(self.folder / "run"), before, "a refused run must not touch the directory")
        self.train("run", steps=6, more=["--resume", "must"])
        self.assertEqual(self.header(self.folder / "run")["global_step"], 6)

    def test_other_seed_or_shards_are_refused(self):
        self.train("run", steps=3)
        before = contents(self.folder / "run")
        for override, pattern in (("seed=2", "seed is 2, but the run began with 1"),
                                  ("shards=4", "shards is 4, but the run began with 8")):
            for ranks in (None, 2):
                arguments = self.train_arguments("run", steps=6, sets=[override])
                self.assert_one_error(self.start(*arguments, ranks=ranks).wait(), 2, pattern)
        self.assertEqual(contents(self.folder / "run"), before)

    def test_only_the_newest_checkpoints_are_kept(self):
        self.train("run", ranks=2, steps=23, sets=[*SETS, "checkpoint.keep=2"])
        self.assertEqual([path.name for path in checkpoints(self.folder / "run")],
                         ["step-00000020.h5", "step-00000023.h5"])
        state = (self.folder / "run" / "checkpoint").read_text(encoding="utf-8")
        self.assertTrue(state.startswith('model_checkpoint_path: "checkpoints/step-00000023.h5"\n'), state)


if __name__ == "__main__":
    main()
