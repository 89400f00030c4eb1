# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""docs/from_*.md show one net as a configuration and as a C++ program: the program is compiled, and both have the same
bits after a few steps."""
import os
import pathlib
import re
import shutil
import unittest

from lockstep_run import MPIRUN, PROGRAM, SOURCE, main
from toolchain import Toolchain, run

BUILD = pathlib.Path(os.environ["LOCKSTEP_BUILD"])
SCRATCH = pathlib.Path(os.environ["LOCKSTEP_SCRATCH"])


def block(page, language):
    return re.search(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]


class MappingProgramsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        cls.tools = Toolchain(SOURCE, BUILD, SCRATCH)

    def same_bits(self, name, steps, fewer_steps, override):
        """The program on two ranks, the configuration on one, in a folder that looks like the repository."""
        page, folder = SOURCE / "docs" / f"{name}.md", SCRATCH / name
        folder.mkdir(parents=True)
        (folder / "data").symlink_to(SOURCE / "data")
        code = block(page, "cpp")
        self.assertIn(steps, code)
        (folder / "main.cpp").write_text(code.replace(steps, fewer_steps), encoding="utf-8")
        (folder / "page.yaml").write_text(block(page, "yaml"), encoding="utf-8")
        program = self.tools.link(f"{name}/program", self.tools.compile(f"{name}/main.cpp", like="src/api/launch.cpp"), PROGRAM)
        run([*MPIRUN, "-n", "2", str(program)], folder)
        run([PROGRAM, "train", "page.yaml", "--run-dir", "runs/page", "--quiet", "--set", override], folder)
        digests = [run([PROGRAM, "inspect", f"runs/{run_dir}", "--digest"], folder) for run_dir in ("digits", "page")]
        self.assertEqual(digests[0], digests[1])

    def test_tensorflow1(self):
        self.same_bits("from_tensorflow1", ".max_steps = 480", ".max_steps = 48", "train.steps=48")

    def test_keras_and_pytorch(self):
        self.same_bits("from_keras_and_pytorch", ".epochs = 20", ".epochs = 2", "train.epochs=2")


if __name__ == "__main__":
    main()
