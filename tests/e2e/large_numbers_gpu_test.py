# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A sample with huge finite numbers on a GPU: nobody waits for its gradients, so its step is known one step later, and its variables
are not saved; the actions that prevent an update wait, and lose nothing."""
import math

from gpu_run import EMULATED, GpuRunTest
from large_numbers_test import BAD_GRADIENT, BAD_STATISTICS, CHECKPOINT, NETS, SAMPLE, write_config
from lockstep_run import main

UPDATED = rf"The variables were updated with %s \(no step waits for the GPU\), and are not saved; {CHECKPOINT}"


class LargeNumbersGpuTest(GpuRunTest):
    def setUp(self):
        super().setUp()
        self.configs = {net: write_config(self.folder, net) for net in NETS}

    def run_it(self, run, net, ranks=1, gpus=1, sets=(), code=0):
        return self.on_gpu(run, ranks=ranks, gpus=gpus, steps=8, sets=sets, code=code, config=self.configs[net])

    def places(self):
        return ((1, 1), (2, 1), *(((3, 4),) if EMULATED else ()))

    def assert_finite(self, run):
        for tensor in self.header(self.folder / run)["tensors"]:
            self.assertTrue(all(math.isfinite(tensor[key]) for key in ("min", "max")), tensor)

    def test_the_run_ends_one_step_later_and_names_the_sample(self):
        for net, pattern, what in (("dense", BAD_GRADIENT, "them"), ("norm", BAD_STATISTICS, "its gradients")):
            for ranks, gpus in self.places():
                with self.subTest(net=net, ranks=ranks):
                    result = self.run_it(f"{net}{ranks}", net, ranks, gpus, code=1)
                    self.assert_one_error(result, 1, pattern)
                    self.assertRegex(result.err, rf"microshard 3 of 4: the features are the first that exceed 9\.2e\+18; {SAMPLE}")
                    self.assertRegex(result.err, UPDATED % what)

    def test_a_checkpoint_of_that_step_is_not_written(self):
        """Also the last one; and of finite variables: this rule squares nothing."""
        rule = "optimizer={gradient_descent: {learning_rate: 1e-9}}"
        for name, ranks, sets in (("save", 1, ["checkpoint.every_steps=3"]), ("end", 1, []), ("end2", 2, [])):
            with self.subTest(name):
                result = self.on_gpu(name, ranks=ranks, steps=3, sets=[rule, *sets], code=1, config=self.configs["dense"])
                self.assert_one_error(result, 1, r"a gradient of step 3 exceeds 9\.2e\+18, too large for an update")
                self.assertRegex(result.err, SAMPLE)
                self.assertFalse([path for path in (self.folder / name / "checkpoints").glob("*3.h5")])

    def test_actions_that_prevent_the_update_wait(self):
        for net, pattern in (("dense", BAD_GRADIENT), ("norm", BAD_STATISTICS)):
            for action in ("stop", "skip", "rollback"):
                for ranks, gpus in self.places():
                    run = f"{net}-{action}-{ranks}"
                    result = self.run_it(run, net, ranks, gpus, sets=[f"train.on_nan={action}"])
                    self.assertRegex(result.err, pattern)
                    self.assertRegex(result.err, SAMPLE)
                    self.assert_finite(run)
                    self.assert_same_run(f"{net}-{action}-1", run, f"{ranks} ranks")

    def test_warn_goes_on(self):
        """Also where no step follows that would tell it."""
        for steps in (8, 3):
            result = self.on_gpu(f"run{steps}", steps=steps, sets=["train.on_nan=warn"], config=self.configs["dense"])
            self.assertRegex(result.err, r"warning: a gradient of step 3 exceeds")

    def test_a_healthy_run_says_nothing(self):
        for net in NETS:
            result = self.run_it(net, net, sets=["data.train={rows: [48, 112]}", "precision.compute=float16"])
            self.assertNotRegex(result.err, "exceeds|not finite")


if __name__ == "__main__":
    main()
