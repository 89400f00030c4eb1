# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""train.on_nan: rollback, and the hook loss_spike: back to the last checkpoint, and on after the samples at fault."""
import gzip
import os
import pathlib
import re
import unittest

from lockstep_run import DIGITS, DIGITS_DATA, LockstepTest, checkpoints, main, records

HAS_FAULTS = os.environ.get("LOCKSTEP_HAS_FAULTS") == "1"
BAD = 700  # sample of the training set, which has huge features; seed 1 uses it in step 8
STEPS = 20


class RollbackTest(LockstepTest):
    def setUp(self):
        super().setUp()
        rows = gzip.open(DIGITS_DATA, "rt").read().splitlines()
        rows[BAD] = ",".join(["3e38"] * 64 + rows[BAD].split(",")[-1:])
        (self.folder / "bad.csv").write_text("\n".join(rows) + "\n")
        text = pathlib.Path(DIGITS).read_text(encoding="utf-8").replace("../data/digits.csv.gz", "bad.csv")
        text = re.sub(r"scale: 0.0625 .*", "scale: 1", text)
        text = re.sub(r"\ncheckpoint: .*", "\ncheckpoint: {every_steps: 5, keep: 0}", text)
        text = re.sub(r"\nsummary: .*", "\nsummary: {every_steps: 1}", text)
        self.config = self.folder / "bad.yaml"
        self.config.write_text(text, encoding="utf-8")

    def run_it(self, name, ranks=1, threads=1, steps=STEPS, sets=("train.on_nan=rollback",), **more):
        return self.train(name, config=self.config, ranks=ranks, threads=threads, steps=steps, sets=list(sets), **more)

    def test_the_same_bits_on_any_number_of_ranks(self):
        result = self.run_it("one")
        self.assertRegex(result.err, r"the loss of step 8 is \S+: training has diverged: the run goes back\n"
                                     rf"  microshard 4 of 8: the output of conv1 is the first that is not finite; sample {BAD} \(.*bad.csv, line {BAD + 1}\)\n")
        self.assertIn("back to the checkpoint of step 5; training goes on after the samples of step 8, with sample 512 of epoch 1", result.err)
        self.assertEqual([record["step"] for record in records(self.folder / "one")], list(range(1, STEPS + 1)))
        self.assertEqual(self.header(self.folder / "one")["samples_consumed"], 64 * (STEPS + 3))
        for ranks, threads in ((1, 2), (2, 1), (2, 2), (3, 1), (4, 1)):
            with self.subTest(ranks=ranks, threads=threads):
                run = f"run-{ranks}-{threads}"
                again = self.run_it(run, ranks, threads)
                self.assertIn(f"microshard 4 of 8: the output of conv1 is the first that is not finite; sample {BAD} ", again.err)
                self.assert_same_run("one", run)

    def test_the_same_bits_with_a_shared_update(self):
        self.run_it("one")
        self.run_it("shared", 3, sets=("train.on_nan=rollback", "optimizer.shard=true"))
        self.assert_same_run("one", "shared")

    def test_a_run_stopped_after_the_rollback_goes_on_alike(self):
        self.run_it("whole")
        for steps in (5, 9):  # before the offending batch, where a checkpoint is due, and after the way back
            with self.subTest(steps=steps):
                run = f"run-{steps}"
                self.run_it(run, ranks=2, steps=steps)
                self.run_it(run, ranks=3)
                self.assertEqual(self.digest("whole"), self.digest(run))

    def test_a_run_killed_after_the_rollback_goes_on_alike(self):
        """The checkpoint that is written at once has the step of the old one, and the cursor after the samples."""
        self.run_it("whole")
        self.run_it("killed", steps=9)  # back at 5, then 6, 7, 8, 9
        for path in checkpoints(self.folder / "killed"):
            if path.stem != "step-00000005":
                path.unlink()
        (self.folder / "killed" / "checkpoint").unlink()
        self.assertEqual(self.header(self.folder / "killed")["samples_consumed"], 64 * 8)
        result = self.run_it("killed")
        self.assertNotIn("the run goes back", result.err)
        self.assertEqual(self.digest("whole"), self.digest("killed"))
        self.assertEqual([r["step"] for r in records(self.folder / "killed")], list(range(1, STEPS + 1)))

    def test_back_to_the_initial_values(self):
        never = ["train.on_nan=rollback", "checkpoint.every_steps=100"]
        result = self.run_it("one", sets=never)
        self.assertIn("back to the initial values, as there is no checkpoint yet; training goes on after the samples of step 8", result.err)
        header = self.header(self.folder / "one")
        self.assertEqual((header["epoch"], header["samples_consumed"]), (1, 64 * (STEPS + 8 - 24)))
        self.run_it("two", ranks=3, sets=never)
        self.assert_same_run("one", "two")

    def test_the_last_batch_of_the_run(self):
        """Nothing is left after its samples."""
        sets = ["train.on_nan=rollback", "train.steps=null", "train.epochs=1", "train.batch_size=700", "train.drop_remainder=true", "train.shuffle=false",
                "data.train={rows: [0, 1400]}", "checkpoint.every_steps=1"]
        result = self.train("run", config=self.config, ranks=2, sets=sets)
        self.assertIn("back to the checkpoint of step 1; training goes on after the samples of step 2, with sample 0 of epoch 2", result.err)
        header = self.header(self.folder / "run")
        self.assertEqual((header["global_step"], header["epoch"]), (1, 1))

    def test_there_is_a_limit(self):
        """A learning rate that is too large makes every batch bad."""
        rate = "optimizer={gradient_descent: {learning_rate: 1e30}}"
        for sets, pattern in ((["train.on_nan=rollback", "train.max_setbacks=3"], "would go back to step 0 more than 3 times"),
                              (["train.on_nan=skip", "train.max_setbacks=4"], "the updates of 5 steps in a row are skipped")):
            with self.subTest(sets=sets):
                arguments = self.train_arguments(sets[0], steps=60, sets=[*sets, rate, "checkpoint.every_steps=100"])
                self.assert_one_error(self.start(*arguments, ranks=2).wait(), 1, pattern)

    def test_a_spike(self):
        """Not a single number is NaN: the rate of one step is too large."""
        text = self.config.read_text(encoding="utf-8").replace("bad.csv", str(DIGITS_DATA)).replace("scale: 1", "scale: 0.0625")
        self.config.write_text(text, encoding="utf-8")
        rate = "optimizer={adam: {learning_rate: {piecewise_constant: {boundaries: [11, 12], values: [0.004, 3.0, 0.004]}}}}"
        sets = [rate, "hooks=[{loss_spike: {factor: 2, window: 5, action: rollback}}]", "train.max_setbacks=2"]
        arguments = self.train_arguments("one", config=self.config, steps=16, sets=sets)
        result = self.start(*arguments, ranks=1).wait()
        self.assertRegex(result.err, r"over 2.* times the median .*: the run goes back\n  microshard \d of 8 has the largest loss, ")
        self.assertEqual(result.code, 1, "the rate is as large again in the same step")
        self.assertRegex(result.err, "would go back to step 10 more than 2 times")

    @unittest.skipUnless(HAS_FAULTS, "built without faults")
    def test_gradients_that_are_not_finite(self):
        """Without clipping, with a finite loss, before the update; from the machine, not from the samples."""
        plain = ["summary.every_steps=1", "checkpoint.every_steps=2"]
        for action in ("skip", "stop", "rollback"):
            with self.subTest(action):
                arguments = self.train_arguments(action, steps=6, sets=[*plain, f"train.on_nan={action}"])
                result = self.start(*arguments, ranks=2, variables={"LOCKSTEP_FAULT": "4:1:nan_gradient"}).wait()
                self.assertEqual(result.code, 0, result)
                self.assertRegex(result.err, "the norm of the gradients of step 4 is -?nan")
                self.assertIn("Computed once more, the step is finite", result.err)
                self.assertNotIn("gradient_norm", records(self.folder / action)[0])
        self.assertIn("back to the checkpoint of step 2", result.err)
        self.assertEqual(self.header(self.folder / "skip")["samples_consumed"], 6 * 64)
        self.assertEqual(self.header(self.folder / "rollback")["samples_consumed"], 8 * 64)


if __name__ == "__main__":
    main()
