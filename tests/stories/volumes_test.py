# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A story: scans of rocks in an HDF5 file. How large are the pores? The net is compared with scikit-learn on the same scans."""
from lockstep_run import main
from story import Story


class Volumes(Story):
    def test_the_radius_of_pores_from_scans(self):
        self.script("rocks.py", "make", self.home / "rocks.h5", 300, 7)
        self.script("rocks.py", "make", self.elsewhere / "new.h5", 60, 8)

        # A configuration. The scans have no axis of channels, and are volumes nevertheless.
        said = self.sh("lockstep new rocks.h5 --labels radius --epochs 12").out
        self.assertIn("samples of 12x12x12 are taken as volumes of one channel", said)
        self.assertIn("predicted: radius, 1 number", said)
        said = self.sh("lockstep check rocks.yaml").out
        self.assertIn("12x12x12x1", said)
        self.assertIn("240 of 300 samples", said)

        # Half of the training on one rank, the other half on two.
        self.sh("lockstep train rocks.yaml --run-dir runs/rocks --steps 90")
        self.sh("mpirun -n 2 lockstep train rocks.yaml --run-dir runs/rocks")
        metrics = self.judged("lockstep evaluate runs/rocks")
        self.assertEqual((metrics["global_step"], metrics["samples"]), (180, 60))

        self.sh("lockstep report runs/rocks")
        self.looks_like_a_report(self.home / "runs/rocks/report.html", "root_mean_squared_error", "conv3d")
        self.sh("lockstep predict runs/rocks --set-name eval --output evaluated.h5")

        # On another machine there are the checkpoint and new scans, nothing else.
        self.take_elsewhere("runs/rocks")
        self.sh("lockstep predict models/rocks --input new.h5 --output radius.h5", at=self.elsewhere)
        new = self.script("rocks.py", "error", self.elsewhere / "new.h5", self.elsewhere / "radius.h5")
        self.sh("lockstep export models/rocks --output rocks.onnx", at=self.elsewhere)
        judged = self.judged(f"lockstep evaluate models/rocks --set data.eval.path={self.elsewhere}/new.h5 --set data.holdout=null", at=self.elsewhere)

        # In micrometres: as good as what an expert computes, far better than what is made of single voxels.
        error = metrics["root_mean_squared_error"]
        self.assertEqual(judged["samples"], 60)
        self.assertAlmostEqual(judged["root_mean_squared_error"], new, delta=1e-4 * new)
        self.assertLess(error, 3.4)
        self.assertLess(new, 1.3 * error)
        sklearn = self.script("rocks.py", "compare", self.gone / "rocks.h5", self.gone / "evaluated.h5", needs=("h5py", "sklearn"))
        print(f"RMSE {error:.2f} um, on new scans {new:.2f}; scikit-learn {sklearn}")
        self.assertLess(error, 1.3 * sklearn["variogram"])
        self.assertLess(error, 0.6 * sklearn["voxels"])
        with self.subTest("the exported net in onnxruntime"):
            checkpoint = next((self.elsewhere / "models/rocks").glob("*.h5"))
            difference = self.script("rocks.py", "onnx", *(self.elsewhere / "new.h5", checkpoint, self.elsewhere / "rocks.onnx", self.elsewhere / "radius.h5"),
                                     needs=("h5py", "onnxruntime"))
            self.assertLess(difference, 0.001)


if __name__ == "__main__":
    main()
