# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Drives the real program under the real mpirun, for the end-to-end tests.

The build passes paths in environment variables (tests/cmake/AddProgramTest.cmake): LOCKSTEP_PROGRAM,
LOCKSTEP_MPIRUN (words separated by spaces), LOCKSTEP_SOURCE (the repository), LOCKSTEP_EXTRA_DATA (may be empty).
Every process has a time limit and writes only to the test's temporary folder.
"""
import ast
import dataclasses
import importlib.util
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ["LOCKSTEP_PROGRAM"]
MPIRUN = os.environ["LOCKSTEP_MPIRUN"].split()
SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
DIGITS = SOURCE / "examples" / "digits.yaml"
DIGITS_DATA = SOURCE / "data" / "digits.csv.gz"
STEPS_PER_EPOCH = 24  # in examples/digits.yaml: 23 batches of 64 samples and one of 28
TIME_LIMIT = float(os.environ.get("LOCKSTEP_TEST_RUN_SECONDS", "120"))


@dataclasses.dataclass
class Result:
    """The result of a process: exit code, output and duration in seconds."""
    command: list
    code: int
    out: str
    err: str
    seconds: float

    def __str__(self):
        return (f"{' '.join(map(str, self.command))}\nended with {self.code} after {self.seconds:.1f} s\n"
                f"--- standard output\n{self.out[-4000:]}\n--- standard error\n{self.err[-6000:]}")


def stat_fields(pid):
    """The fields of /proc/pid/stat after the name (state, parent, ...), or None if there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None


def alive(pid):
    fields = stat_fields(pid)
    return fields is not None and fields[0] not in "ZX"


def children(pid):
    """The child processes of all threads of `pid`."""
    every = (int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit())
    fields = ((child, stat_fields(child)) for child in every)
    return [child for child, stat in fields if stat is not None and int(stat[1]) == pid]


def rank_of(pid):
    """The rank that Open MPI's launcher gave the process; None if it is not a rank."""
    try:
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    ranks = [int(v.partition(b"=")[2]) for v in environment if v.startswith(b"OMPI_COMM_WORLD_RANK=")]
    return ranks[0] if ranks else None


