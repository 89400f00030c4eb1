# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A program that has initialised MPI itself trains and predicts on a part of its ranks, at each thread level.

  guest_test.py PROGRAM MPIRUN...
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, MPIRUN = sys.argv[1], sys.argv[2:]
LEVELS = ("single", "funneled", "serialized", "multiple")


def run(ranks, level, story, expect=0):
    """Runs the program in a folder of its own; returns what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*MPIRUN, "-n", str(ranks), PROGRAM, level, story], cwd=folder, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=150)
    if done.returncode != expect:
        raise AssertionError(f"{story} on {ranks} ranks, {level}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


class Guest(unittest.TestCase):
    def test_one_digest_on_any_number_of_ranks_and_at_each_thread_level(self):
        digests = {re.search(r"digests (.*)", run(ranks, level, "train")).group(1)
                   for ranks, level in ((1, "single"), (2, "single"), (3, "single"), (4, "single"), (3, "funneled"),
                                        (3, "serialized"), (1, "multiple"), (3, "multiple"), (4, "multiple"))}
        self.assertEqual(len(digests), 1, digests)

    def test_without_a_launcher_a_program_that_has_initialised_mpi_is_served(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PROGRAM, "funneled", "train"], cwd=folder, text=True, check=False, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={name: text for name, text in os.environ.items() if "OMPI_COMM" not in name})
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_an_error_of_one_rank_is_thrown_on_all_with_the_programs_exception_inside(self):
        for ranks, level in ((1, "multiple"), (3, "funneled"), (4, "multiple")):
            self.assertIn("ok", run(ranks, level, "errors"))

    def test_an_interrupt_ends_the_call_and_reaches_the_programs_handler(self):
        for ranks in (1, 3):
            self.assertIn("ok", run(ranks, "multiple", "interrupt"))

    def test_trainings_and_predictions_in_one_process_need_no_more_memory_or_communicators(self):
        for ranks, level in ((1, "multiple"), (3, "funneled"), (3, "multiple")):
            self.assertIn("ok", run(ranks, level, "many"))
            self.assertIn("ok", run(ranks, level, "predict"))

    @unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
    def test_no_memory_of_lockstep_is_lost(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["valgrind", "--leak-check=full", "--show-leak-kinds=definite", "--num-callers=30", PROGRAM,
                                   "single", "many", "2"], cwd=folder, text=True, check=False, timeout=300,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        blocks = re.findall(r"definitely lost in loss record.*?(?=\n==\d+== \n)", done.stdout, re.DOTALL)
        self.assertIn("LEAK SUMMARY", done.stdout)
        self.assertEqual([block for block in blocks if "lockstep::" in block], [])

    def test_the_last_resort_is_the_programs(self):
        said = run(3, "multiple", "last_resort", expect=42)
        self.assertRegex(said, r"(?s)the program decides: code 1, .*rank 0 of 2 .*'a call that rank 1 does not make'")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
