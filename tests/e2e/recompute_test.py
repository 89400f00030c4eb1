# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Activations that are computed once more for the backward pass (train.recompute, recompute of blocks): the same bits, less
memory, and what is said about it."""
import re
import unittest

from lockstep_run import DIGITS, DIGITS_DATA, LockstepTest, main, records

STEPS = 4
# Several heads; the blocks' layers have batch norm, dropout, sums.
NET = f"""
seed: 3
shards: 4
data: {{format: csv, path: {DIGITS_DATA}, shape: [8, 8, 1], label_column: -1, scale: 0.0625, train: {{rows: [0, 300]}}, eval: {{rows: [1500, 1601]}}}}
model:
  blocks:
    residual:
      parameters: {{filters: 8}}
      layers:
        - conv2d: {{filters: $filters, kernel: 3, bias: false}}
        - batch_norm
        - relu
        - dropout: {{rate: 0.2}}
        - conv2d: {{filters: $filters, kernel: 3, bias: false}}
        - batch_norm: {{name: end}}
        - drop_path: {{rate: 0.2}}
        - add: {{inputs: [drop_path1, input]}}
        - relu
  layers:
    - conv2d: {{filters: 8, kernel: 3}}
    - repeat: {{name: body, times: 3, recompute: true, layers: [residual]}}
    - residual: {{name: top, recompute: true}}
    - global_avg_pool: {{name: pooled}}
    - dense: {{name: digit, units: 10}}
    - dense: {{name: value, units: 1, inputs: pooled}}
  heads:
    - {{name: digit, output: digit, loss: softmax_cross_entropy}}
    - {{name: value, output: value, loss: huber, weight: 0.1}}
optimizer: {{adam: {{learning_rate: 0.003}}}}
train: {{batch_size: 32, epochs: 2}}
"""
SAVES = r"([\d.]+) MB of activations per microshard instead of ([\d.]+) MB: (\d+) segments? computes? (\d+) % of the forward pass once more"


class RecomputeTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.net = self.folder / "net.yaml"
        self.net.write_text(NET)

    def check(self, config, *sets):
        return self.lockstep("check", config, *[word for value in sets for word in ("--set", value)]).out

    def saved(self, text):
        found = re.search(SAVES, text)
        self.assertTrue(found, text)
        less, more, segments, share = found.groups()
        self.assertLess(float(less), float(more))
        return float(less), float(more), int(segments), int(share)

    def test_same_bits_with_and_without(self):
        """Marked blocks and chosen segments, in rounds, in bfloat16, with the update beside the backward pass and shared."""
        for name, sets in (("plain", []),
                           ("rounds", ["shards=2", "train.accumulate=2"]),
                           ("bfloat16", ["precision.compute=bfloat16"])):
            self.train(f"{name}-none", config=self.net, steps=STEPS, sets=[*sets, "train.recompute=none"])
            self.assertEqual(len(records(self.folder / f"{name}-none")), STEPS)
            for recompute in ("marked", "auto"):
                for ranks, threads, more in ((1, 1, []), (1, 2, []), (2, 1, ["optimizer.gating=none"]), (3, 1, ["optimizer.shard=true"]),
                                             (4, 1, ["comm.overlap=on"])):
                    with self.subTest(name=name, recompute=recompute, ranks=ranks, threads=threads):
                        run = f"{name}-{recompute}-{ranks}-{threads}"
                        result = self.train(run, config=self.net, ranks=ranks, threads=threads, steps=STEPS,
                                            sets=[*sets, *more, f"train.recompute={recompute}"])
                        self.saved(result.err)
                        self.assert_same_run(f"{name}-none", run)

    def test_a_run_goes_on_with_another_choice(self):
        self.train("whole", config=self.net, steps=STEPS)
        self.train("parts", config=self.net, steps=2, sets=["train.recompute=none"])
        self.net.write_text(NET.replace("name: top, recompute: true", "name: top"))
        self.train("parts", config=self.net, ranks=2, steps=STEPS, sets=["train.recompute=auto"])
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_it_is_said_what_it_saves_and_costs(self):
        less, more, segments, share = self.saved(self.check(self.net))
        self.assertEqual(segments, 4)
        self.assertTrue(less < 0.7 * more and 40 <= share <= 99, (less, more, share))
        self.assertEqual(self.saved(self.check(self.net, "train.recompute=auto"))[1], more)
        text = self.check(self.net, "train.recompute=none")
        self.assertNotIn("recomputation", text)
        self.assertIn(f"activations       {more:.2f} MB per microshard", text)
        self.assertIn(f"activations       {less:.2f} MB per microshard", self.check(self.net))
        self.assertNotIn("recomputation", self.check(DIGITS))
        self.saved(self.check(DIGITS, "train.recompute=auto"))
        self.assertRegex(self.check(self.net, "model.layers=[flatten, {dense: {name: digit, units: 10}}, {dense: {name: value, units: 1}}]",
                                    "model.blocks=null", "train.recompute=auto"), "recomputation +nothing")

    def test_mistakes_are_named(self):
        for old, new, pattern in (("name: top, recompute: true", "name: top, recompute: yes", "recompute is true or false"),
                                  ("parameters: {filters: 8}", "parameters: {filters: 8, recompute: 1}", "no parameter can be called recompute"),
                                  ("global_avg_pool: {name: pooled}", "global_avg_pool: {name: pooled, recompute: true}", "recompute: must be text, but is 'true'")):
            self.assertIn(old, NET)
            self.net.write_text(NET.replace(old, new))
            self.assertRegex(self.lockstep("check", self.net, code=2).err, pattern)
        self.assertRegex(self.lockstep("check", DIGITS, "--set", "train.recompute=all", code=2).err, "recompute: 'all' is not one of marked, auto, none")

    def test_names_of_other_frameworks(self):
        for name in ("gradient_checkpointing", "activation_checkpointing", "remat"):
            result = self.lockstep("check", DIGITS, "--set", f"train.{name}=true", code=2)
            self.assertRegex(result.err, "recompute: auto", name)


if __name__ == "__main__":
    main()
