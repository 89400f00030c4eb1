# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The examples whose data a script next to them makes: the script, a few steps with an evaluation, and the same bits on
any number of ranks. Skipped where no Python has numpy and h5py, which the scripts want."""
import math
import subprocess
import unittest

from lockstep_run import SOURCE, LockstepTest, main, python_with_h5py, records

EXAMPLES = SOURCE / "examples"

PYTHON = python_with_h5py()


@unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
class GeneratedExamples(LockstepTest):
    def make(self, script, *options):
        path = self.folder / "made.h5"
        subprocess.run([PYTHON, EXAMPLES / script, path, *map(str, options)], check=True, capture_output=True, timeout=120)
        return path

    def run_on_ranks(self, config, data, metric):
        for ranks in (1, 2, 3, 4):
            self.train(f"run-{ranks}", ranks=ranks, config=EXAMPLES / config, steps=4,
                       sets=[f"data.path={data}", "data.train.rows=[0, 16]", "data.eval.rows=[16, 24]",
                             "train.batch_size=8", "eval.every_epochs=1"])
            self.assert_same_run("run-1", f"run-{ranks}", f"{ranks} ranks")
            self.assertEqual(records(self.folder / "run-1", "eval"), records(self.folder / f"run-{ranks}", "eval"))
        losses = [record["loss"] for record in records(self.folder / "run-1")]
        self.assertEqual(len(losses), 4)
        self.assertTrue(all(0 < loss < 10 for loss in losses), losses)
        evaluations = records(self.folder / "run-1", "eval")
        self.assertEqual(len(evaluations), 2)
        for evaluation in evaluations:
            self.assertTrue(math.isfinite(evaluation[metric]), evaluation)

    def test_cosmo_conv3d_same_bits_on_1_to_4_ranks(self):
        self.run_on_ranks("cosmo_conv3d.yaml", self.make("generate_volumes.py", "--samples", 24), "loss")

    def test_unet_has_the_same_bits_on_1_to_4_ranks(self):
        self.run_on_ranks("unet.yaml", self.make("generate_shapes.py", "--samples", 24), "mean_iou")

    def test_scripts_depend_on_their_seed_only(self):
        read = "import h5py, hashlib, sys; f = h5py.File(sys.argv[1]); print(*(hashlib.sha256(f[n][()].tobytes()).hexdigest() for n in ('features', 'labels')))"
        for script, size in (("generate_volumes.py", 8), ("generate_shapes.py", 16)):
            hashes = []
            for seed in (1, 1, 2):
                path = self.make(script, "--samples", 3, "--size", size, "--seed", seed)
                hashes.append(subprocess.run([PYTHON, "-c", read, path], check=True, capture_output=True, text=True,
                                             timeout=60).stdout.split())
            self.assertEqual(hashes[0], hashes[1], script)
            for one, other in zip(hashes[0], hashes[2]):
                self.assertNotEqual(one, other, script)


if __name__ == "__main__":
    main()
