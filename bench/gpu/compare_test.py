#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Tests compare.py with fake benchmark results: medians, ratios, the share of the GEMM rate, the budget, failures, and
the JSON file after each measurement."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import compare


class CompareTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bench").mkdir()
        (self.folder / "bench" / "step_bench_gpu").touch()
        self.json = self.folder / "compare.json"
        self.clock = 0.0
        for target, stand_in in (("time.monotonic", lambda: self.clock), ("importlib.util.find_spec", lambda name: self.torch),
                                 ("compare.run", self.run_made_up)):
            patch = mock.patch(target, stand_in)
            patch.start()
            self.addCleanup(patch.stop)
        self.torch = object()
        self.commands = []
        self.seconds = 10.0
        self.answer = {"step_bench_gpu": [0.5], "eager": [1.0], "--compile": [2.0]}  # seconds of a step, in turn

    def run_made_up(self, command, limit):
        words = [str(word) for word in command]
        self.commands.append((words, limit))
        if "--gemm" in words:
            types = words[words.index("--gemm") + 1].split(",")
            return {"torch": "2.x", "compiles": True, "gemm_flops": {name: {"float32": 1e12, "bfloat16": 4e12}[name] for name in types}}
        if "kernel_rates" in words[0]:
            return {"rows": [{"type": "tf32", "value": 2.0}, {"type": "bfloat16", "value": 8.0}]}
        if limit is not None and self.seconds > limit:
            self.clock += limit
            raise compare.Problem("cut off, no time left")
        self.clock += self.seconds
        way = "step_bench_gpu" if "step_bench_gpu" in words[0] else "--compile" if "--compile" in words else "eager"
        answers = self.answer[way]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return {"rows": [{"step_median_s": answer}]}

    def compare(self, *words):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), mock.patch.object(
                sys, "argv", ["compare.py", "--build", str(self.folder), "--json", str(self.json), *words]):
            code = compare.main()
        return code, output.getvalue(), json.loads(self.json.read_text(encoding="utf-8"))

    def test_a_row_has_the_medians_of_the_rounds_both_ratios_and_the_share_of_the_gemm_rate_of_its_type(self):
        self.answer["step_bench_gpu"] = [0.5, 0.1, 0.25]
        code, output, found = self.compare("--net", "mlp", "--compute", "bfloat16")
        row = found["rows"][0]
        self.assertEqual((code, row["net"], row["batch"], row["compute"]), (0, "mlp", 128, "bfloat16"))
        self.assertEqual(row["samples_per_s"], {"lockstep": [256, 1280, 512], "eager": [128] * 3, "compiled": [64] * 3})
        self.assertEqual(row["lockstep_of"], {"eager": 4, "compiled": 8, "best": 4})
        self.assertAlmostEqual(row["flop_utilisation"], 3 * 1.34e6 * 512 / 4e12)
        self.assertRegex(output, r"mlp +128 bfloat16 +512 +128 +64 +4\.00 +8\.00 +4\.00 +0\.1%")

    def test_the_mode_of_compiling_is_passed_on_and_written(self):
        _, _, found = self.compare("--net", "mlp", "--compute", "float32", "--rounds", "1", "--compile-mode", "reduce-overhead")
        compiled = [words for words, _ in self.commands if "--compile" in words]
        self.assertEqual([words[words.index("--compile-mode") + 1] for words in compiled], ["reduce-overhead"])
        self.assertEqual(found["compile_mode"], "reduce-overhead")

    def test_the_cost_of_deterministic_algorithms_is_a_way_of_its_own(self):
        _, _, found = self.compare("--net", "mlp", "--compute", "float32", "--rounds", "1", "--ways", "eager,deterministic")
        self.assertEqual(sorted(found["rows"][0]["samples_per_s"]), ["deterministic", "eager"])
        self.assertEqual(["--deterministic" in words for words, _ in self.commands if "--net" in words], [False, True])

    def test_types_and_batches_are_those_of_the_nets_unless_given(self):
        _, _, found = self.compare("--net", "mlp,resnet50,gpt2", "--rounds", "1")
        rows = [(row["net"], row["batch"], row["compute"]) for row in found["rows"]]
        self.assertEqual(rows, [("mlp", 128, "float32"), ("mlp", 128, "bfloat16"), ("resnet50", 64, "bfloat16"),
                                ("resnet50", 256, "bfloat16"), ("gpt2", 8, "bfloat16")])
        for words, _ in self.commands:
            if "--net" in words and words[words.index("--net") + 1] == "gpt2":
                self.assertEqual(words[words.index("--compute" if "step_bench_gpu" in words[0] else "--amp") + 1], "bfloat16")

    def test_what_the_budget_has_no_time_for_is_cut_off_or_skipped_and_said_so(self):
        code, output, found = self.compare("--net", "mlp,lstm", "--compute", "float32", "--rounds", "2", "--budget", "65")
        # Four of Lockstep and eager, two compiled; the first of the second round is not started: it took 10
        # s, 5 are left.
        self.assertEqual(code, 0)
        self.assertEqual([len(row["samples_per_s"]["lockstep"]) for row in found["rows"]], [1, 1])
        self.assertEqual(found["rows"][0]["notes"]["lockstep"], "round 2: skipped, no time left")
        self.assertIn("lockstep: round 2: skipped, no time left", output)
        self.clock, self.commands = 0.0, []
        _, output, found = self.compare("--net", "mlp,lstm", "--compute", "float32", "--rounds", "1", "--budget", "15")
        self.assertIn("eager: round 1: cut off, no time left", output)
        self.assertEqual(found["rows"][1]["notes"]["lockstep"], "round 1: skipped, no time left")
        self.assertLessEqual(self.clock, 15)

    def test_a_failure_is_shown_and_the_others_go_on(self):
        self.answer["eager"] = [compare.Problem("failed with 1")]
        code, output, found = self.compare("--net", "mlp", "--compute", "float32", "--rounds", "1")
        self.assertEqual(code, 1)
        self.assertEqual(found["rows"][0]["samples_per_s"], {"lockstep": [256], "compiled": [64]})
        self.assertIn("eager: round 1: failed with 1", output)
        self.assertRegex(output, r"mlp +128 float32 +256 +- +64 +- +4\.00")

    def test_a_run_that_is_cut_off_leaves_what_it_had(self):
        self.answer["eager"] = [RuntimeError("as if killed")]
        with self.assertRaises(RuntimeError):
            self.compare("--net", "mlp", "--compute", "float32", "--rounds", "1")
        found = json.loads(self.json.read_text(encoding="utf-8"))
        self.assertEqual(found["rows"][0]["samples_per_s"], {"lockstep": [256]})

    def test_without_pytorch_lockstep_runs_alone_beside_its_own_gemm_rate(self):
        self.torch = None
        _, output, found = self.compare("--net", "mlp", "--rounds", "1", "--tf32")
        self.assertIn("PyTorch is not installed", output)
        self.assertEqual(found["gemm_flops"], {"float32": 2e12, "bfloat16": 8e12})
        self.assertIn("bfloat16,tf32", self.commands[0][0])
        self.assertEqual([sorted(row["samples_per_s"]) for row in found["rows"]], [["lockstep"], ["lockstep"]])


class RunTest(unittest.TestCase):
    def test_a_command_that_takes_too_long_is_ended_with_its_children(self):
        with self.assertRaisesRegex(compare.Problem, "cut off"):
            compare.run(["bash", "-c", "sleep 60 & sleep 60"], 0.2)

    def test_a_command_that_fails_is_a_problem_with_its_code(self):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaisesRegex(compare.Problem, "failed with 3"):
            compare.run(["bash", "-c", "echo why; exit 3"], None)
        self.assertIn("why", said.getvalue())


if __name__ == "__main__":
    unittest.main()
