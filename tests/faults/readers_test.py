# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Commands that read a run while another program trains it: a checkpoint that is removed between the look at the folder
and its reading. The faults make that happen at the worst places (docs/faults.md)."""
import os
import shutil
import threading
import time
import unittest

from lockstep_run import DIGITS, LockstepTest, main

REPLACED = ",".join(["0:0:replaced_checkpoint"] * 3)  # three times in a row
REMOVED = "0:0:removed_checkpoint"


class ReadersTest(LockstepTest):
    def run_with_checkpoints(self):
        for folder in ("made", "run"):
            shutil.rmtree(self.folder / folder, ignore_errors=True)
        self.train_once("made", ranks=None, steps=4, sets=["checkpoint.every_steps=2", "checkpoint.keep=1", "checkpoint.keep_best=1",
                                                           "eval.every_steps=2"])
        shutil.copytree(self.folder / "made", self.folder / "run")
        return self.folder / "run"

    def commands(self, run, checkpoint=()):
        """The commands that read one checkpoint of a run, with what they write."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        samples = self.folder / "samples.csv"
        samples.write_text("\n".join([",".join(["1"] * 64)] * 3) + "\n")
        watch = {} if checkpoint else {"watch": ["watch", run]}
        return {
            **watch,
            "evaluate": ["evaluate", run, *checkpoint],
            "predict": ["predict", run, "--input", samples, "--output", out / "predicted.csv", *checkpoint],
            "export": ["export", run, "--output", out / "net.onnx", *checkpoint],
            "inspect": ["inspect", run, "--digest", *checkpoint],
            "report": ["report", run, "--output", out / "report.html", *checkpoint],
            "checkpoint export": ["checkpoint", "export", run, "--output", out / "weights.h5", *checkpoint],
            "checkpoint average": ["checkpoint", "average", run, run, "--output", out / "mean.h5", *checkpoint],
            "checkpoint diff": ["checkpoint", "diff", run, run, *checkpoint],
            "warm start": ["train", DIGITS, "--run-dir", out / "other", "--steps", 1, "--set", f"warm_start.checkpoint={run}",
                           *(["--set", f"warm_start.which={checkpoint[1]}"] if checkpoint else [])],
        }

    def test_the_newest_is_looked_for_again(self):
        for name in self.commands(self.folder):
            with self.subTest(command=name):
                run = self.run_with_checkpoints()
                result = self.lockstep(*self.commands(run)[name], variables={"LOCKSTEP_FAULT": REPLACED})
                self.assertNotIn("damaged", result.err, "it was gone, not damaged")
                self.assertTrue((run / "checkpoints" / "step-00000007.h5").exists(), "the fault did not happen")

    def test_so_is_the_best(self):
        for name in self.commands(self.folder, ["--checkpoint", "best"]):
            with self.subTest(command=name):
                run = self.run_with_checkpoints()
                before = sorted(path.name for path in (run / "checkpoints").iterdir())
                self.lockstep(*self.commands(run, ["--checkpoint", "best"])[name], variables={"LOCKSTEP_FAULT": REPLACED})
                self.assertNotEqual(sorted(path.name for path in (run / "checkpoints").iterdir()), before, "the fault did not happen")

    def test_a_named_one_keeps_its_error(self):
        run = self.run_with_checkpoints()
        evaluate = self.commands(run, ["--checkpoint", "4"])["evaluate"]
        result = self.start(*evaluate, variables={"LOCKSTEP_FAULT": REPLACED}).wait()
        self.assert_one_error(result, 4, r"step-00000004\.h5: cannot open: No such file")

    def test_an_open_one_is_read_to_its_end(self):
        for ranks in (None, 2):
            for name in ("evaluate", "predict", "watch"):
                with self.subTest(command=name, ranks=ranks):
                    run = self.run_with_checkpoints()
                    expected = self.lockstep(*self.commands(run)[name], ranks=ranks)
                    result = self.lockstep(*self.commands(run)[name], ranks=ranks, variables={"LOCKSTEP_FAULT": REMOVED})
                    self.assertEqual(result.out, expected.out)
                    self.assertFalse((run / "checkpoints" / "step-00000004.h5").exists(), "the fault did not happen")

    def test_beside_a_writer_that_keeps_one(self):
        """Checkpoints that come and go as fast as a program can rename them."""
        run = self.run_with_checkpoints()
        ends = threading.Event()

        def write():
            state, folder, step = run / "checkpoint", run / "checkpoints", 4
            while not ends.is_set():
                old, step = f"step-{step:08}.h5", step + 1
                new = f"step-{step:08}.h5"
                shutil.copy(folder / old, run / ".next")
                os.rename(run / ".next", folder / new)
                text = state.read_text().replace(old, new)
                (run / ".state").write_text(text)
                os.rename(run / ".state", state)
                (folder / old).unlink()
                time.sleep(0.002)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                for name in ("evaluate", "inspect", "predict", "export", "report", "checkpoint export"):
                    command = self.commands(run)[name]
                    self.lockstep(*command)
        finally:
            ends.set()
            writer.join()


if __name__ == "__main__":
    main()
