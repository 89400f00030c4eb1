#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""scripts/run_gpu_checks.py on a made-up pack whose programs pass, fail, end with a signal, or hang: a suite that ruins its process
ruins no other, the summary and the archive begin with what failed, and it ends within the given time.

    run_gpu_checks_test.py SOURCE
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))

# A stand-in for a program of GoogleTest: SUITES names what each suite does.
PROGRAM = """#!/bin/sh
case "$*" in
  *--gtest_list_tests*) printf 'Good.\\n  One\\n  Two\\nBad.\\n  One\\nDead.\\n  One\\nSlow/Case.\\n  One/0  # GetParam() = 1\\n' ;;
  *=Good.*) echo "PASSED $LOCKSTEP_REQUIRE_GPU" ;;
  *=Bad.*) echo "[  FAILED  ] Bad.One"; yes filler | head -c 3000000; exit 1 ;;
  *=Dead.*) kill -SEGV $$ ;;
  *) sleep 60 & echo $! > slow.pid; wait ;;
esac
"""
END_TO_END = """import sys
class GpuTest:
    def test_fine(self): pass
    def test_wrong(self): pass
print("ran", sys.argv)
sys.exit(1 if sys.argv[-1].endswith("wrong") else 0)
"""


class RunGpuChecksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.pack = self.folder / "gpu_checks"
        (self.pack / "bin").mkdir(parents=True)
        (self.pack / "bench").mkdir()
        tests = self.pack / "source" / "tests" / "e2e"
        tests.mkdir(parents=True)
        (tests / "gpu_test.py").write_text(END_TO_END)
        for path, text in (("bin/cuda_kernels_test", PROGRAM), ("bench/kernel_rates", "#!/bin/sh\necho '{\"rows\": []}' > \"$2\"\n"),
                           ("bench/tree_rates", "#!/bin/sh\nsleep 60\n"), ("bin/lockstep", "#!/bin/sh\necho lockstep\n")):
            (self.pack / path).write_text(text)
            (self.pack / path).chmod(0o755)
        shutil.copy(SOURCE / "scripts" / "run_gpu_checks.py", self.pack)

    def run_checks(self, *words):
        begin = time.monotonic()
        result = subprocess.run([sys.executable, self.pack / "run_gpu_checks.py", "--output", self.folder / "out", *words],
                                capture_output=True, text=True, cwd=self.folder, timeout=60,
                                env={**os.environ, "LOCKSTEP_REQUIRE_GPU": "1"})
        self.assertNotIn("Traceback", result.stderr)
        return result, time.monotonic() - begin

    def test_what_failed_comes_first_and_one_bad_process_ruins_no_other(self):
        result, seconds = self.run_checks("--only", "cuda_kernels_test,gpu_test,kernel_rates,tree_rates", "--seconds", "9")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertLess(seconds, 20)
        text = (self.folder / "out" / "summary.txt").read_text()
        failed = [line for line in text.splitlines() if line.startswith("FAILED")]
        self.assertEqual(failed, text.splitlines()[0:1] + failed[1:])
        for name in ("cuda_kernels_test Bad.: failed (1)", "cuda_kernels_test Dead.: failed (-11)", "gpu_test GpuTest.test_wrong: failed (1)"):
            self.assertIn(f"FAILED {name}", text)
        self.assertIn("    [  FAILED  ] Bad.One", text)
        self.assertRegex(text, r"\ncuda_kernels_test +(?=.*1 passed)(?=.*1 failed \(1\))(?=.*1 failed \(-11\))(?=.*1 cut off, no time left)")
        self.assertRegex(text, r"\ngpu_test +(?=.*1 passed)(?=.*1 failed \(1\))")
        self.assertRegex(text, r"\nkernel_rates +1 passed")
        self.assertRegex(text, r"\ntree_rates +1 cut off, no time left")
        self.assertTrue(result.stdout.rstrip().splitlines()[-1].startswith(str(self.folder / "out.tar.xz")), result.stdout)

    def test_one_archive_begins_with_the_summary_and_stays_small(self):
        self.run_checks("--only", "cuda_kernels_test,kernel_rates", "--seconds", "9")
        archive = self.folder / "out.tar.xz"
        self.assertLess(archive.stat().st_size, 16 << 20)
        with tarfile.open(archive) as found:
            self.assertEqual(found.getnames()[0], "summary.txt")
            self.assertIn("kernel_rates.json", found.getnames())
            largest = max(found.getmembers(), key=lambda member: member.size)
            self.assertEqual(largest.name, "cuda_kernels_test.Bad..log")
            self.assertLess(largest.size, (1 << 20) + 100)
            self.assertIn(b"FAILED", found.extractfile(largest).read(100))

    def test_no_process_is_left_behind(self):
        self.run_checks("--only", "cuda_kernels_test", "--seconds", "5")
        pid = (self.folder / "out" / "slow.pid").read_text().strip()
        self.assertFalse(pathlib.Path("/proc", pid, "exe").exists(), pid)

    def test_a_part_that_is_not_there_is_named_with_those_that_are(self):
        result, _ = self.run_checks("--only", "kernel")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, "unknown part kernel; parts: info, cuda_kernels_test, ")

    def test_everything_passed_is_code_0(self):
        result, _ = self.run_checks("--only", "kernel_rates")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
