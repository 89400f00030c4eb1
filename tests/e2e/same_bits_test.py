# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The promise of the project: the same bits on any number of ranks and threads."""
import gzip
import itertools
import unittest

from lockstep_run import DIGITS, DIGITS_DATA, STEPS_PER_EPOCH, LockstepTest, main, records

STEPS = STEPS_PER_EPOCH + 4  # the last, smaller batch of an epoch is among them

# Nothing in it meets across ranks but the gradients, and segments span the whole net.
WITHOUT_BATCH_NORM = f"""
seed: 5
shards: 7
data:
  format: csv
  path: {DIGITS_DATA}
  shape: [8, 8, 1]
  label_column: -1
  scale: 0.0625
  train: {{rows: [0, 1500]}}
  eval: {{rows: [1500, 1797]}}
model:
  layers:
    - conv2d: {{name: conv1, filters: 8, kernel: 3}}
    - relu
    - avg_pool
    - conv2d: {{name: conv2, filters: 12, kernel: 3}}
    - relu
    - dropout: {{rate: 0.4}}
    - global_avg_pool
    - dense: {{name: logits, units: 10}}
optimizer: {{momentum: {{learning_rate: 0.05, momentum: 0.9, nesterov: true}}}}
train: {{batch_size: 50, epochs: 1}}
"""

# Normalisation within a sample, batch norm of each microshard over one spatial axis, structure, noise, a stopped
# gradient.
ALL_KINDS_OF_LAYERS = WITHOUT_BATCH_NORM[:WITHOUT_BATCH_NORM.index("model:")] + """
model:
  layers:
    - conv2d: {name: conv1, filters: 8, kernel: 3}
    - group_norm: {groups: 4}
    - gelu
    - spatial_dropout: {rate: 0.2}
    - drop_path: {rate: 0.2}
    - gaussian_noise: {name: noisy, stddev: 0.1}
    - reduce: {name: pooled, operation: mean, axes: [0, 1]}
    - dense: {units: 8}
    - sigmoid: {name: share}
    - multiply: {name: gated, inputs: [noisy, share]}
    - split: {name: halves, axis: 0, parts: 2}
    - instance_norm: {name: upper, inputs: [halves]}
    - constant: {name: tenth, value: 0.1}
    - multiply: {name: lower, inputs: ["halves:1", tenth]}
    - stop_gradient: {name: still, inputs: [gated]}
    - slice: {name: part, begin: [0, 0, 0], size: [4, -1, -1]}
    - add: {name: sum, inputs: [upper, lower, part]}
    - concat: {inputs: [sum, upper], axis: 0}
    - reshape: {shape: [-1, 8]}
    - batch_norm: {group: 1}
    - transpose: {permutation: [1, 0]}
    - layer_norm
    - rms_norm
    - tanh: {scale: 1.2}
    - flatten
    - dense: {units: 16}
    - selu
    - l2_normalize
    - dense: {name: logits, units: 10}
optimizer: {momentum: {learning_rate: 0.05, momentum: 0.9, nesterov: true}}
train: {batch_size: 50, epochs: 1}
"""


