# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""gradients.noise_scale: the numbers of McCandlish et al. 2018, from the norms of the microshards' gradients."""
import gzip
import unittest

from lockstep_run import DIGITS_DATA, LockstepTest, main, records

BATCH, SHARDS, CLASSES, PIXELS = 100, 8, 10, 64

# The kernel is zero before the first step: the gradient of a sample is x (p - y), with p = 1/10.
LINEAR = f"""
seed: 5
shards: {SHARDS}
data:
  format: csv
  path: {DIGITS_DATA}
  shape: [64]
  label_column: -1
  scale: 0.0625
  train: {{rows: [0, 1500]}}
  eval: {{rows: [1500, 1797]}}
model:
  layers: [dense: {{name: logits, units: 10, kernel_initializer: zeros}}]
optimizer: {{gradient_descent: {{learning_rate: 0.05}}}}
train: {{batch_size: {BATCH}, steps: 1, shuffle: false}}
gradients: {{noise_scale: true}}
summary: {{every_steps: 1}}
"""


def expected(parts, decay=0.0):
    """The noise scale after a batch of those parts, each a list of samples (features, label)."""
    samples = sum(len(part) for part in parts)
    whole = [0.0] * (PIXELS + 1) * CLASSES
    total = 0.0
    for part in parts:
        mine = [0.0] * len(whole)
        for features, label in part:
            for c in range(CLASSES):
                slope = (0.1 - (c == label)) / samples
                for i, x in enumerate([*features, 1.0]):
                    mine[i * CLASSES + c] += slope * x
        total += sum(g * g for g in mine) * samples / len(part)
        whole = [a + b for a, b in zip(whole, mine)]
    square = sum(g * g for g in whole)
    n = len(parts)
    return samples * (total - square) / (n * square - total)


class NoiseScaleTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "linear.yaml"
        self.config.write_text(LINEAR, encoding="utf-8")

    def run_it(self, name, steps=1, ranks=1, threads=1, sets=(), **more):
        return self.train(name, config=self.config, steps=steps, ranks=ranks, threads=threads, sets=list(sets), **more)

    def values(self, name):
        return [record.get("noise_scale") for record in records(self.folder / name)]

    def samples(self):
        rows = [[float(x) for x in row.split(",")] for row in gzip.open(DIGITS_DATA, "rt").read().splitlines()[:BATCH]]
        return [([x * 0.0625 for x in row[:-1]], int(row[-1])) for row in rows]

    def test_the_value_is_that_of_the_paper(self):
        """Of microshards of 12 and of 13 samples."""
        samples = self.samples()
        parts = [samples[s * BATCH // SHARDS:(s + 1) * BATCH // SHARDS] for s in range(SHARDS)]
        self.assertEqual({len(part) for part in parts}, {12, 13})
        self.run_it("run")
        self.assertLess(abs(self.values("run")[0] / expected(parts) - 1), 1e-4)
        self.run_it("fewer", sets=["shards=2", "train.accumulate=2"])
        parts = [samples[s * BATCH // 4:(s + 1) * BATCH // 4] for s in range(4)]
        self.assertLess(abs(self.values("fewer")[0] / expected(parts) - 1), 1e-4)

    def test_a_loss_scale_does_not_change_it(self):
        self.run_it("plain")
        self.run_it("scaled", sets=["precision={compute: bfloat16, loss_scale: 1024}"])
        self.assertLess(abs(self.values("scaled")[0] / self.values("plain")[0] - 1), 0.05)

    def test_the_same_bits_on_any_number_of_ranks(self):
        deep = ["model.layers=[dense: {units: 70}, relu, batch_norm: {group: 1}, dense: {units: 10}]", "train.accumulate=2"]
        self.run_it("one", steps=20, sets=deep)
        self.assertTrue(any(value is not None for value in self.values("one")))
        for ranks, threads in ((1, 2), (2, 1), (2, 2), (3, 1), (4, 1), (8, 1)):
            with self.subTest(ranks=ranks, threads=threads):
                run = f"run-{ranks}-{threads}"
                self.run_it(run, steps=20, ranks=ranks, threads=threads, sets=deep)
                self.assert_same_run("one", run)
        small = ["comm.overlap=on", "comm.bucket_first_mb=0.001", "comm.bucket_mb=0.002"]
        self.run_it("buckets", steps=20, ranks=2, sets=[*deep, *small])
        self.assert_same_run("one", "buckets")

    def test_it_changes_no_bit_of_the_variables(self):
        self.run_it("with", steps=8)
        self.run_it("without", steps=8, sets=["gradients.noise_scale=false"])
        self.assertEqual([r["loss"] for r in records(self.folder / "with")], [r["loss"] for r in records(self.folder / "without")])

    def test_it_is_resumed(self):
        self.run_it("whole", steps=20)
        self.run_it("parts", steps=9, ranks=2)
        self.run_it("parts", steps=20, ranks=3)
        self.assertEqual(self.values("whole"), self.values("parts"))
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_what_it_needs(self):
        for sets, pattern in ((["shards=1"], "a batch is one microshard, and there is nothing to compare it with"),
                              (["optimizer.shard=true"], "optimizer.shard leaves no rank the whole gradient"),
                              (["gradients.noise_scale_decay=1"], r"must be \[0, 1\), but is 1")):
            arguments = self.train_arguments("bad", config=self.config, steps=1, sets=sets)
            self.assert_one_error(self.start(*arguments, ranks=1).wait(), 2, pattern)
        norm = "model.layers=[batch_norm: {name: bn}, dense: {units: 10}]"
        self.assertIn("gradients.noise_scale: bn takes statistics of several microshards", self.run_it("norm", sets=[norm]).err)


if __name__ == "__main__":
    main()
