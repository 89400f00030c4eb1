# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""data.stage_to: the same bits from copies on the node as from the files, nothing left of the copies, clear errors."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

from lockstep_run import DIGITS_DATA, LockstepTest, main

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from streaming_test import CONFIG, MAKE_DIGITS, PYTHON, SMALL  # noqa: E402

FAULTS = os.environ.get("LOCKSTEP_HAS_FAULTS") == "1"
STEPS = 12
VIRTUAL = """
import sys, h5py
with h5py.File(sys.argv[1] + "/part0.h5") as file:
    source = h5py.VirtualSource(file["x"])
layout = h5py.VirtualLayout(shape=source.shape, dtype="u1")
layout[:] = source
with h5py.File(sys.argv[1] + "/virtual.h5", "w") as file:
    file.create_virtual_dataset("x", layout)
    file["y"] = [0] * source.shape[0]
"""


@unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
class StagingTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.make(MAKE_DIGITS, DIGITS_DATA, self.folder)
        self.config = self.folder / "digits.yaml"
        self.config.write_text(CONFIG % "shuffle: blocks, shuffle_window: 3", encoding="utf-8")
        self.node = self.folder / "node"
        self.node.mkdir()

    def make(self, script, *arguments):
        subprocess.run([PYTHON, "-c", script, *arguments], check=True, timeout=60)

    def options(self, *sets, to=None, steps=STEPS):
        place = [f"data.stage_to={to or self.node}"]
        return {"config": self.config, "steps": steps, "sets": [SMALL, *place, *sets]}

    def staged(self, run, *sets, ranks=2, code=0, variables=None, **more):
        result = self.start(*self.train_arguments(run, **self.options(*sets, **more)), ranks=ranks, variables=variables).wait()
        self.assertEqual(result.code, code, str(result))
        return result

    def unstaged(self, run, steps=STEPS):
        self.train_once(run, config=self.config, steps=steps, sets=[SMALL])

    def left(self):
        return sorted(path.name for path in self.node.iterdir())

    def test_copies_give_the_same_bits_and_are_removed(self):
        self.unstaged("files")
        for ranks in (1, 3):
            result = self.staged(f"copies{ranks}", ranks=ranks)
            self.assertRegex(result.err, rf"staged data files on \S+ in {self.node}: 4 files, 0\.0886 MB, in \d+\.\d s \(\d+ MB/s\)\n")
            self.assert_same_run("files", f"copies{ranks}")
            self.assertEqual(self.left(), [])

    def test_kept_copies_are_used_by_the_next_job_of_the_run(self):
        self.staged("run", "data.stage_keep=true", steps=6)
        kept = self.left()
        self.assertEqual(len(kept), 1)
        self.staged("other")  # leaves them alone
        self.assertEqual(self.left(), kept)
        copies = [path for path in (self.node / kept[0] / "files").rglob("*") if path.is_file()]
        self.assertEqual(len(copies), 4)
        copies[0].write_bytes(b"?" * copies[0].stat().st_size)  # damaged since: copied again
        result = self.staged("run", ranks=3)
        self.assertRegex(result.err, r"staged data files .*; 0\.0\d+ MB were there already")
        self.assertEqual(self.left(), [])
        self.unstaged("whole")
        self.assert_same_run("whole", "run")

    def test_two_jobs_on_one_node_at_the_same_time(self):
        jobs = [self.start(*self.train_arguments(run, **self.options()), ranks=2) for run in ("one", "two")]
        for job in jobs:
            result = job.wait()
            self.assertEqual(result.code, 0, str(result))
        self.assert_same_run("one", "two")
        self.assertEqual(self.left(), [])

    def test_the_place_is_a_variable_and_mistakes_are_said_once(self):
        self.staged("good", to="$LOCKSTEP_NODE", variables={"LOCKSTEP_NODE": str(self.node)})
        for to, pattern in (("$LOCKSTEP_UNSET/x", "the environment variable LOCKSTEP_UNSET is not set"),
                            ("node", "'node' is no absolute path"),
                            (f"{self.node}/none", "cannot be used: No such file or directory")):
            result = self.staged("bad", to=to, code=2)
            self.assert_one_error(result, 2, pattern)
        # Only training copies.
        self.lockstep("check", self.config, "--set", "data.stage_to=$LOCKSTEP_UNSET")

    def test_messages_name_the_files(self):
        """A damaged chunk is found in the copy."""
        part = self.folder / "part1.h5"
        whole = bytearray(part.read_bytes())
        for at in range(len(whole) // 2, len(whole) // 2 + 64):
            whole[at] ^= 0xFF
        part.write_bytes(whole)
        result = self.staged("run", code=3)
        self.assert_one_error(result, 3, rf"error: {self.folder}/part1\.h5, ")
        self.assertNotIn(str(self.node), result.err.partition("error: ")[2])
        self.assertEqual(self.left(), [])

    def test_values_in_other_files_are_refused(self):
        self.make(VIRTUAL, self.folder)
        result = self.staged("run", "data.path=virtual.h5", code=2)
        self.assert_one_error(result, 2, r"virtual\.h5, dataset x: takes values from other files \(virtual\), which data\.stage_to does not copy")
        self.assertEqual(self.left(), [])

    def test_a_file_that_is_missing_or_none_is_said_once(self):
        os.mkfifo(self.folder / "part4.h5")
        for path, pattern in (("part4.h5", "part4.h5: is not a regular file"), ("none.h5", "none.h5: cannot open: No such file")):
            self.assert_one_error(self.staged("run", f"data.path={path}", code=3), 3, pattern)
        self.assertEqual(self.left(), [])

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to mount a small disk")
    def test_a_disk_without_room(self):
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "lockstep-test", self.node], check=False, capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("cannot mount")
        self.addCleanup(subprocess.run, ["umount", "-l", self.node], check=False)
        result = self.staged("run", code=3)
        self.assert_one_error(result, 3, rf"{self.node}: has no room for the copies of {self.folder}/part0\.h5 and 3 more files: "
                                         r"\d+ bytes are needed, \d+ are free")
        self.assertEqual(self.left(), [])

    @unittest.skipUnless(FAULTS, "needs a build with LOCKSTEP_FAULTS")
    def test_a_disk_that_fills_up(self):
        for rank in (0, 1):
            result = self.staged("run", "data.stage_keep=true", code=3, variables={"LOCKSTEP_FAULT": f"0:{rank}:ENOSPC_in_stage"})
            self.assert_one_error(result, 3, rf"{self.folder}/part\d\.h5: cannot be copied to {self.node}/\S+: No space left on device; "
                                             r"\d+ bytes are needed there for all files, \d+ are free")
            self.assertEqual(self.left(), [], "not even kept")

    @unittest.skipUnless(FAULTS, "needs a build with LOCKSTEP_FAULTS")
    def test_a_copy_that_differs(self):
        result = self.staged("run", code=3, variables={"LOCKSTEP_FAULT": "0:1:flipped_bit_in_stage"})
        self.assert_one_error(result, 3, rf"{self.folder}/part\d\.h5: its copy {self.node}/\S+ differs from what was read, from byte 0 on: wrong checksum")
        self.assertEqual(self.left(), [])

    @unittest.skipUnless(FAULTS, "needs a build with LOCKSTEP_FAULTS")
    def test_what_a_killed_job_leaves_is_used_by_its_run_and_removed_by_others(self):
        def kill(run):
            job = self.start(*self.train_arguments(run, **self.options("data.stage_threads=1")), variables={"LOCKSTEP_FAULT": "0:0:kill_in_stage"})
            self.assertNotEqual(job.wait().code, 0)
            self.assertEqual(len(self.left()), 1)
        kill("run")
        result = self.staged("run")
        self.assertRegex(result.err, r"staged data files .*4 files, .*; 0\.0\d+ MB were there already", "the first file")
        self.assertEqual(self.left(), [])
        kill("dead")
        result = self.staged("other")
        self.assertRegex(result.err, rf"removing {self.node}/lockstep-stage-\w+, which a job has left that was killed")
        self.assertNotIn("were there already", result.err)
        self.assertEqual(self.left(), [])
        self.unstaged("whole")
        self.assert_same_run("whole", "run")


if __name__ == "__main__":
    main()
