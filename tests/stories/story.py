# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""What the stories share: commands as a person types them, a folder on another machine, and scripts that need NumPy, HDF5 or scikit-learn."""
import csv
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from lockstep_run import LockstepTest, checkpoints, python_with

REFERENCE = pathlib.Path(__file__).resolve().parent / "reference"


class Story(LockstepTest):
    """A test in a folder `home`, where a person works, and a folder `elsewhere` without it: another machine.

    What compares with scikit-learn comes last, so without scikit-learn only the comparison is skipped."""

    def setUp(self):
        super().setUp()
        self.home, self.elsewhere, self.gone = (self.folder / name for name in ("home", "elsewhere", "gone"))
        self.home.mkdir()
        self.elsewhere.mkdir()

    def sh(self, line, at=None, code=0):
        """Runs "lockstep ..." or "mpirun -n 2 lockstep ..." in `at` (default: home) and returns the Result."""
        words, ranks = shlex.split(line), None
        if words[0] == "mpirun":
            ranks, words = int(words[2]), words[3:]
        self.assertEqual(words[0], "lockstep")
        return self.lockstep(*words[1:], ranks=ranks, cwd=at or self.home, code=code)

    def script(self, name, *arguments, needs=("h5py", "numpy")):
        """The JSON that tests/stories/reference/NAME prints; the test is skipped without a Python that has `needs`."""
        python = python_with(*needs)
        if python is None:
            self.skipTest(f"no Python has {', '.join(needs)} (scripts/test.sh installs them into build/python)")
        one_thread = {variable: "1" for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}  # others wait for each other where cores are busy
        done = subprocess.run([python, "-B", REFERENCE / name, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, **one_thread})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout) if done.stdout else None

    def judged(self, line, at=None):
        """The metrics that `lockstep evaluate` prints."""
        return json.loads(self.sh(line, at).out)

    def table(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def take_elsewhere(self, run):
        """scp of the last checkpoint of a run to elsewhere/models/NAME/; then the folder `home` is called `gone`."""
        models = self.elsewhere / "models" / pathlib.Path(run).name
        models.mkdir(parents=True)
        shutil.copy(checkpoints(self.home / run)[-1], models)
        self.home.rename(self.gone)

    def looks_like_a_report(self, path, *texts):
        page = path.read_text(encoding="utf-8")
        self.assertTrue(page.startswith("<!DOCTYPE html>"), page[:100])
        for text in texts:
            self.assertRegex(page, re.escape(text))
