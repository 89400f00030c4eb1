# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Starting the program the way a person does: without a launcher, without --run-dir, from anywhere."""
import json
import re
import shutil
import unittest

from lockstep_run import DIGITS, LockstepTest, checkpoints, main, records


class LaunchTest(LockstepTest):
    def test_without_a_launcher_it_is_one_rank(self):
        alone = self.train("alone", ranks=None, steps=10, threads=None)
        self.assertRegex(alone.err, r"1 rank, 1 of them on \S+, each with \d+ threads?")
        self.train("mpirun", ranks=1, steps=10, threads=None)
        self.assert_same_run("alone", "mpirun")

    def test_the_default_run_directory(self):
        for ranks, folder in ((None, "alone"), (2, "together")):
            place = self.folder / folder
            place.mkdir()
            arguments = ["train", DIGITS, "--steps", 5, "--threads", 1]
            self.lockstep(*arguments, ranks=ranks, cwd=place)
            run = place / "runs" / "digits"
            present = {re.sub(r"(tfevents)\..*", r"\1", path.name) for path in run.iterdir()}
            self.assertEqual(present, {"config.yaml", "checkpoint", "checkpoints", "metrics.jsonl", "lockstep.log",
                                       "events.out.tfevents", "eval", ".lock"})
            self.assertEqual([path.name for path in checkpoints(run)], ["step-00000005.h5"])
            self.assertEqual([path.name for path in place.iterdir()], ["runs"])
            self.assertEqual(len(records(run, "eval")), 1)
            self.assertIn("evaluation at step 5", (run / "lockstep.log").read_text(encoding="utf-8"))
        self.assertEqual(self.digest("alone/runs/digits"), self.digest("together/runs/digits"))

    def test_a_run_directory_can_be_moved_and_its_config_run_again(self):
        self.train("first", steps=5)
        moved = self.folder / "elsewhere" / "moved"
        moved.parent.mkdir()
        shutil.move(self.folder / "first", moved)
        digest = self.digest("elsewhere/moved")
        metrics = json.loads(self.lockstep("evaluate", moved, cwd="/").out)
        self.assertEqual(metrics["samples"], 297)
        self.lockstep("train", moved / "config.yaml", "--run-dir", self.folder / "again", ranks=2, cwd="/")
        self.assertEqual(self.header(self.folder / "again")["global_step"], 5)
        self.assertEqual(self.digest("again"), digest)

    def test_the_event_files_and_the_metrics_say_the_same(self):
        self.train("run", ranks=2, steps=6)
        lines = self.lockstep("events", self.folder / "run", "--tag", "loss").out.splitlines()
        events = [json.loads(line) for line in lines]
        for split, steps in (("train", list(range(1, 7))), ("eval", [6])):
            found = [event for event in events if event["file"].startswith("eval/") == (split == "eval")]
            self.assertEqual([event["step"] for event in found], steps)
            for event, record in zip(found, records(self.folder / "run", split)):
                self.assertAlmostEqual(event["value"], record["loss"], delta=1e-6 * record["loss"])  # float32 there

    def test_check_and_info_need_no_run(self):
        table = self.lockstep("check", DIGITS, cwd=self.folder).out
        for layer in ("conv1", "bn1", "conv2", "bn2", "logits"):
            self.assertIn(layer, table)
        self.assertIn("MPI", self.lockstep("info", cwd=self.folder).out)
        self.assertEqual(list(self.folder.glob("runs")), [])


if __name__ == "__main__":
    main()
