# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A file at which the HDF5 library crashes ends a run on any number of ranks with exit code 3 and its name."""
import os
import pathlib
import subprocess

from lockstep_run import LockstepTest, main

CONFIG = """
seed: 1
shards: 4
threads: 1
data: {format: hdf5, path: crashing.hdf5, features: train/x, labels: train/label}
model: {layers: [{dense: {name: logits, units: 3}}], loss: softmax_cross_entropy}
optimizer: {gradient_descent: {learning_rate: 0.1}}
train: {batch_size: 8, steps: 2}
"""


class CrashingFile(LockstepTest):
    def test_train_check_and_import(self):
        subprocess.run([os.environ["LOCKSTEP_HDF5_SEEDS"], self.folder], check=True, timeout=60)
        config = self.folder / "config.yaml"
        config.write_text(CONFIG, encoding="ascii")
        plugin = {"HDF5_PLUGIN_PATH": str(pathlib.Path(os.environ["LOCKSTEP_CRASHING_FILTER"]).parent)}
        (self.folder / "crashing.weights.h5").symlink_to(self.folder / "crashing.hdf5")
        self.assert_one_error(self.start("import", self.folder / "crashing.weights.h5", "--show", variables=plugin).wait(), 3,
                              r"crashing\.weights\.h5: damaged: the library that reads HDF5 (crashes|ends)")
        crash = r"crashing\.hdf5: damaged: the library that reads hdf5 (crashes|ends)"
        for ranks in (None, 1, 2, 3):
            with self.subTest(ranks=ranks):
                run = self.start("train", config, "--run-dir", self.folder / f"run-{ranks}", ranks=ranks, variables=plugin)
                self.assert_one_error(run.wait(), 3, crash)
        self.assert_one_error(self.start("check", config, variables=plugin).wait(), 3, crash)


if __name__ == "__main__":
    main()
