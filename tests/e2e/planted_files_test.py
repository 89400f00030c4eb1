# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Links, FIFOs, folders and devices under every name that a command writes or reads in a run directory: every command ends in time,
with a message if it cannot go on, and nothing outside of the run directory changes.

In CTest each planted file meets three of the commands; by hand, with LOCKSTEP_FUZZ_CASES=all, it meets all."""
import concurrent.futures
import os
import shutil
import subprocess

from lockstep_run import DIGITS, PROGRAM, LockstepTest, main

LIMIT = 60  # seconds; a hang lasts longer
ALL = os.environ.get("LOCKSTEP_FUZZ_CASES") == "all"
# What no command of the run above has written, but another one does.
LATER = ("report.html", "trace.json", "bad_records.txt", "export", "records", "profile", "projector", "configs/gpu.txt")


class PlantedFilesTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.train("good", steps=4, sets=["checkpoint.every_steps=2", "summary.every_steps=1"], more=["--record", "3"])
        self.outside = self.folder / "outside"
        self.outside.mkdir()
        (self.outside / "file").write_text("precious\n")
        (self.outside / "folder").mkdir()
        (self.outside / "folder" / "kept").write_text("precious\n")

    def names(self):
        """Files and folders of a run, and what is written later; numbers that differ from run to run are left as they are."""
        good = self.folder / "good"
        found = [path.relative_to(good) for path in sorted(good.rglob("*"))]
        return [str(path) for path in found] + [name for name in LATER if not (good / name).exists()]

    def contents(self):
        return {str(path.relative_to(self.outside)): path.read_bytes() for path in self.outside.rglob("*") if path.is_file()}

    def plant(self, run, name, kind):
        place = run / name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        elif place.exists():
            place.unlink()
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            place.symlink_to(self.outside / "file")
        elif kind == "link to a folder":
            place.symlink_to(self.outside / "folder")
        elif kind == "link to nothing":
            place.symlink_to(self.outside / "new")
        elif kind == "fifo":
            os.mkfifo(place)
        elif kind == "folder":
            place.mkdir()
        elif kind == "device":
            place.symlink_to("/dev/full")

    def commands(self, run, number):
        """Of the commands that read or write in a run directory, those for a case."""
        every = [["report", run], ["plot", run], ["status", run], ["compare", run, self.folder / "good"], ["inspect", run], ["evaluate", run],
                 ["checkpoint", "verify", run], ["trace", run], ["events", run],
                 ["train", DIGITS, "--run-dir", run, "--steps", "6", "--record", "5", "--set", "checkpoint.every_steps=2", "--set", "summary.every_steps=1"]]
        return every if ALL else [every[(number + 3 * i) % len(every)] for i in range(3)]

    def try_one(self, number, name, kind):
        run = self.folder / f"{name.replace('/', '_')}-{kind.replace(' ', '_')}"
        wrong = []
        shutil.copytree(self.folder / "good", run, symlinks=True)
        self.plant(run, name, kind)
        for command in self.commands(run, number):
            words = [PROGRAM, *map(str, command)]
            try:
                result = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL, cwd=self.folder,
                                        env={**os.environ, "OMP_NUM_THREADS": "1"})
            except subprocess.TimeoutExpired:
                wrong.append(f"{name} is a {kind}: {command[0]} hangs")
                continue
            if result.returncode < 0 or result.returncode > 5 or (result.returncode != 0 and "error: " not in result.stderr and not result.stdout):
                wrong.append(f"{name} is a {kind}: {command[0]} ends with {result.returncode}\n{result.stderr[-500:]}")
        shutil.rmtree(run)
        return wrong

    def test_nothing_outside_changes_and_nothing_hangs(self):
        before = self.contents()
        kinds = ("link", "link to a folder", "link to nothing", "fifo", "folder", "device")
        cases = [(name, kind) for name in self.names() for kind in kinds
                 if not (name in ("checkpoints", "eval") and kind.startswith("link"))]  # they may be links to folders
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            wrong = [text for texts in pool.map(lambda case: self.try_one(case[0], *case[1]), enumerate(cases)) for text in texts]
        self.assertEqual(wrong, [])
        self.assertEqual(self.contents(), before)


if __name__ == "__main__":
    main()
