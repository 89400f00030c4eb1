# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A run is continued with another configuration or other data: what is refused, what is taken, and what is kept of it."""
import gzip
import unittest

from lockstep_run import DIGITS_DATA, LockstepTest, main, records

RATE = "optimizer={momentum: {learning_rate: 0.01}}"
OTHER_RATE = "optimizer={momentum: {learning_rate: 0.02}}"


class ChangesTest(LockstepTest):
    def refused(self, pattern, ranks=None, **options):
        """Asserts that the job is refused and that the run directory keeps its files."""
        before = self.kept()
        result = self.start(*self.train_arguments("run", **options), ranks=ranks).wait()
        self.assert_one_error(result, 2, pattern)
        self.assertEqual(self.kept(), before)

    def kept(self):
        folder = self.folder / "run"
        return {path: path.read_bytes() for path in folder.rglob("*") if path.suffix in (".yaml", ".h5") or path.name == "metrics.jsonl"}

    def configs(self):
        return [path.name for path in sorted((self.folder / "run" / "configs").iterdir())]

    def test_what_changes_the_result_is_refused(self):
        self.train("run", ranks=None, steps=3, sets=[RATE])
        difference = r"- optimizer.learning_rate: 0.01\n  \+ optimizer.learning_rate: 0.02\n"
        for ranks in (None, 3):
            self.refused(difference, ranks, steps=6, sets=[OTHER_RATE])
        self.refused(difference, steps=3, sets=[OTHER_RATE])  # a finished run is no exception
        self.refused(r"3 values (.|\n)*\+ data.scale: 0.125\n(.|\n)*conv1.filters(.|\n)*- train.batch_size: 64\n",
                     steps=6, sets=[RATE, "train.batch_size=32", "data.scale=0.125", "model.layers.conv1.filters=8"])
        self.assertEqual(self.configs(), ["job-0001.yaml"])

    def test_accepted_changes_hold_for_later_jobs(self):
        self.train("run", ranks=None, steps=3, sets=[RATE])
        accepted = self.train("run", ranks=2, steps=6, sets=[OTHER_RATE], more=["--accept-changes"])
        self.assertIn("--accept-changes", accepted.err)
        self.assertIn("+ optimizer.learning_rate: 0.02", accepted.err)
        self.train("run", ranks=None, steps=7, sets=[OTHER_RATE])
        self.assertEqual(self.configs(), [f"job-{job:04}.yaml" for job in (1, 2, 3)])
        texts = [(self.folder / "run" / "configs" / name).read_text(encoding="utf-8") for name in self.configs()]
        self.assertEqual([text.count("learning_rate: 0.02") for text in texts], [0, 1, 1])
        self.refused("learning_rate", steps=8, sets=[RATE])
        # Accepted by a job that ended before its first checkpoint.
        for name in ("checkpoints/step-00000007.h5", "checkpoints/step-00000006.h5"):
            (self.folder / "run" / name).unlink()
        self.assertIn("as in the last job", self.train("run", ranks=None, steps=8, sets=[OTHER_RATE]).err)
        # Nothing is left to do with the change.
        self.refused("this run is finished: step 8.*no effect", steps=8, sets=[RATE], more=["--accept-changes"])

    def test_what_cannot_change_the_result_is_taken(self):
        self.train("run", ranks=None, sets=["train.epochs=1"])
        more = ["train.epochs=2", "summary.every_steps=7", "checkpoint.every_steps=20", "comm.timeout_seconds=60"]
        longer = self.train("run", ranks=2, threads=2, sets=more, more=["--resume", "must"])
        for change in ("- train.epochs: 1\n  + train.epochs: 2\n", "+ summary.every_steps: 7", "- threads: 1\n  + threads: 2"):
            self.assertIn(change, longer.err)
        self.assertNotIn("base_directory", longer.err)
        self.train("whole", ranks=None, sets=["train.epochs=2"])
        self.assertEqual(self.digest("run"), self.digest("whole"))
        finished = self.train("run", ranks=None, sets=["train.epochs=2", "summary.every_steps=9"])
        self.assertRegex(finished.err, r"\+ summary.every_steps: 9\n(.|\n)*this run is finished: step 48")

    def test_data_may_move_but_not_change(self):
        here, there = (self.folder / f"{name}.csv.gz" for name in ("here", "there"))
        here.write_bytes(DIGITS_DATA.read_bytes())
        self.train("run", ranks=None, steps=3, sets=[f"data.path={here}"])
        here.rename(there)
        self.assertIn("the same contents", self.train("run", ranks=2, steps=4, sets=[f"data.path={there}"]).err)
        lines = gzip.decompress(there.read_bytes()).decode().splitlines(keepends=True)
        there.write_bytes(gzip.compress("".join([lines[1], lines[0], *lines[2:]]).encode()))
        self.refused("the training data changed", 2, steps=5, sets=[f"data.path={there}"])
        self.train("run", ranks=None, steps=5, sets=[f"data.path={there}"], more=["--accept-changes"])
        self.train("run", ranks=None, steps=6, sets=[f"data.path={there}"])

    def test_a_run_directory_continues_with_its_configuration(self):
        folder = self.folder / "run"
        self.train("run", ranks=None, steps=3, sets=[RATE])
        self.assertIn("this run is finished", self.lockstep("train", folder).err)
        self.lockstep("train", folder, "--set", "train.steps=6", ranks=2)
        self.assertEqual(len(records(folder)), 6)
        self.train("whole", ranks=None, steps=6, sets=[RATE])
        self.assert_same_run("whole", "run")
        self.assert_one_error(self.start("train", folder, "--set", "train.batch_size=8").wait(), 2, r"\+ train.batch_size: 8")
        self.assert_one_error(self.start("train", folder, "--run-dir", self.folder / "b").wait(), 2, "--run-dir as well")
        self.assert_one_error(self.start("train", self.folder).wait(), 2, "no run directory: it has no config.yaml")
        # A configuration that was edited in the run directory is compared, too.
        path = folder / "config.yaml"
        path.write_text(path.read_text(encoding="utf-8").replace("steps: 6", "steps: 9").replace("0.01", "0.5"), encoding="utf-8")
        self.assert_one_error(self.start("train", folder).wait(), 2, r"\+ optimizer.learning_rate: 0.5")


if __name__ == "__main__":
    main()
