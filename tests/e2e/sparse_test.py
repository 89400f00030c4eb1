# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Gradients of embeddings that stay rows and values: the results are those of dense ones, and the same bits on any number of
ranks and threads; lazy updates; resume."""
import random
import unittest

from lockstep_run import LockstepTest, main

ROWS = 300
CONFIG = """
seed: 3
shards: 4
data: {{format: csv, path: {path}, label_column: -1}}
model:
  layers:
    - embedding: {{name: words, rows: {rows}, units: 5, padding_index: 0}}
    - flatten
    - dense: {{name: logits, units: 3}}
optimizer: {{{optimizer}}}
train: {{batch_size: 11, epochs: 3}}
"""
OPTIMIZERS = {"gradient_descent": "gradient_descent: {learning_rate: 0.2}",
              "momentum": "momentum: {learning_rate: 0.1, nesterov: true}",
              "adam": "adam: {learning_rate: 0.01}"}


class SparseTest(LockstepTest):
    def setUp(self):
        super().setUp()
        numbers = random.Random(5)
        # 37 samples: the last batch has 4 for 4 microshards of up to 3. Words repeat, within samples and between them.
        lines = [",".join(str(int(numbers.paretovariate(0.6)) % ROWS) for _ in range(6)) + f",{numbers.randrange(3)}"
                 for _ in range(37)]
        (self.folder / "words.csv").write_text("\n".join(lines) + "\n")

    def config(self, optimizer):
        path = self.folder / "words.yaml"
        path.write_text(CONFIG.format(path=self.folder / "words.csv", rows=ROWS, optimizer=optimizer))
        return path

    def test_sparse_gradients_equal_dense_ones(self):
        for name, optimizer in OPTIMIZERS.items():
            config = self.config(optimizer)
            self.train(f"{name}-dense", config=config, sets=["comm.sparse_below=0"])
            self.train(f"{name}-sparse", config=config, sets=["comm.sparse_below=1"])
            self.assert_same_run(f"{name}-dense", f"{name}-sparse", name)

    def test_same_bits_on_any_number_of_ranks_and_threads(self):
        for lazy in ("", ", lazy: true"):
            config = self.config("adam: {learning_rate: 0.01%s}" % lazy)
            self.train(f"one{lazy}", config=config)
            for ranks, threads in ((1, 2), (2, 1), (2, 2), (3, 1), (4, 1)):
                self.train(f"many{lazy}{ranks}{threads}", config=config, ranks=ranks, threads=threads)
                self.assert_same_run(f"one{lazy}", f"many{lazy}{ranks}{threads}", f"{ranks} ranks, {threads} threads")

    def test_resumed_run_same_bits_on_other_ranks(self):
        config = self.config(OPTIMIZERS["momentum"])
        self.train("whole", config=config)
        self.train("parts", config=config, ranks=3, steps=5)
        self.train("parts", config=config, ranks=2, steps=8, sets=["comm.sparse_below=0"])
        self.train("parts", config=config, ranks=1)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_lazy_differs_only_for_optimizers_with_slots(self):
        self.train("eager", config=self.config("momentum: {learning_rate: 0.1}"))
        self.train("lazy", config=self.config("momentum: {learning_rate: 0.1, lazy: true}"))
        self.assertNotEqual(self.digest("eager"), self.digest("lazy"))
        result = self.lockstep("train", self.config("gradient_descent: {learning_rate: 0.1, lazy: true}"), "--run-dir",
                               self.folder / "no", code=2)
        self.assertIn("unknown key 'lazy'", str(result))

    def test_record_and_replay_compare_the_rows(self):
        config = self.config(OPTIMIZERS["adam"])
        self.train("recorded", config=config, ranks=2, more=["--record", "3"])
        self.lockstep("replay", self.folder / "recorded", "--step", "3")  # code 0: the same on one rank
        record = next((self.folder / "recorded").rglob("*3*.json")).read_text()
        self.assertIn("gradient of words/embeddings", record)


if __name__ == "__main__":
    main()