class Job:
    """A command that runs concurrently with the test."""

    def __init__(self, command, folder, cwd=None, variables=None):
        self.command = [str(word) for word in command]
        self.begin = time.monotonic()
        environment = dict(os.environ, TMPDIR=str(folder), OMPI_MCA_btl_vader_backing_directory=str(folder),
                           **(variables or {}))
        files = [tempfile.TemporaryFile(dir=folder) for _ in range(2)]
        self.out, self.err = files
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
                                        env=environment, cwd=cwd, start_new_session=True)

    def running(self):
        return self.process.poll() is None

    def ranks(self):
        """{rank: pid} of the ranks under mpirun."""
        found = {rank_of(pid): pid for pid in children(self.process.pid)}
        found.pop(None, None)
        return found

    def kill(self):
        """Sends SIGKILL to all processes of the run, so that none of them can report anything."""
        pids = [self.process.pid, *children(self.process.pid)]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(timeout=30)
        for pid in pids[1:]:  # not a child of this process, so /proc shows its end
            wait_until(lambda: not alive(pid), 30, f"process {pid} to die")

    def wait(self, limit=TIME_LIMIT):
        if not self._ends_within(limit):
            self.kill()
            raise AssertionError(f"still running after {limit} s\n{self._result(-1)}")
        return self._result(self.process.wait())

    def _ends_within(self, limit):
        """Returns at the end of the process. Popen.wait(timeout) polls, up to 50 ms too late."""
        if not self.running():
            return True
        descriptor = os.pidfd_open(self.process.pid)
        try:
            return bool(select.select([descriptor], [], [], limit)[0])
        finally:
            os.close(descriptor)

    def _result(self, code):
        texts = []
        for file in (self.out, self.err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        return Result(self.command, code, *texts, time.monotonic() - self.begin)


def wait_until(condition, limit, what):
    """Polls every few milliseconds and returns the first true value of condition()."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit} s for {what}")
        time.sleep(0.003)


def records(run_dir, split="train"):
    """metrics.jsonl as a list of dicts: complete lines only, without values that depend on the clock."""
    try:
        text = (pathlib.Path(run_dir) / "metrics.jsonl").read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    found = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    for record in found:
        for key in ("samples_per_second", "input/wait_seconds", "input/blocks_ready", "input/reader_threads"):
            record.pop(key, None)
    return [record for record in found if record["split"] == split]


def checkpoints(run_dir):
    """The checkpoint files, newest last."""
    return sorted((pathlib.Path(run_dir) / "checkpoints").glob("step-*.h5"))


def newest_step(run_dir):
    """The step at which the run resumes: the one that its state file names, or, without one, that of the newest file.

    A job killed between the rename of a checkpoint and the write of the state file leaves a newer file than it names.
    """
    state = pathlib.Path(run_dir) / "checkpoint"
    text = state.read_text(encoding="utf-8").partition("\n")[0] if state.exists() else checkpoints(run_dir)[-1].name
    return int(re.search(r"step-0*(\d+)\.h5", text)[1])


def python_with(*modules, candidates=(os.environ.get("LOCKSTEP_TEST_PYTHON", sys.executable), SOURCE / "build/python/bin/python3", "/usr/bin/python3")):
    """A Python with all of these modules; None without one (scripts/test.sh installs them into build/python)."""
    for candidate in map(str, candidates):
        try:
            if subprocess.run([candidate, "-c", "".join(f"import {module}\n" for module in modules)], capture_output=True, timeout=60).returncode == 0:
                return candidate
        except OSError:
            pass
    return None


def on_a_terminal(folder, arguments, typed):
    """Starts the program in a folder on a terminal, where somebody has typed that: its exit code and what the terminal shows."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execv(PROGRAM, [PROGRAM, *map(str, arguments)])
    os.write(terminal, typed)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


def go_on_with(*modules):
    """At the head of a test: goes on in another Python if this one lacks some of these modules and that one has all. False: none has."""
    if all(importlib.util.find_spec(name) is not None for name in modules):
        return True
    python = python_with(*modules)
    if python is not None and python != sys.executable:
        os.execv(python, [python, "-B", *sys.argv])
    return False


def python_with_h5py():
    """A Python with numpy and h5py; None without one."""
    return python_with("h5py", "numpy", candidates=(sys.executable, "/usr/bin/python3"))


class LockstepTest(unittest.TestCase):
    """A test with a temporary folder, and the commands of the program."""

    maxDiff = 2000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-"))
        self.jobs = []
        self.addCleanup(self._clean_up)

    def _clean_up(self):
        for job in self.jobs:
            if job.running():
                job.kill()
            job.out.close()
            job.err.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *arguments, ranks=None, cwd=None, variables=None):
        """Starts `lockstep arguments` on `ranks` ranks (None: without a launcher) with environment `variables`."""
        launcher = [] if ranks is None else [*MPIRUN, "-n", ranks]
        job = Job([*launcher, PROGRAM, *arguments], self.folder, cwd, variables)
        self.jobs.append(job)
        return job

    def lockstep(self, *arguments, ranks=None, code=0, cwd=None, limit=TIME_LIMIT, variables=None):
        result = self.start(*arguments, ranks=ranks, cwd=cwd, variables=variables).wait(limit)
        self.assertEqual(result.code, code, str(result))
        return result

    def read_by_h5py(self, script, path):
        """What `script` prints about the HDF5 file sys.argv[1], as a Python literal; the test is skipped without h5py."""
        for python in (sys.executable, "/usr/bin/python3"):
            if pathlib.Path(python).exists() and subprocess.run([python, "-c", "import h5py"], capture_output=True).returncode == 0:
                return ast.literal_eval(subprocess.run([python, "-c", script, path], check=True, capture_output=True,
                                                       text=True).stdout)
        self.skipTest("no Python has h5py")

    def peak_memory(self, job):
        """Waits for a job without launcher. Returns its peak resident memory in bytes."""
        peak = 0
        while job.running():
            try:
                status = pathlib.Path(f"/proc/{job.process.pid}/status").read_text(encoding="utf-8")
                peak = max([peak, *(int(kb) * 1024 for kb in re.findall(r"VmHWM:\s+(\d+) kB", status))])
            except OSError:
                pass
            time.sleep(0.001)
        self.assertEqual(job.wait().code, 0)
        return peak

    def train_arguments(self, run_dir, config=DIGITS, steps=None, threads=1, sets=(), more=()):
        arguments = ["train", config, "--run-dir", self.folder / run_dir, *more]
        arguments += ["--steps", steps] if steps is not None else []
        arguments += ["--threads", threads] if threads is not None else []
        for override in ["summary.every_steps=1", "eval.every_epochs=0", "checkpoint.every_epochs=0", *sets]:
            arguments += ["--set", override]
        return arguments

    def train(self, run_dir, ranks=None, code=0, limit=TIME_LIMIT, variables=None, **options):
        """Trains into a folder below the test's folder and returns the Result."""
        return self.lockstep(*self.train_arguments(run_dir, **options), ranks=ranks, code=code, limit=limit, variables=variables)

    def train_until_checkpoints(self, run_dir, count, sets):
        """Trains on two ranks until there are `count` checkpoints, however long steps and files take, and ends the run with one more."""
        job = self.start(*self.train_arguments(run_dir, steps=1000000, sets=["checkpoint.keep=0", *sets]), ranks=2)
        wait_until(lambda: not job.running() or len(checkpoints(self.folder / run_dir)) >= count, TIME_LIMIT, f"{count} checkpoints")
        os.kill(wait_until(lambda: job.ranks().get(0), 30, "rank 0"), signal.SIGTERM)
        result = job.wait()
        self.assertEqual(result.code, 75, str(result))

    def once(self, key, run_dir, train):
        """The tests of a class share the run that `train` makes in `run_dir`: each gets a copy of its folder, and the Result."""
        if "shared_runs" not in type(self).__dict__:
            type(self).shared_runs = {}
        shared = type(self).shared_runs
        if key in shared:
            shutil.copytree(shared[key][0], self.folder / run_dir, symlinks=True)
        else:
            result = train()
            kept = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-shared-"))
            self.addClassCleanup(shutil.rmtree, kept, ignore_errors=True)
            shutil.copytree(self.folder / run_dir, kept / "run", symlinks=True)
            shared[key] = (kept / "run", result)
        return shared[key][1]

    def train_once(self, run_dir, **options):
        """As train, but once in a class for the same options."""
        return self.once(repr(sorted(options.items())), run_dir, lambda: self.train(run_dir, **options))

    def digest(self, run_dir):
        """The digest of the newest checkpoint: 64 or fewer hexadecimal digits."""
        text = self.lockstep("inspect", self.folder / run_dir, "--digest").out.strip()
        self.assertRegex(text, r"^[0-9a-f]{16,64}$")
        return text

    def header(self, path):
        return json.loads(self.lockstep("inspect", path, "--json").out)

    def assert_same_run(self, expected, actual, what=""):
        """Asserts the same bits at the end and the same loss in every step."""
        one, two = (records(self.folder / run) for run in (expected, actual))
        for a, b in zip(one, two):
            self.assertEqual(a, b, f"{what}: the first step that differs is {a['step']}")
        self.assertEqual(len(one), len(two), what)
        self.assertEqual(self.digest(expected), self.digest(actual), what)

    def assert_one_error(self, result, code, pattern):
        """Asserts this exit code, and exactly one matching "error: ..." of all ranks together."""
        self.assertEqual(result.code, code, str(result))
        self.assertEqual(len(re.findall(r"(?:^|\n)error: ", result.err)), 1, str(result))
        self.assertRegex(result.err, pattern, str(result))
        self.assertNotRegex(result.err, r"Signal:|\[\s?0\] /|terminate called", "a stack trace is no message")


def main():
    """unittest's main. Returns 77, CTest's code for "skipped", if all requested tests were skipped."""
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    if result.wasSuccessful() and result.testsRun > 0 and len(result.skipped) == result.testsRun:
        sys.exit(77)
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)
