# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Damages run directories at random, and runs the commands that read or continue them. Each command ends in time, with an exit
code of its kind and one clear message, or its run continues and ends with the bits of an undamaged one. Nothing outside of the
run directory changes.

    LOCKSTEP_FUZZ_CASES=5000 ctest --preset ci -R faults_run_directory_fuzz -V     # more cases
    LOCKSTEP_FUZZ_CASE=57701 ctest --preset ci -R faults_run_directory_fuzz -V     # one of them again
"""
import os
import random
import re
import shutil
import unittest

from lockstep_run import SOURCE, LockstepTest, main

CONFIG = SOURCE / "tests" / "faults" / "small.yaml"
CASES = int(os.environ.get("LOCKSTEP_FUZZ_CASES", "40"))
FIRST = int(os.environ.get("LOCKSTEP_FUZZ_FIRST", "1"))
ONE = os.environ.get("LOCKSTEP_FUZZ_CASE")
BEFORE, AFTER = 20, 26  # steps of the damaged run, and of the continued one
IN_TIME = 20            # seconds
SETS = ["checkpoint.every_steps=5", "checkpoint.background=false", "eval.every_epochs=0"]
PRECIOUS = "what is outside stays as it is\n"

# The commands, with the exit codes that damage may cause.
COMMANDS = {"status": (0, 2), "inspect": (0, 4), "evaluate": (0, 2, 3, 4), "events": (0, 3), "checkpoint list": (0, 4),
            "checkpoint verify": (0, 4), "checkpoint export": (0, 2, 4)}
TRAIN = (0, 2, 3, 4)
CRASHED = r"Signal:|terminate called|Sanitizer: |runtime error: |broken invariant|defect of Lockstep|std::|basic_string"


def truncate(path, rng, _):
    os.truncate(path, rng.randrange(path.stat().st_size + 1))


def flip(path, rng, _):
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 1, 3, 30))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def noise(path, rng, _):
    path.write_bytes(rng.randbytes(rng.choice((1, 100, 5000))))


def middle(path, rng, _):
    """Removes or repeats a piece, as a copy that went wrong."""
    data = path.read_bytes()
    first, last = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    path.write_bytes(data[:first] + data[last:] if rng.random() < 0.5 else data[:last] + data[first:])


def text(path, rng, _):
    """A line, a number or a word of a text file becomes another."""
    lines = path.read_bytes().split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = rng.choice((b"", b"null", b"{}", b"[" * 2000, b'{"step": 1e400}', b"model_checkpoint_path: \"../../x\"", b"\xff\xfe",
                            re.sub(rb"\d+", lambda _: str(rng.choice((-1, 0, 2**31, 2**63, 10**30))).encode(), lines[at]),
                            lines[rng.randrange(len(lines))]))
    path.write_bytes(b"\n".join(lines))


def remove(path, _rng, _):
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def replace(make):
    def change(path, rng, outside):
        remove(path, rng, outside)
        make(path, rng, outside)
    return change


def swap(path, rng, _):
    """The contents of another file of the run directory."""
    others = [other for other in sorted(path.parent.iterdir()) if other.is_file() and not other.is_symlink()]
    path.write_bytes(rng.choice(others).read_bytes())


OF_FILES = (truncate, truncate, flip, flip, noise, middle, text, text, swap)
OF_ANYTHING = (remove, replace(lambda path, rng, outside: path.mkdir()),
               replace(lambda path, rng, outside: os.mkfifo(path)),
               replace(lambda path, rng, outside: path.write_bytes(b"")),
               replace(lambda path, rng, outside: path.symlink_to(outside)),
               replace(lambda path, rng, outside: path.symlink_to(path.name)),
               replace(lambda path, rng, outside: path.symlink_to("nowhere")))


class RunDirectoryFuzz(LockstepTest):
    def damage(self, rng, run, outside):
        """Makes one to three changes; returns what was done."""
        done = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            paths = sorted(path for path in run.rglob("*") if not path.is_symlink())
            if not paths:
                break
            path = rng.choice(paths)
            changes = OF_FILES + OF_ANYTHING if path.is_file() else OF_ANYTHING
            change = rng.choice(changes)
            done.append(f"{getattr(change, '__name__', '?')} {path.relative_to(run)}")
            change(path, rng, outside)
        return done

    def run_case(self, number):
        rng = random.Random(number)
        run, outside = self.folder / f"case-{number}", self.folder / "outside"
        shutil.copytree(self.folder / "base", run)
        outside.write_text(PRECIOUS, encoding="ascii")
        what = f"case {number}: {self.damage(rng, run, outside)}"
        name = rng.choice(list(COMMANDS))
        arguments = [*name.split(), run, *(["--output", self.folder / "weights.h5"] if "export" in name else [])]
        self.ends_well(self.start(*arguments).wait(IN_TIME), COMMANDS[name], what)
        ranks = rng.choice((None, None, None, 2))
        result = self.start(*self.train_arguments(run.name, config=CONFIG, steps=AFTER, sets=SETS), ranks=ranks).wait(IN_TIME)
        self.ends_well(result, TRAIN, what)
        self.assertEqual(outside.read_text(encoding="ascii"), PRECIOUS, what)
        if result.code == 0:
            self.assertEqual(self.digest(run.name), self.expected, f"{what}\n{result}")
        shutil.rmtree(run)

    def ends_well(self, result, codes, what):
        self.assertIn(result.code, codes, f"{what}\n{result}")
        self.assertNotRegex(result.err, CRASHED, f"{what}\n{result}")
        errors = re.findall(r"(?:^|\n)error: (.*)", result.err)
        mistakes = re.search(r"\n(\d+) mistakes\n", result.err)  # of config.yaml, all at once
        if mistakes:
            self.assertEqual(result.code, 2, f"{what}\n{result}")
            self.assertTrue(all("/config.yaml:" in error for error in errors), f"{what}\n{result}")
            self.assertEqual(len(errors), int(mistakes[1]), f"{what}\n{result}")
            return
        self.assertEqual(len(errors), 0 if result.code == 0 or "DAMAGED" in result.out else 1, f"{what}\n{result}")

    def test_damaged_run_directories(self):
        self.train("base", config=CONFIG, steps=BEFORE, sets=SETS)
        self.train("whole", config=CONFIG, steps=AFTER, sets=SETS)
        self.expected = self.digest("whole")
        self.assertNotEqual(self.expected, self.digest("base"))
        for number in [int(ONE)] if ONE else range(FIRST, FIRST + CASES):
            self.run_case(number)


if __name__ == "__main__":
    main()
