# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A host without GPUs, with a program that may or may not know them."""
import re
import subprocess
import unittest

import lockstep_run
from lockstep_run import DIGITS, LockstepTest, main

INFO = subprocess.run([lockstep_run.PROGRAM, "info"], capture_output=True, text=True, check=True).stdout


@unittest.skipIf(re.search(r"^cuda:0 ", INFO, re.M), "this host has a GPU")
class NoGpuTest(LockstepTest):
    def test_device_cuda_is_one_error_with_advice(self):
        result = self.lockstep("train", DIGITS, "--run-dir", self.folder / "run", "--set", "device=cuda", ranks=2, code=2)
        self.assert_one_error(result, 2, r"device: (there is no GPU for rank \d|this program was built without GPUs)")
        self.assertIn("choose device: cpu", result.err)

    def test_gpu_configuration_can_be_checked(self):
        out = self.lockstep("check", DIGITS, "--set", "device=cuda").out
        self.assertRegex(out, r"GPU memory +not known here: .*\nThe configuration is good")

    def test_info_says_why_there_are_none(self):
        self.assertRegex(INFO, r"(?m)^GPUs +\S")

    def test_cpu_run_loads_no_gpu_library(self):
        job = self.start(*self.train_arguments("run", steps=100000))
        lockstep_run.wait_until(lambda: lockstep_run.records(self.folder / "run"), 60, "a step")
        maps = (lockstep_run.pathlib.Path("/proc") / str(job.process.pid) / "maps").read_text(encoding="utf-8")
        self.assertNotRegex(maps, "cublas|cudnn|nccl|lockstep_cuda")


if __name__ == "__main__":
    main()
