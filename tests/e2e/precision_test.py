# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Activations held in 16 bits: what is learned, the same bits on any number of ranks and threads, the loss scale, resume."""
import json
import re
import unittest

from lockstep_run import DIGITS, LockstepTest, main, records

STEPS = 30
TYPES = ("bfloat16", "float16")
RECURRENT = """
model:
  layers:
    - reshape: {shape: [8, 8]}
    - lstm: {name: lstm, units: 20, layers: 2, bidirectional: true, recurrent_dropout: 0.1}
    - masking: {name: kept}
    - gru: {name: gru, units: 24}
    - last_step: {name: last}
    - dense: {name: logits, units: 10}
  loss: softmax_cross_entropy
"""


class PrecisionTest(LockstepTest):
    def sets(self, kind, *more):
        return [f"precision.compute={kind}", "train.batch_size=128", *more]

    def accuracy(self, run):
        result = self.lockstep("evaluate", self.folder / run)
        return json.loads(result.out)["accuracy"]

    def test_a_16_bit_run_learns_as_in_float32(self):
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

    def recurrent(self):
        """The digits, row by row, for a recurrent net."""
        config = self.folder / "recurrent.yaml"
        text = DIGITS.read_text().replace("../data", str(DIGITS.parent.parent / "data"))
        config.write_text(re.sub(r"\nmodel:.*?(?=\noptimizer:)", lambda _: RECURRENT, text, flags=re.DOTALL))
        return config

    def test_recurrent_net_same_bits_on_any_ranks(self):
        config = self.recurrent()
        for kind in TYPES:
            check = self.lockstep("check", config, "--set", f"precision.compute={kind}").out
            for layer in ("lstm", "kept", "gru", "last"):
                self.assertRegex(check, rf"\n{layer} .* {kind}\b")
            self.assertIn(f"casts             features as {kind}\n", check)
            sets = self.sets(kind, "shards=4")
            self.train(f"{kind}-one", config=config, sets=sets, steps=STEPS)
            for ranks, threads in ((1, 2), (2, 1), (2, 2), (3, 1), (4, 1)):
                run = f"{kind}-{ranks}-{threads}"
                self.train(run, config=config, sets=sets, ranks=ranks, threads=threads, steps=STEPS)
                self.assert_same_run(f"{kind}-one", run, run)

    def test_recurrent_net_learns_as_in_float32(self):
        config = self.recurrent()
        accuracies = {}
        for kind in ("float32", *TYPES):
            self.train(kind, config=config, sets=[f"precision.compute={kind}"], steps=300)
            accuracies[kind] = self.accuracy(kind)
        self.assertEqual(len({self.digest(kind) for kind in accuracies}), 3, "nothing was rounded")
        self.assertGreater(accuracies["float32"], 0.75)
        for kind in TYPES:
            self.assertAlmostEqual(accuracies[kind], accuracies["float32"], delta=0.03)

    def test_a_fixed_loss_scale_changes_no_bit_of_float32(self):
        # Powers of two go through sums and products as they are, where nothing vanishes or overflows.
        self.train("plain", config=DIGITS, sets=self.sets("float32"), steps=STEPS)
        self.train("scaled", config=DIGITS, sets=self.sets("float32", "precision.loss_scale=1024"), steps=STEPS)
        self.assertEqual(self.digest("plain"), self.digest("scaled"))

    def test_overflow_halves_loss_scale_and_skips_update(self):
        # 2 to the power of 40 at the first step: the gradients of the logits alone are infinite in float16.
        growth = ["precision.loss_scale=dynamic", "precision.loss_scale_growth_steps=1"]
        result = self.train("run", config=DIGITS, sets=self.sets("float16", *growth), steps=40)
        self.assertIn("gradients overflowed; its update is skipped, the loss scale is", result.err)
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

    def test_overflow_at_a_fixed_scale_ends_the_run(self):
        result = self.lockstep("train", DIGITS, "--run-dir", self.folder / "run", "--steps", "5",
                               "--set", "precision.compute=float16", "--set", f"precision.loss_scale={2 ** 50}", code=1)
        self.assertIn("the gradients of step 1 are not finite, at a loss scale of", str(result))
        self.assertIn("precision.compute: bfloat16", str(result))

    def test_a_run_goes_on_in_another_type(self):
        self.train("run", config=DIGITS, sets=self.sets("bfloat16"), steps=10)
        self.train("run", config=DIGITS, sets=self.sets("float32"), steps=20, more=["--accept-changes"])
        self.train("run", config=DIGITS, sets=self.sets("float16"), steps=STEPS, more=["--accept-changes"])

    def test_a_recorded_step_is_repeated(self):
        self.train("run", config=DIGITS, sets=self.sets("bfloat16", "shards=4"), ranks=2, steps=5, more=["--record", "3"])
        self.lockstep("replay", self.folder / "run", "--step", "3")
        record = next((self.folder / "run" / "records").glob("*.json")).read_text()
        self.assertIn("features as bfloat16", record)

    def test_check_says_which_layers_hold_what(self):
        plain = self.lockstep("check", DIGITS).out
        half = self.lockstep("check", DIGITS, "--set", "precision.compute=bfloat16").out
        self.assertNotIn("float", plain.split("training set")[0])
        self.assertRegex(half, r"conv1 +conv2d .* bfloat16, products in float32\n")  # one channel in
        self.assertIn("casts             features as bfloat16\n", half)
        smoothed = self.lockstep("check", DIGITS, "--set", "precision.compute=bfloat16",
                                 "--set", "model.loss={softmax_cross_entropy: {label_smoothing: 0.1}}").out
        self.assertIn("casts             features as bfloat16, logits as float32\n", smoothed)  # a loss in float32

        def megabytes(text):
            return float(re.search(r"([0-9.]+) MB per microshard", text).group(1))
        self.assertLess(megabytes(half), 0.7 * megabytes(plain))

    def test_a_run_says_where_16_bits_save_no_time(self):
        words = "conv1, conv2, conv3, logits (this processor cannot multiply float16)"
        result = self.train("run", config=DIGITS, sets=self.sets("float16", "shards=2"), steps=1, ranks=2)
        self.assertEqual(result.err.count("products in float32, which save no time: " + words), 1, result)
        check = self.lockstep("check", DIGITS, "--set", "precision.compute=float16").out
        self.assertIn("float32 products  " + words, check)
        plain = self.train("plain", config=DIGITS, steps=1)
        self.assertNotIn("products in float32", plain.err)
        self.assertNotIn("products", self.lockstep("check", DIGITS).out)

    def test_mistakes_are_named(self):
        for setting, words in (("precision.compute=float8", "not one of float32, bfloat16, float16"),
                               ("precision.loss_scale=1000", "a power of two"), ("precision.loss_scale=0.5", "a power of two"),
                               ("precision.loss_scale=much", "a power of two"), ("precision.loss_scale=[2]", "a power of two"),
                               ("precision.loss_scale_growth_steps=0", "loss_scale_growth_steps")):
            result = self.lockstep("check", DIGITS, "--set", setting, code=2)
            self.assertIn(words, str(result), setting)


if __name__ == "__main__":
    main()
