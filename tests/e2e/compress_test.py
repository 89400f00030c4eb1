# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""comm.compress: bfloat16: other bits than none, and the same on any number of ranks and threads, with what cuts or moves the
sums; runs that go on; training that converges; what it does not go with."""
import os
import unittest

from lockstep_run import DIGITS, DIGITS_DATA, LockstepTest, main, records

HAS_FAULTS = os.environ.get("LOCKSTEP_HAS_FAULTS") == "1"
COMPRESS = "comm.compress=bfloat16"
FEEDBACK = ["comm.error_feedback=true", "comm.sparse_below=0"]
# Buckets of several sizes; a table whose gradient is sparse; batch norm over the whole batch.
CONFIG = f"""
seed: 3
shards: 8
data:
  format: csv
  path: {DIGITS_DATA}
  label_column: -1
  train: {{rows: [0, 1500]}}
model:
  layers:
    - embedding: {{name: words, rows: 5000, units: 3}}
    - flatten
    - dense: {{name: hidden, units: 120}}
    - batch_norm
    - relu
    - dense: {{name: logits, units: 10}}
optimizer: {{adam: {{learning_rate: 0.002}}}}
train: {{batch_size: 32, epochs: 2}}
comm: {{bucket_first_mb: 0.05, bucket_mb: 0.1}}
"""
STEPS = 8


class CompressTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "net.yaml"
        self.config.write_text(CONFIG)

    def case(self, name, sets, forms, more=()):
        """Runs on other ranks and threads, with `more` that changes no bits, are the run on one rank."""
        self.train(name, config=self.config, steps=STEPS, sets=[COMPRESS, *sets])
        self.assertEqual(len(records(self.folder / name)), STEPS)
        for ranks, threads in forms:
            run = f"{name}-{ranks}-{threads}"
            self.train(run, config=self.config, steps=STEPS, sets=[COMPRESS, *sets, *more], ranks=ranks, threads=threads)
            self.assert_same_run(name, run, run)

    def test_same_bits_on_any_ranks_and_threads(self):
        self.case("eight", [], [(1, 2), (2, 1), (2, 2), (3, 1), (4, 2), (8, 1)])
        self.train("plain", config=self.config, steps=STEPS)
        self.assertNotEqual(self.digest("plain"), self.digest("eight"))

    def test_shards_that_are_no_power_of_two(self):
        self.case("six", ["shards=6"], [(1, 2), (2, 1), (4, 1)])

    def test_with_what_moves_the_sums(self):
        self.case("rounds", ["shards=4", "train.accumulate=2"], [(1, 2), (2, 1), (3, 2)])
        self.train("shards", config=self.config, steps=STEPS, sets=[COMPRESS])
        self.assert_same_run("shards", "rounds")
        self.case("overlap", [], [(2, 1), (3, 1)], ["comm.overlap=on", "comm.bucket_mb=0.02"])
        self.case("shared", [], [(2, 1), (3, 1), (4, 2)], ["optimizer.shard=true"])
        self.case("dense", [], [(1, 1), (3, 1)], ["comm.sparse_below=0"])

    def test_a_run_goes_on_and_keeps_its_rounding(self):
        self.train("whole", config=self.config, steps=STEPS, sets=[COMPRESS])
        for steps, ranks in ((3, 4), (5, 1), (STEPS, 3)):
            self.train("parts", config=self.config, steps=steps, ranks=ranks, sets=[COMPRESS])
        self.assertEqual(self.digest("whole"), self.digest("parts"))
        job = self.start(*self.train_arguments("parts", config=self.config, steps=STEPS + 1), ranks=2)
        self.assert_one_error(job.wait(), 2, r"would change the result:\n.*comm.compress: bfloat16\n.*comm.compress: none")

    def test_error_feedback_has_the_same_bits_on_any_ranks_and_threads(self):
        self.case("feedback", FEEDBACK, [(1, 2), (2, 1), (3, 1), (4, 2)])
        self.train("without", config=self.config, steps=STEPS, sets=[COMPRESS, "comm.sparse_below=0"])
        self.assertNotEqual(self.digest("without"), self.digest("feedback"))
        self.case("six", [*FEEDBACK, "shards=6"], [(2, 1), (4, 1)])
        self.case("rounds", [*FEEDBACK, "shards=4", "train.accumulate=2"], [(2, 1)])
        self.assert_same_run("feedback", "rounds")
        for name, more in (("overlap", ["comm.overlap=on", "comm.bucket_mb=0.02"]), ("shard", ["optimizer.shard=true"]),
                           ("shared", ["comm.shared_memory=on"]), ("gating", ["optimizer.gating=none"])):
            self.train(name, config=self.config, steps=STEPS, sets=[COMPRESS, *FEEDBACK, *more], ranks=2)
            self.assert_same_run("feedback", name, name)

    def test_error_feedback_goes_on_from_a_checkpoint(self):
        """On other numbers of ranks, sharded or not, in shared memory or not."""
        sets = [COMPRESS, *FEEDBACK]
        self.train("whole", config=self.config, steps=STEPS, sets=sets)
        for steps, ranks, more in ((2, 4, ["optimizer.shard=true"]), (4, 1, []), (5, 3, []), (STEPS, 2, ["comm.shared_memory=on"])):
            self.train("parts", config=self.config, steps=steps, ranks=ranks, sets=[*sets, *more])
        self.assert_same_run("whole", "parts")
        script = "import sys, h5py; print(h5py.File(sys.argv[1])['error_feedback/hidden/kernel'].shape)"
        self.assertEqual(self.read_by_h5py(script, max((self.folder / "parts").rglob("*.h5"))), (15, 192 * 120))

    def test_residuals_of_another_tree_begin_at_zero(self):
        self.train("tree", config=self.config, steps=2, sets=[COMPRESS, "comm.sparse_below=0"])
        result = self.train("tree", config=self.config, steps=3, sets=[COMPRESS, *FEEDBACK], more=["--accept-changes"])
        self.assertRegex(str(result), "state of error feedback: begun anew: the checkpoint has no residuals of this tree")

    @unittest.skipUnless(HAS_FAULTS, "built without faults")
    def test_a_skipped_step_leaves_no_residual(self):
        """A gradient that is not finite: the run goes on as if that step had not been, on any number of ranks."""
        sets = [COMPRESS, *FEEDBACK, "train.on_nan=skip"]
        for run, ranks in (("nan1", 1), ("nan2", 2)):
            result = self.train(run, config=self.config, steps=STEPS, sets=sets, ranks=ranks,
                                variables={"LOCKSTEP_FAULT": "4:0:nan_gradient"})
            self.assertIn("the norm of the gradients of step 4 is", result.err)
            self.assertTrue(all(record["loss"] < 10 for record in records(self.folder / run)))
        self.assert_same_run("nan1", "nan2")

    def test_it_trains_as_well(self):
        """Two epochs of digits: the loss is that of float32 to a few percent."""
        for run, sets in (("none", []), ("bfloat16", [COMPRESS]), ("feedback", [COMPRESS, *FEEDBACK])):
            self.train(run, steps=40, sets=["shards=8", *sets])
        plain, *others = ([record["loss"] for record in records(self.folder / run)] for run in ("none", "bfloat16", "feedback"))
        self.assertLess(sum(plain[-10:]), 0.6 * sum(plain[:10]))
        for rounded in others:
            self.assertNotEqual(plain, rounded)
            self.assertEqual(plain[0], rounded[0])
            self.assertAlmostEqual(sum(plain[-10:]), sum(rounded[-10:]), delta=0.03 * sum(plain[-10:]))

    def test_what_it_does_not_go_with(self):
        result = self.lockstep("check", DIGITS, "--set", COMPRESS, "--set", "comm.reduction=fast", code=2)
        self.assertRegex(result.err, "compress.*fast does not sum along the tree", str(result))
        result = self.lockstep("check", DIGITS, "--set", "comm.compress=float16", code=2)
        self.assertRegex(result.err, "bfloat16.*float16 is too small", str(result))
        for sets, message in ((["comm.error_feedback=true"], "not rounded: there is no error to give back"),
                              ([COMPRESS, "comm.error_feedback=true", "precision.compute=float16"], "gradients carry a loss scale"),
                              ([COMPRESS, "comm.use_error_feedback=true"], "It is called 'error_feedback' here")):
            result = self.lockstep("check", DIGITS, *(word for text in sets for word in ("--set", text)), code=2)
            self.assertRegex(result.err, message, str(result))
        result = self.lockstep("check", self.config, "--set", COMPRESS, "--set", "comm.error_feedback=true", code=2)
        self.assertRegex(result.err, "gradient of words/.* is sparse", str(result))
        for name in ("compression", "gradient_compression", "comm_hook"):
            result = self.lockstep("check", DIGITS, "--set", f"comm.{name}=bfloat16", code=2)
            self.assertRegex(result.err, "It is called 'compress' here", str(result))

    def test_check_says_what_is_sent(self):
        plain, half = (self.lockstep("check", DIGITS, "--set", f"comm.compress={kind}").out for kind in ("none", "bfloat16"))

        def sent(text):
            return [float(line.split()[3]) for line in text.splitlines() if line.startswith("sent per step")]

        self.assertGreater(len(sent(plain)), 0)
        for one, other in zip(sent(plain), sent(half)):
            self.assertAlmostEqual(one / 2, other, delta=0.011)


if __name__ == "__main__":
    main()
