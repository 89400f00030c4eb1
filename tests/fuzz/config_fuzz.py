#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Random configurations and options for the program.

Valid ones train some steps with the same digest on 1 and 3 ranks. Broken ones end in time, with the right exit code and
a clear message; no signal, no broken invariant, no bare C++ exception. CTest runs a fixed number of cases with a fixed
seed. A longer run by hand:

    tests/fuzz/config_fuzz.py --program build/ci/bin/lockstep --seconds 600 --seed 7 --keep /tmp/found

The configuration and the command of each finding are kept in --keep. --huge adds sizes that no machine has.
"""
import argparse
import dataclasses
import os
import pathlib
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time

from config_generator import broken_options, broken_text, mutated_tree, to_yaml, train_options, valid_config

# For programs that are built with sanitizers: a report ends the program, and memory that there is not is no report.
os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1")

FINISHED, FAILED, CONFIG, DATA, CHECKPOINT = 0, 1, 2, 3, 4
MEMORY_BYTES = 6 << 30  # of one process; a configuration that needs more must be refused, not killed
NOT_CLEAR = re.compile(r"broken invariant|terminate called|std::|basic_string|vector::|Signal:|bad file|Sanitizer: |runtime error: |what\(\)")


@dataclasses.dataclass
class Result:
    code: int  # negative: a signal; None: it did not end in time
    out: str
    err: str

    def wrong(self, codes):
        """What is wrong with this end; empty if nothing is. `codes`: the exit codes that are right."""
        if self.code is None:
            return "did not end in time"
        if self.code < 0 or self.code >= 128:
            return f"ended by signal {-self.code if self.code < 0 else self.code - 128}"
        if self.code not in codes:
            return f"exit code {self.code}, not one of {sorted(codes)}"
        if NOT_CLEAR.search(self.err):
            return f"not a clear message: {NOT_CLEAR.search(self.err).group(0)}"
        if self.code != FINISHED and not re.search(r"^error: .{8}", self.err, re.M):
            return "no message"
        if len(self.err) > 100_000:
            return f"a message of {len(self.err)} characters"
        return ""


class Fuzzer:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.random = random.Random(options.seed)
        self.counts = {}
        self.findings = 0
        self.case = 0
        self.write_data()

    def write_data(self):
        """48 samples of 48 features and a class, for any shape of 48 elements; and texts."""
        source = random.Random(1)
        with open(self.folder / "data.csv", "w", encoding="ascii") as file:
            for _ in range(48):
                row = [f"{source.uniform(-1, 1):.3f}" for _ in range(48)] + [str(source.randrange(3))]
                file.write(",".join(row) + "\n")

    def run(self, arguments, ranks=None):
        """A command of the program, without a launcher or on `ranks` ranks."""
        command = [self.options.program, *map(str, arguments)]
        if ranks is not None:
            command = [*self.options.mpirun.split(), "-n", str(ranks), *command]
        self.command = command
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        process = subprocess.Popen(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                   preexec_fn=None if self.options.no_memory_limit or ranks else limit)
        try:
            out, err = process.communicate(timeout=self.options.limit)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # of this process's own session
            out, err = process.communicate()
            code = None
        return Result(code, out.decode(errors="replace"), err.decode(errors="replace"))

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def found(self, what, result, text):
        self.findings += 1
        name = f"case-{self.options.seed}-{self.case}"
        print(f"FOUND {name}: {what}\n  {shlex.join(map(str, self.command))[:2000]}\n"
              f"  {result.err[-1500:].strip() if result else ''}\n--- configuration\n{text[:3000]}\n---", flush=True)
        if self.options.keep:
            keep = pathlib.Path(self.options.keep)
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{name}.yaml").write_bytes(text.encode("utf-8", "surrogateescape"))
            (keep / f"{name}.txt").write_text(f"{what}\n{shlex.join(map(str, self.command))}\n", encoding="utf-8")

    def write(self, text):
        path = self.folder / "config.yaml"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return path

    def digest(self, run_dir):
        return self.run(["inspect", run_dir, "--digest"]).out.strip()

    def valid(self):
        """`check` says whether it is valid: then it trains, and the bits do not depend on the ranks."""
        text = to_yaml(valid_config(self.random))
        path = self.write(text)
        check = self.run(["check", path])
        if wrong := check.wrong({FINISHED, CONFIG}):
            return self.found(f"check: {wrong}", check, text)
        if check.code != FINISHED:
            return self.count("generated, but refused")
        digests = []
        for ranks in (None, 3):
            run_dir = self.folder / f"run-{self.case}-{ranks}"
            train = self.run(["train", path, "--run-dir", run_dir, "--steps", 3, "--threads", 1], ranks)
            diverged = train.code == FAILED and "diverged" in train.err
            wrong = train.wrong({FINISHED, FAILED} if diverged else {FINISHED})
            if wrong:
                return self.found(f"train on {ranks or 1} ranks, which check approved: {wrong}", train, text)
            digests.append("diverged" if diverged else self.digest(run_dir))
        if digests[0] != digests[1] or not digests[0]:
            return self.found(f"digests differ: {digests}", None, text)
        return self.count("same digest on 1 and 3 ranks")

    def broken(self, text, options, kind):
        path = self.write(text)
        check = self.run(["check", path, *options])
        if wrong := check.wrong({FINISHED, CONFIG, DATA}):
            return self.found(f"check of {kind}: {wrong}", check, text)
        if check.code != FINISHED:
            return self.count(f"{kind}: refused")
        if self.random.random() > self.options.train_share:
            return self.count(f"{kind}: approved")
        # What check approves, train takes.
        train = self.run(["train", path, "--run-dir", self.folder / f"run-{self.case}", *options, "--steps", 2,
                          "--threads", 1, "--quiet"])
        # A loss that is no number ends a run with exit code 1.
        codes = {FINISHED, FAILED} if re.search("diverged|not finite", train.err) else {FINISHED}
        if wrong := train.wrong(codes):
            return self.found(f"train of {kind}, which check approved: {wrong}", train, text)
        return self.count(f"{kind}: trained")

    def command_line(self, text):
        """`train` with options of which most are wrong."""
        train = self.run(["train", self.write(text), "--run-dir", self.folder / f"run-{self.case}", "--set",
                          "train.steps=2", *train_options(self.random)])
        if wrong := train.wrong({FINISHED, CONFIG, CHECKPOINT}):
            return self.found(f"options of train: {wrong}", train, text)
        return self.count(f"options of train: {'refused' if train.code else 'trained'}")

    def one(self):
        self.case += 1
        if self.case % self.options.valid_every == 0:
            return self.valid()
        config = valid_config(self.random)
        choice = self.random.random()
        if choice < 0.6:
            mutated = config
            for _ in range(self.random.choice([1, 1, 1, 2, 5])):
                mutated = mutated_tree(self.random, mutated, self.options.huge)
            return self.broken(to_yaml(mutated), [], "mutated values")
        if choice < 0.65:
            return self.command_line(to_yaml(config))
        if choice < 0.8:
            return self.broken(broken_text(self.random, to_yaml(config)), [], "mutated text")
        return self.broken(to_yaml(config), broken_options(self.random, config, self.options.huge), "options")

    def finish(self):
        for what, number in sorted(self.counts.items()):
            print(f"{number:6} {what}")
        print(f"{self.case} cases with seed {self.options.seed}, {self.findings} findings")
        return 1 if self.findings else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("LOCKSTEP_PROGRAM", "build/ci/bin/lockstep"))
    parser.add_argument("--mpirun", default=os.environ.get("LOCKSTEP_MPIRUN", "mpiexec --oversubscribe --bind-to none"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=os.environ.get("LOCKSTEP_FUZZ_CASES"),
                        help="end after so many cases")
    parser.add_argument("--seconds", type=float, help="end after so much time")
    parser.add_argument("--limit", type=float, default=60, help="seconds that one command may take")
    parser.add_argument("--valid-every", type=int, default=20, help="every Nth case is a valid configuration")
    parser.add_argument("--train-share", type=float, default=0.1, help="of the mutated ones that check approves")
    parser.add_argument("--huge", action="store_true", help="also values that need more memory or time than there is")
    parser.add_argument("--no-memory-limit", action="store_true", help="for AddressSanitizer",
                        default=os.environ.get("LOCKSTEP_FUZZ_NO_MEMORY_LIMIT") == "1")
    parser.add_argument("--keep", help="folder for the findings")
    options = parser.parse_args()
    options.program = str(pathlib.Path(options.program).resolve())
    if options.cases is None and options.seconds is None:
        parser.error("give --cases or --seconds")
    end = time.monotonic() + (options.seconds or float("inf"))
    with tempfile.TemporaryDirectory(prefix="lockstep-fuzz-") as folder:
        fuzzer = Fuzzer(options, pathlib.Path(folder))
        while (options.cases is None or fuzzer.case < options.cases) and time.monotonic() < end:
            fuzzer.one()
        return fuzzer.finish()


if __name__ == "__main__":
    sys.exit(main())
