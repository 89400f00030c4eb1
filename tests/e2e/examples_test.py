# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The examples whose data do not ship with the project: they are skipped where LOCKSTEP_EXTRA_DATA has none of it."""
import json
import os
import pathlib
import unittest

from lockstep_run import SOURCE, LockstepTest, main, records

EXTRA = pathlib.Path(os.environ["LOCKSTEP_EXTRA_DATA"] or "/nonexistent")
MNIST = EXTRA / "mnist"
CIFAR = EXTRA / "cifar10-subset.h5"
REUTERS = EXTRA / "reuters21578-modapte.tsv.gz"
SHAKESPEARE = EXTRA / "tinyshakespeare.txt"


class ExamplesTest(LockstepTest):
    @unittest.skipUnless(MNIST.is_dir(), "no folder mnist in LOCKSTEP_EXTRA_DATA")
    def test_mnist_reaches_97_percent(self):
        self.train("run", ranks=2, config=SOURCE / "examples" / "mnist.yaml", limit=300,
                   sets=[f"data.folder={MNIST}", "eval.every_epochs=1"])
        evaluations = records(self.folder / "run", "eval")
        self.assertGreaterEqual(evaluations[-1]["accuracy"], 0.97, evaluations)

    @unittest.skipUnless(MNIST.is_dir(), "no folder mnist in LOCKSTEP_EXTRA_DATA")
    def test_mnist_has_the_same_bits_on_1_2_and_3_ranks(self):
        for ranks in (1, 2, 3):
            self.train(f"run-{ranks}", ranks=ranks, config=SOURCE / "examples" / "mnist.yaml", steps=4,
                       sets=[f"data.folder={MNIST}", "data.eval.rows=[8000, 8500]"])
            self.assert_same_run("run-1", f"run-{ranks}")

    @unittest.skipUnless(CIFAR.is_file(), "no file cifar10-subset.h5 in LOCKSTEP_EXTRA_DATA")
    def test_cifar10_resnet20_same_bits_on_1_to_3_ranks(self):
        for ranks in (1, 2, 3):
            self.train(f"run-{ranks}", ranks=ranks, config=SOURCE / "examples" / "cifar10_resnet20.yaml", steps=3,
                       sets=[f"data.path={CIFAR}", "train.batch_size=32", "data.eval.rows=[0, 100]"])
            self.assert_same_run("run-1", f"run-{ranks}")
        losses = [record["loss"] for record in records(self.folder / "run-1")]
        self.assertTrue(all(0 < loss < 20 for loss in losses), losses)

    @unittest.skipUnless(CIFAR.is_file(), "no file cifar10-subset.h5 in LOCKSTEP_EXTRA_DATA")
    def test_cifar10_large_batch_same_bits_on_1_to_4_ranks(self):
        losses = self.short_runs("cifar10_large_batch.yaml", CIFAR,
                                 ["train.batch_size=64", "data.train.rows=[0, 256]", "data.eval.rows=[0, 100]"], steps=6)
        self.assertTrue(all(0 < loss < 20 for loss in losses), losses)

    def short_runs(self, example, data, sets, steps=3):
        """A few steps on 1 to 4 ranks give the same bits; returns the losses."""
        for ranks in (1, 2, 3, 4):
            self.train(f"run-{ranks}", ranks=ranks, config=SOURCE / "examples" / example, steps=steps,
                       sets=[f"data.path={data}", *sets])
            self.assert_same_run("run-1", f"run-{ranks}")
        return [record["loss"] for record in records(self.folder / "run-1")]

    @unittest.skipUnless(MNIST.is_dir(), "no folder mnist in LOCKSTEP_EXTRA_DATA")
    def test_mnist_multitask_same_bits_on_1_to_4_ranks(self):
        for ranks in (1, 2, 3, 4):
            self.train(f"run-{ranks}", ranks=ranks, config=SOURCE / "examples" / "mnist_multitask.yaml", steps=4,
                       sets=[f"data.folder={MNIST}", "data.eval.rows=[8000, 8300]", "eval.every_epochs=0"])
            self.assert_same_run("run-1", f"run-{ranks}")
        evaluation = json.loads(self.lockstep("evaluate", self.folder / "run-1", ranks=3).out)
        self.assertIn("attributes/subset_accuracy", evaluation)
        self.assertAlmostEqual(evaluation["loss"], evaluation["loss/digit"] + evaluation["loss/attributes"], places=9)

    @unittest.skipUnless(REUTERS.is_file(), "no file reuters21578-modapte.tsv.gz in LOCKSTEP_EXTRA_DATA")
    def test_reuters_lstm_same_bits_on_1_to_4_ranks(self):
        losses = self.short_runs("reuters_lstm.yaml", REUTERS,
                                 ["train.batch_size=12", "data.train.rows=[0, 200]", "data.eval.rows=[0, 50]"])
        self.assertTrue(all(0 < loss < 20 for loss in losses), losses)
        evaluation = json.loads(self.lockstep("evaluate", self.folder / "run-1", ranks=2).out)
        self.assertEqual(evaluation["samples"], 50)

    @unittest.skipUnless(SHAKESPEARE.is_file(), "no file tinyshakespeare.txt in LOCKSTEP_EXTRA_DATA")
    def test_word2vec_same_bits_on_1_to_4_ranks(self):
        losses = self.short_runs("word2vec.yaml", SHAKESPEARE, ["data.part=[0, 0.2]"], steps=200)
        self.assertLess(sum(losses[-10:]), 0.95 * sum(losses[:10]))
        out = self.lockstep("neighbours", self.folder / "run-1", "--variable", "words/embeddings", "--words", "king,love",
                            "--count", 3).out
        self.assertEqual(len(out.splitlines()), 9, out)

    @unittest.skipUnless(SHAKESPEARE.is_file(), "no file tinyshakespeare.txt in LOCKSTEP_EXTRA_DATA")
    def test_shakespeare_same_bits_on_1_to_4_ranks(self):
        losses = self.short_runs("shakespeare_transformer.yaml", SHAKESPEARE,
                                 ["train.batch_size=6", "data.eval.part=[0.99, 1]"], steps=4)
        self.assertLess(losses[-1], losses[0])
        out = self.lockstep("predict", self.folder / "run-1", "--prompt", "KING", "--length", 5).out
        self.assertEqual(len(out), len("KING") + 5 + 1, out)


if __name__ == "__main__":
    main()
