# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Every command in the README, the pages of docs/ and the READMEs of the examples and data is run as it stands there, page by page
in one folder that looks like the repository. Commands are lines of indented blocks and of blocks marked `sh` or `console`.

A block whose commands cannot be run here says why, in a comment of its page right before it:

    <!-- not run: needs a cluster -->

The pages docs/adding_*.md are left out: their commands are run with the files of the page (tests/guides, tests/consumer).
"""
import gzip
import os
import re
import shutil
import subprocess
import unittest

from lockstep_run import DIGITS_DATA, PROGRAM, SOURCE, LockstepTest, main

PAGES = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md")), SOURCE / "examples" / "README.md",
         SOURCE / "data" / "README.md", SOURCE / "bench" / "README.md"]
COMMAND = re.compile(r"(?:\$ )?((?:\w+=\S+ +)*(?:\./)?(?:lockstep|mpirun|srun|sbatch|qsub|scripts/\S+|bench/\S+|build/\S+|cmake|ctest|gdb|"
                     r"tensorboard|python3?|nsys|ninja|touch|source|export|git|for) .*|(?:\./)?scripts/\S+)$")
REASON = re.compile(r"<!-- not run: (\S.*) -->$")
LIMIT = 120


def blocks(text):
    """[(number of the line, reason not to run it or None, lines)] of the code blocks that hold commands."""
    found, reason, block, fence, before = [], None, None, None, ""
    for number, line in enumerate([*text.splitlines(), "end"], 1):
        if fence is None and (mark := re.match(r"```(\w*)$", line)):
            if block is not None:
                found.append(block)
                reason = None
            fence, block = mark[1], (number + 1, reason, [])
            continue
        if fence is not None:
            if line == "```":
                if fence in ("sh", "console"):
                    found.append(block)
                fence, block, reason = None, None, None
            else:
                block[2].append(line)
            continue
        indented = line.startswith("    ") and (block is not None or before == "")
        if indented:
            block = block or (number, reason, [])
            block[2].append(line[4:])
        elif block is not None and line == "":
            block[2].append(line)
        elif line != "":
            if block is not None:
                found.append(block)
            block = None
            mark = REASON.match(line)
            reason = mark[1] if mark else None
        before = line
    return found


def commands(lines):
    """The commands among the lines of a block: without a prompt and comments, continued lines joined."""
    text = re.sub(r" *\\\n *", " ", "\n".join(lines))
    if any(line.startswith("$ ") for line in lines):  # a transcript: the others are output
        text = "\n".join(line for line in text.splitlines() if line.startswith("$ "))
    for line in text.splitlines():
        if match := COMMAND.match(re.sub(r"(^|\s{2,})#.*$", "", line).rstrip()):
            yield match[1]


class Commands(LockstepTest):
    def setUp(self):
        super().setUp()
        for name in ("docs", "slurm", "scripts"):
            (self.folder / name).symlink_to(SOURCE / name)
        for name in ("examples", "data"):
            shutil.copytree(SOURCE / name, self.folder / name)
        for name in ("build/release/bin", "bin", "home"):
            (self.folder / name).mkdir(parents=True)
        for name in ("build/release/bin/lockstep", "bin/lockstep"):
            (self.folder / name).symlink_to(PROGRAM)
        self.environment = dict(os.environ, PATH=f"{self.folder}/bin:{os.environ['PATH']}", HOME=str(self.folder / "home"),
                                TMPDIR=str(self.folder))
        # What the pages take for granted: samples without labels, and runs of the reader's own.
        with gzip.open(DIGITS_DATA, "rt", encoding="ascii") as file:
            rows = [next(file) for _ in range(5)]
        (self.folder / "new.csv").write_text("".join(rows), encoding="ascii")
        for run in ("one", "two", "a", "b"):
            self.lockstep("train", "examples/digits.yaml", "--steps", 5, "--run-dir", f"runs/{run}", cwd=self.folder)
        for name in "ABC":
            shutil.copy(self.folder / "runs/one/checkpoints/step-00000005.h5", self.folder / f"{name}.h5")

    def run_block(self, page, number, lines):
        for command in commands(lines):
            with self.subTest(f"{page.relative_to(SOURCE)}:{number}: {command}"):
                done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, timeout=LIMIT, check=False)
                self.assertEqual(done.returncode, 0, f"{done.stdout[-1500:]}{done.stderr[-3000:]}")
                self.count += 1

    def test_every_command_of_every_page(self):
        self.count, left = 0, []
        for page in PAGES:
            if page.name.startswith("adding_"):
                continue
            for number, reason, lines in blocks(page.read_text(encoding="utf-8")):
                if reason is None:
                    self.run_block(page, number, lines)
                else:
                    found = list(commands(lines))
                    self.assertNotEqual(found, [], f"{page}:{number}: a mark without a command")
                    left += [f"{page.relative_to(SOURCE)}:{number}: {reason}: {command}" for command in found]
        print(f"{self.count} commands were run; not run:", *left, sep="\n  ")
        self.assertGreater(self.count, 30)


class Reading(unittest.TestCase):
    def test_blocks_commands_and_marks(self):
        text = """Text
    no block: it continues a paragraph

    lockstep info      # a comment
    a table of words

<!-- not run: needs a cluster -->

    sbatch a.sh \\
      --option

```sh
$ mpirun -n 2 lockstep train a.yaml
```
```cpp
lockstep x;
```
"""
        self.assertEqual([(number, reason, list(commands(lines))) for number, reason, lines in blocks(text)],
                         [(4, None, ["lockstep info"]), (9, "needs a cluster", ["sbatch a.sh --option"]),
                          (13, None, ["mpirun -n 2 lockstep train a.yaml"])])


if __name__ == "__main__":
    main()
