# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Which algorithms of cuDNN and cuBLAS a run takes: the same on all ranks and in later jobs, also where they were measured, and none that
computes wrongly. On the emulated GPU, whose engines have defects and times as told."""
import re
import unittest

from gpu_run import EMULATED, GpuRunTest
from lockstep_run import main


@unittest.skipUnless(EMULATED, "libraries with defects and times as told are emulated")
class GpuAlgorithmsTest(GpuRunTest):
    def test_other_algorithms_are_named(self):
        result = self.on_gpu("ranks", ranks=2, gpus=2, code=2, LOCKSTEP_EMULATED_ALGORITHM="by rank")
        self.assert_one_error(result, 2, r"'GPU algorithms' differs between the ranks\n.*that of rank 0(.|\n)*that of rank 1")
        self.on_gpu("run", steps=1)
        self.assertRegex(self.lockstep("inspect", self.folder / "run").out,
                         r"\n  computed on +\S.*\n(?: {20}.*\n)* {20}GPU multiprocessors: 4\n {20}GPU algorithms: \d+ lines, hash [0-9a-f]{16}\n\n")
        again = self.on_gpu("run", steps=2)
        self.assertNotIn("other algorithms", again.err)
        result = self.on_gpu("run", steps=3, LOCKSTEP_EMULATED_ALGORITHM="another")
        self.assertRegex(result.err, r"(?i)warning.*the last job of this run on GPUs computed with another GPU, other libraries or "
                                     r"other algorithms.*\n +GPU algorithms: a .* of .*: plain loops before, .*: another now")

    def test_measured_algorithms_are_those_of_the_first_job_on_all_ranks(self):
        measured = ["gpu.choose=measured"]
        fast = {"LOCKSTEP_EMULATED_ENGINES": "plain loops:900,coarse:300/950"}  # on rank 0; on the others not
        slow = {"LOCKSTEP_EMULATED_ENGINES": "plain loops:300,coarse:900"}
        self.on_gpu("heuristic", **fast)
        first = self.on_gpu("one", sets=measured, **fast)
        self.assertRegex(first.err, r"measured the algorithms of the GPU's libraries in \d+\.\d s")
        self.assertNotEqual(self.digest("heuristic"), self.digest("one"))
        table = (self.folder / "one/configs/gpu_choices.txt").read_text()
        self.assertRegex(table, r"(?m)^measured algorithms\n  use a .* => coarse$")
        for ranks in (2, 3):
            self.on_gpu(f"ranks{ranks}", ranks=ranks, gpus=4, sets=measured, **fast)
            self.assert_same_run("one", f"ranks{ranks}", f"{ranks} ranks")
        self.on_gpu("jobs", steps=1, sets=measured, **fast)
        again = self.on_gpu("jobs", ranks=2, gpus=2, sets=measured, **slow)
        self.assertNotIn("measured the algorithms", again.err)
        self.assert_same_run("one", "jobs", "a job where others would be faster")

    def test_other_libraries_are_measured_anew(self):
        measured = ["gpu.choose=measured"]
        self.on_gpu("run", steps=1, sets=measured, LOCKSTEP_EMULATED_ENGINES="plain loops:900,coarse:300")
        again = self.on_gpu("run", steps=2, sets=measured, LOCKSTEP_EMULATED_ENGINES="plain loops:300,coarse:900",
                            LOCKSTEP_EMULATED_VERSION="2")
        self.assertRegex(again.err, r"(?i)warning.*the algorithms of this run were measured elsewhere, and are measured anew:\n"
                                    r" +CUDA libraries: .*emulated convolutions before, .*emulated convolutions 2 now")
        table = (self.folder / "run/configs/gpu_choices.txt").read_text()
        self.assertRegex(table, r"(?m)^  use a .* => plain loops$")
        self.assertNotIn("coarse", table)

    def test_engines_that_compute_wrongly_are_passed_over(self):
        self.plain_on_gpu("plain")
        wrong = {"LOCKSTEP_EMULATED_DEFECTS": "edge_column,lost_part"}
        for ranks in (1, 2):
            result = self.on_gpu(f"wrong{ranks}", ranks=ranks, gpus=ranks, **wrong)
            self.assert_same_run("plain", f"wrong{ranks}", f"{ranks} ranks")
            found = re.findall(r"warning.*passed over because it computes wrongly on this GPU: (.*)", result.err, re.I)
            self.assertEqual(len(found), len(set(found)), "each warning once, by one rank")
            for words in (r"a 3x3 convolution of \d+x\d+x\d+x32 to \d+x\d+x64 \(gradient of the weights\) in float32, .*: loops with the "
                          r"defect lost_part of emulated convolutions: \d+ of 256 checked numbers are wrong \(number \d+ is ",
                          r"a float32 product of 10 x \d+ x 64, bias: loops with the defect edge_column of emulated products: "):
                self.assertTrue(any(re.match(words, line) for line in found), result.err)
            kept = (self.folder / f"wrong{ranks}/configs/gpu.txt").read_text()
            self.assertRegex(kept, r"(?m)^GPU algorithms that compute wrongly\n  a 3x3 convolution .*defect edge_column of emulated")
        self.assertNotIn("wrongly", (self.folder / "plain/configs/gpu.txt").read_text())
        unchecked = self.on_gpu("unchecked", sets=["gpu.check_plans=false"], **wrong)
        self.assertNotIn("wrongly", unchecked.err)
        self.assertNotEqual(self.digest("plain"), self.digest("unchecked"))
        self.assertNotIn("compute wrongly", (self.folder / "unchecked/configs/gpu.txt").read_text())

    def test_an_engine_that_computes_wrongly_on_one_rank_alone_is_an_error(self):
        result = self.on_gpu("run", ranks=2, gpus=2, code=2, LOCKSTEP_EMULATED_DEFECTS="edge_column",
                             LOCKSTEP_EMULATED_DEFECTIVE_RANK="1")
        self.assert_one_error(result, 2, r"'GPU algorithms that compute wrongly' differs between the ranks\n(.|\n)*a 3x3 convolution")

    def test_without_an_engine_that_is_right_the_error_says_what_to_do(self):
        result = self.on_gpu("run", code=1, LOCKSTEP_EMULATED_DEFECTS="edge_column,only")
        self.assert_one_error(result, 1, r"all engines of emulated convolutions for a 3x3 convolution of .* compute wrongly"
                                         r"(.|\n)*gpu\.check_plans=false")


if __name__ == "__main__":
    main()
