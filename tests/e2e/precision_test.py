# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Activations held in 16 bits: what is learned, the same bits on any number of ranks and threads, the loss scale, resume."""
import json
import re
import unittest

from lockstep_run import DIGITS, LockstepTest, main, records

STEPS = 30
TYPES = ("bfloat16", "float16")


class PrecisionTest(LockstepTest):
    def sets(self, kind, *more):
        return [f"precision.compute={kind}", "train.batch_size=128", *more]

    def accuracy(self, run):
        result = self.lockstep("evaluate", self.folder / run)
        return json.loads(result.out)["accuracy"]

    def test_a_16_bit_run_learns_what_a_float32_run_learns(self):
        accuracies = {}
        for kind in ("float32", *TYPES):
            self.train(kind, config=DIGITS, sets=[f"precision.compute={kind}"], steps=240)
            accuracies[kind] = self.accuracy(kind)
        self.assertEqual(len({self.digest(kind) for kind in accuracies}), 3, "nothing was rounded")
        for kind in TYPES:
            self.assertGreater(accuracies[kind], 0.94)
            self.assertAlmostEqual(accuracies[kind], accuracies["float32"], delta=0.02)

    def test_same_bits_on_any_number_of_ranks_and_threads(self):
        for kind in TYPES:
            self.train(f"{kind}-one", config=DIGITS, sets=self.sets(kind, "shards=4"), steps=STEPS)
            for ranks, threads in ((1, 2), (2, 1), (2, 2), (3, 1), (4, 1)):
                run = f"{kind}-{ranks}-{threads}"
                self.train(run, config=DIGITS, sets=self.sets(kind, "shards=4"), ranks=ranks, threads=threads, steps=STEPS)
                self.assert_same_run(f"{kind}-one", run, run)

    def test_a_fixed_loss_scale_changes_no_bit_of_float32(self):
        # Powers of two go through sums and products as they are, where nothing vanishes or overflows.
        self.train("plain", config=DIGITS, sets=self.sets("float32"), steps=STEPS)
        self.train("scaled", config=DIGITS, sets=self.sets("float32", "precision.loss_scale=1024"), steps=STEPS)
        self.assertEqual(self.digest("plain"), self.digest("scaled"))

    def test_an_overflow_halves_the_loss_scale_and_leaves_the_update_out(self):
        # 2 to the power of 40 at the first step: the gradients of the logits alone are infinite in float16.
        growth = ["precision.loss_scale=dynamic", "precision.loss_scale_growth_steps=1"]
        result = self.train("run", config=DIGITS, sets=self.sets("float16", *growth), steps=40)
        self.assertIn("gradients overflowed; its update is left out, the loss scale is", result.err)
        scales = [line["loss_scale"] for line in records(self.folder / "run") if "loss_scale" in line]
        self.assertEqual(scales[:3], [65536, 131072, 262144])
        falls = [i for i in range(1, len(scales)) if scales[i] < scales[i - 1]]
        self.assertTrue(falls)
        self.assertTrue(all(scales[i] == scales[i - 1] / 2 for i in falls))
        self.train("ranks", config=DIGITS, sets=self.sets("float16", *growth, "shards=1"), steps=40)

    def test_the_loss_scale_is_resumed(self):
        growth = ["precision.loss_scale_growth_steps=3", "shards=4"]
        self.train("whole", config=DIGITS, sets=self.sets("float16", *growth), steps=STEPS)
        self.train("parts", config=DIGITS, sets=self.sets("float16", *growth), steps=10, ranks=3)
        self.train("parts", config=DIGITS, sets=self.sets("float16", *growth), steps=20, ranks=2)
        self.train("parts", config=DIGITS, sets=self.sets("float16", *growth), steps=STEPS)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_gradients_that_overflow_at_a_fixed_scale_end_the_run_before_the_update(self):
        result = self.lockstep("train", DIGITS, "--run-dir", self.folder / "run", "--steps", "5",
                               "--set", "precision.compute=float16", "--set", f"precision.loss_scale={2 ** 50}", code=1)
        self.assertIn("the gradients of step 1 are not finite, at a loss scale of", str(result))
        self.assertIn("precision.compute: bfloat16", str(result))

    def test_a_run_goes_on_in_another_type(self):
        self.train("run", config=DIGITS, sets=self.sets("bfloat16"), steps=10)
        self.train("run", config=DIGITS, sets=self.sets("float32"), steps=20)
        self.train("run", config=DIGITS, sets=self.sets("float16"), steps=STEPS)

    def test_a_recorded_step_is_repeated(self):
        self.train("run", config=DIGITS, sets=self.sets("bfloat16", "shards=4"), ranks=2, steps=5, more=["--record", "3"])
        self.lockstep("replay", self.folder / "run", "--step", "3")
        record = next((self.folder / "run" / "records").glob("*.json")).read_text()
        self.assertIn("features as bfloat16", record)

    def test_check_says_which_layers_hold_what(self):
        plain = self.lockstep("check", DIGITS).out
        half = self.lockstep("check", DIGITS, "--set", "precision.compute=bfloat16").out
        self.assertNotIn("float", plain.split("training set")[0])
        self.assertRegex(half, r"conv1 +conv2d .* bfloat16\n")
        self.assertIn("casts             features as bfloat16, logits as float32", half)

        def megabytes(text):
            return float(re.search(r"([0-9.]+) MB per microshard", text).group(1))
        self.assertLess(megabytes(half), 0.7 * megabytes(plain))

    def test_a_run_says_where_16_bits_save_no_time(self):
        words = "this processor multiplies no float16: products are those of float32"
        self.assertIn(words, self.train("run", config=DIGITS, sets=self.sets("float16"), steps=1).err)
        self.assertNotIn("this processor multiplies no", self.train("plain", config=DIGITS, steps=1).err)

    def test_mistakes_are_named(self):
        for setting, words in (("precision.compute=float8", "not one of float32, bfloat16, float16"),
                               ("precision.loss_scale=1000", "a power of two"), ("precision.loss_scale=0.5", "a power of two"),
                               ("precision.loss_scale=much", "a power of two"), ("precision.loss_scale=[2]", "a power of two"),
                               ("precision.loss_scale_growth_steps=0", "loss_scale_growth_steps")):
            result = self.lockstep("check", DIGITS, "--set", setting, code=2)
            self.assertIn(words, str(result), setting)


if __name__ == "__main__":
    main()