class SameBits(LockstepTest):
    def compare(self, ranks_and_threads, steps=STEPS, **options):
        """All have the bits of one rank with one thread, step by step."""
        self.train("one", ranks=1, threads=1, steps=steps, **options)
        self.assertEqual(len(records(self.folder / "one")), steps)
        for ranks, threads in ranks_and_threads:
            name = f"{ranks} ranks x {threads} threads"
            with self.subTest(name):
                run = f"run-{ranks}-{threads}"
                self.train(run, ranks=ranks, threads=threads, steps=steps, **options)
                self.assert_same_run("one", run, name)

    def test_digits_on_1_to_8_ranks_and_1_to_4_threads(self):
        self.compare([pair for pair in itertools.product((1, 2, 3, 4, 5, 8), (1, 2, 4)) if pair != (1, 1)])

    def test_whole_example_reaches_96_percent(self):
        for ranks in (1, 2):
            self.lockstep("train", DIGITS, "--run-dir", self.folder / f"run-{ranks}", "--threads", 1, ranks=ranks)
        self.assert_same_run("run-1", "run-2")
        self.assertGreaterEqual(records(self.folder / "run-2", "eval")[-1]["accuracy"], 0.96)

    def test_without_shards_the_machine_decides_nothing(self):
        self.compare([pair for pair in itertools.product((1, 2, 3, 4), (1, 2)) if pair != (1, 1)], steps=6,
                     sets=["shards=null"])
        log = (self.folder / "one" / "lockstep.log").read_text(encoding="utf-8")
        self.assertEqual(log.count("shards is 8 by default, on any machine: up to 8 ranks x threads"), 1)
        self.train("given", steps=6, sets=["shards=8"])
        self.assert_same_run("one", "given")
        self.assertNotIn("by default", (self.folder / "given" / "lockstep.log").read_text(encoding="utf-8"))

    def test_without_shards_a_run_keeps_its_number(self):
        self.train("whole", steps=8, sets=["shards=2"])
        self.train("run", steps=4, sets=["shards=2"])
        self.train("run", steps=8, ranks=2, sets=["shards=null"], more=["--accept-changes"])
        self.assert_same_run("whole", "run")
        self.assertNotIn("by default", (self.folder / "run" / "lockstep.log").read_text(encoding="utf-8"))

    def test_without_shards_a_small_batch_is_cut_into_its_samples(self):
        self.compare([(2, 1), (3, 2)], steps=4, sets=["shards=null", "train.batch_size=5"])
        log = (self.folder / "one" / "lockstep.log").read_text(encoding="utf-8")
        self.assertIn("batch 5 in 5 shards", log)
        arguments = self.train_arguments("none", steps=4, sets=["shards=null", "train.batch_size=5"])
        self.assert_one_error(self.start(*arguments, ranks=6).wait(), 2, "(?s)6 ranks are too many for a batch of 5 samples.*at most 5")

    def test_another_seed_gives_other_bits(self):
        self.train("one", steps=3)
        self.train("two", steps=3, sets=["seed=2"])
        self.assertNotEqual(self.digest("one"), self.digest("two"))
        self.assertNotEqual(records(self.folder / "one"), records(self.folder / "two"))

    def test_the_general_path_of_the_tree(self):
        for shards in (5, 6):
            with self.subTest(shards=shards):
                self.folder = self.folder / f"shards-{shards}"
                self.folder.mkdir()
                self.compare([(1, 2), (2, 1), (3, 1), (4, 1), (5, 1)], steps=8, sets=[f"shards={shards}"])

    def test_batch_norm_in_groups_of_microshards(self):
        digests = set()
        for group in (1, 2, 4):
            with self.subTest(group=group):
                self.folder = self.folder / f"group-{group}"
                self.folder.mkdir()
                all_layers = [f"model.layers.{layer}.group={group}" for layer in ("bn1", "bn2", "bn3")]
                self.compare([(1, 2), (2, 1), (3, 1), (4, 2), (8, 1)], steps=6, sets=all_layers)
                digests.add(self.digest("one"))
        self.assertEqual(len(digests), 3, "the group size has no effect")

    def test_overlapped_sums_in_many_small_buckets(self):
        small = ["comm.bucket_first_mb=0.001", "comm.bucket_mb=0.01"]
        self.train("plain", steps=8)
        for sets in (small, ["comm.overlap=on"], ["comm.overlap=on", *small]):
            for ranks in (2, 3, 8):
                with self.subTest(sets=sets, ranks=ranks):
                    run = f"{len(sets)}-{sets[0]}-{ranks}"
                    result = self.train(run, ranks=ranks, steps=8, sets=sets)
                    if "comm.overlap=on" in sets:
                        self.assertIn("communication overlapped", result.err)
                    self.assert_same_run("plain", run)

    def test_momentum(self):
        sets = ["optimizer={momentum: {learning_rate: 0.05, momentum: 0.9}}"]
        self.compare([(2, 2), (3, 1), (8, 1)], steps=8, sets=sets)

    def test_a_net_without_batch_norm(self):
        config = self.folder / "plain.yaml"
        config.write_text(WITHOUT_BATCH_NORM, encoding="utf-8")
        self.compare([(1, 4), (2, 1), (2, 2), (4, 1), (7, 1)], steps=12, config=config)

    def test_normalisation_structure_and_noise(self):
        config = self.folder / "layers.yaml"
        config.write_text(ALL_KINDS_OF_LAYERS, encoding="utf-8")
        self.compare([(1, 4), (2, 1), (3, 1), (4, 1)], steps=12, config=config)

    def test_data_in_several_files(self):
        self.train("one", steps=6)
        with gzip.open(DIGITS_DATA, "rt", encoding="ascii") as file:
            rows = file.readlines()
        parts = [self.folder / f"part{i}.csv" for i in range(3)]
        for part, (first, last) in zip(parts, ((0, 10), (10, 1490), (1490, len(rows)))):
            part.write_text("".join(rows[first:last]), encoding="ascii")
        every = f"data.path={self.folder}/part*.csv"
        listed = "data.path=[" + ", ".join(map(str, parts)) + "]"
        for ranks, path in ((1, listed), (2, every), (3, listed), (4, every)):
            self.train(f"run-{ranks}", ranks=ranks, steps=6, sets=[path])
            self.assert_same_run("one", f"run-{ranks}", f"{ranks} ranks")
        parts[2].write_text("".join(rows[1490:-1]) + rows[-1].rstrip()[:-1] + "11\n", encoding="ascii")
        result = self.start(*self.train_arguments("bad", steps=6, sets=[every]), ranks=2).wait()
        self.assert_one_error(result, 3, rf"part2\.csv, line {len(rows) - 1490}: label 11 is not one of 10 classes")

    def test_an_epoch_ends_with_fewer_samples_than_shards(self):
        # 203 = 3 x 64 + 11, 13 microshards: two of them are empty in every fourth batch.
        sets = ["shards=13", "data.train.rows=[0, 203]"]
        self.compare([(1, 2), (2, 1), (3, 1), (5, 1), (8, 1)], steps=9, sets=sets)


if __name__ == "__main__":
    main()
