# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Repeated SIGKILL at random times, on 1 to 4 ranks and in one run directory. The directory is usable after each kill. At
most one checkpoint interval is lost; with checkpoints in the background, also the steps since the pending one began. At the
end the run has the bits of an undisturbed run.

  LOCKSTEP_KILLS   number of kills (default 80)
  LOCKSTEP_SEED    seed of the random times; printed, so that a failure can be repeated
"""
import json
import os
import random
import signal
import time
import unittest

from lockstep_run import SOURCE, LockstepTest, checkpoints, main, wait_until

CONFIG = SOURCE / "tests" / "faults" / "small.yaml"
KILLS = int(os.environ.get("LOCKSTEP_KILLS", "80"))
EVERY, EVERY_WITH_MPIRUN = 100, 20  # steps between two checkpoints: a few tenths of a second
SETS = ["summary.events=false", "train.batch_size=256", "model.layers.conv.filters=16"]
FAR = 10_000_000  # a step that no run reaches
SAVING = ["kill_in_write", "kill_before_fsync", "kill_before_rename", "kill_after_rename"]
RANKS = [None] * 9 + [2, 2, 3, 4]  # None: without a launcher, which starts ten times faster
LAST_BYTES = 4096


class KillLoopTest(LockstepTest):
    def options(self, steps, ranks, background=True):
        every = EVERY if ranks is None else EVERY_WITH_MPIRUN
        return {"config": CONFIG, "steps": steps,
                "sets": [f"checkpoint.every_steps={every}", f"checkpoint.background={str(background).lower()}", *SETS]}

    def done(self):
        """The last step with a complete record in metrics.jsonl."""
        try:
            with open(self.folder / "run" / "metrics.jsonl", "rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - LAST_BYTES))
                lines = file.read().splitlines(keepends=True)
        except FileNotFoundError:
            return 0
        whole = [line for line in lines[1 if len(lines) > 1 else 0:] if line.endswith(b"\n")]
        return json.loads(whole[-1])["step"] if whole else 0

    def saved(self):
        """The step of the checkpoint from which a run would resume; reads and verifies every byte of it."""
        if not checkpoints(self.folder / "run"):
            return 0
        result = self.lockstep("inspect", self.folder / "run", "--json")
        return json.loads(result.out)["global_step"]

    def temporaries(self):
        folder = self.folder / "run" / "checkpoints"
        return [path for path in folder.glob("*") if not path.name.endswith(".h5")] if folder.exists() else []

    def listing(self):
        """The files with their times and the end of the log, to diagnose a failure."""
        run = self.folder / "run"
        times = sorted((path.stat().st_mtime, str(path.relative_to(run))) for path in run.rglob("*") if path.is_file())
        log = (run / "lockstep.log").read_text(encoding="utf-8").splitlines()[-15:]
        return "\n".join([*(f"{time:.3f} {path}" for time, path in times), *log])

    def being_written(self, saved):
        """Whether a checkpoint after `saved` was begun: a temporary file, or one that the state file does not name yet."""
        newer = [path for path in checkpoints(self.folder / "run") if int(path.stem.removeprefix("step-")) > saved]
        return bool(newer or self.temporaries())

    def one_kill(self, moments, reached, background):
        ranks = moments.choice(RANKS)
        way = moments.choice(["in a save", "at a time", "after a step", "one rank", "at a temporary file"])
        if way == "one rank" and ranks in (None, 1):
            way = "after a step"
        variables = {}
        if way == "in a save":
            variables["LOCKSTEP_FAULT"] = f"{reached + moments.choice([0, EVERY_WITH_MPIRUN, 2 * EVERY_WITH_MPIRUN])}:0:{moments.choice(SAVING)}"
        what = f"{way}, {ranks or 1} ranks, background {background} {variables}"
        begin_step = self.done()
        job = self.start(*self.train_arguments("run", **self.options(FAR, ranks, background)), ranks=ranks, variables=variables)
        pause = moments.random()
        if way == "in a save":
            result = job.wait(limit=60)
            self.assertIn(result.code, (137, -signal.SIGKILL), f"{what}\n{result}")
            return what
        if way == "at a time":
            time.sleep(0.5 * pause)
        elif way == "at a temporary file":
            wait_until(lambda: not job.running() or self.temporaries(), 60, "a checkpoint to be written")
        else:
            wait_until(lambda: not job.running() or self.done() != begin_step, 60, "a step")
            time.sleep(0.3 * pause)
        self.assertTrue(job.running(), f"{what}: it ended before the kill")
        if way == "one rank":
            pids = job.ranks()
            os.kill(pids[moments.choice(sorted(pids))], signal.SIGKILL)
            self.assertNotEqual(job.wait(limit=60).code, 0, what)
        else:
            job.kill()
            job.out.close()
            job.err.close()
        return what

    def test_repeated_kills(self):
        seed = int(os.environ.get("LOCKSTEP_SEED", time.time_ns() % 1_000_000))
        print(f"LOCKSTEP_SEED={seed} LOCKSTEP_KILLS={KILLS}", flush=True)
        moments = random.Random(seed)
        reached, lost, forward, mid_save = 0, {False: [0], True: [0]}, 0, 0
        # On a slow disk fewer runs reach a checkpoint: more kills then, so that enough of them matter.
        kill, few = 0, KILLS / 10
        while kill < KILLS or (min(forward, mid_save) <= few and kill < 5 * KILLS):
            background = moments.random() < 0.5
            before = self.done()
            what = f"kill {kill}, seed {seed}: " + self.one_kill(moments, reached, background)
            mid_save += bool(self.temporaries()) or "LOCKSTEP_FAULT" in what
            done, saved = self.done(), self.saved()
            self.assertGreaterEqual(saved, reached, f"{what}: a checkpoint was lost")
            # In the background a second interval covers the handover and the start of the write.
            # A run that was killed before its first step has lost nothing: those steps belong to an earlier run.
            if done != before and (not background or not self.being_written(saved)):
                self.assertLessEqual(done - saved, 2 * EVERY if background else EVERY,
                                     f"{what}: more than an interval was lost\n{self.listing()}")
                lost[background].append(done - saved)
            forward += saved > reached
            reached = saved
            kill += 1
        print(f"{kill} kills, {mid_save} of them during a save; {forward} runs made progress, to step {reached}; "
              f"at most {max(lost[False])} steps were lost with checkpoints in the foreground, and {max(lost[True])} in the "
              "background while none was being written")
        self.assertGreater(forward, few, "too few runs made progress for a meaningful test")
        self.assertGreater(mid_save, few, "too few kills during a save")
        last = reached + EVERY // 2
        self.train("run", ranks=2, **self.options(last, 2))
        self.train("whole", ranks=None, **self.options(last, None))
        self.assertEqual(self.digest("whole"), self.digest("run"))
        self.assertEqual(self.temporaries(), [])


if __name__ == "__main__":
    main()
