# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The examples whose data do not ship with the project: they are skipped where LOCKSTEP_EXTRA_DATA has none of it."""
import os
import pathlib
import unittest

from lockstep_run import SOURCE, LockstepTest, main, records

EXTRA = pathlib.Path(os.environ["LOCKSTEP_EXTRA_DATA"] or "/nonexistent")
MNIST = EXTRA / "mnist"
CIFAR = EXTRA / "cifar10-subset.h5"


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
    def test_cifar10_resnet20_has_the_same_bits_on_1_2_and_3_ranks(self):
        for ranks in (1, 2, 3):
            self.train(f"run-{ranks}", ranks=ranks, config=SOURCE / "examples" / "cifar10_resnet20.yaml", steps=3,
                       sets=[f"data.path={CIFAR}", "train.batch_size=32", "data.eval.rows=[0, 100]"])
            self.assert_same_run("run-1", f"run-{ranks}")
        losses = [record["loss"] for record in records(self.folder / "run-1")]
        self.assertTrue(all(0 < loss < 20 for loss in losses), losses)


if __name__ == "__main__":
    main()
