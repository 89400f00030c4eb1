# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of the program on GPUs for the end-to-end tests: on the emulated GPU everywhere (LOCKSTEP_EMULATED=1), and on a real
one if there is one; otherwise the test reports that it was skipped."""
import os
import re
import unittest

import lockstep_run

EMULATED = os.environ.get("LOCKSTEP_EMULATED") == "1"

# An emulated step takes time in proportion to its samples.
SMALL = ["train.batch_size=16", "data.eval.rows=[1500, 1564]"] if EMULATED else []


def why_no_gpu():
    """The reason why no GPU can be used; None if one can."""
    info = lockstep_run.subprocess.run([lockstep_run.PROGRAM, "info"], capture_output=True, text=True, check=True).stdout
    if re.search(r"^cuda:0 ", info, re.M):
        return None
    found = re.search(r"^GPUs +(.*)$", info, re.M)
    return "no GPU: " + (found.group(1) if found else "this program was built without GPUs")


NO_GPU = why_no_gpu()
if NO_GPU and os.environ.get("LOCKSTEP_REQUIRE_GPU") == "1":
    raise SystemExit(f"LOCKSTEP_REQUIRE_GPU=1, but there is {NO_GPU}")


@unittest.skipIf(NO_GPU, NO_GPU)
class GpuRunTest(lockstep_run.LockstepTest):
    STEPS = 6

    def on_gpu(self, run_dir, ranks=1, steps=None, gpus=1, sets=(), code=0, device="cuda", more=(), limit=300,
               config=lockstep_run.DIGITS, **variables):
        """Trains in 4 shards on `ranks` ranks; `gpus`: the number of emulated GPUs."""
        small = SMALL if config == lockstep_run.DIGITS else []
        arguments = self.train_arguments(run_dir, config=config, steps=steps or self.STEPS, more=more, threads=None,
                                         sets=[f"device={device}", "shards=4", *small, *sets])
        environment = {"LOCKSTEP_EMULATED_GPUS": str(gpus), **variables}
        result = self.start(*arguments, ranks=ranks, variables=environment).wait(limit)
        self.assertEqual(result.code, code, str(result))
        return result

    def plain_on_gpu(self, run_dir):
        """on_gpu(run_dir), once for the tests of a class."""
        return self.once("plain on GPU", run_dir, lambda: self.on_gpu(run_dir))
