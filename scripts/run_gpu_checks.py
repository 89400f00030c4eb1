#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Runs what scripts/pack_gpu_checks.sh has packed, on a machine with a GPU, within a given time.

First come the checks, side by side: each suite of GoogleTest and each end-to-end test in a process of its own, so that an
error that ends the use of the GPU in one process hides no other. Then the measurements, one after the other. What time is
left goes to compute-sanitizer. Every process has a time limit and a log; what no longer fits is named.

    run.sh [--seconds N] [--only PART[,PART...]] [--jobs N] [--output FOLDER]

The summary, and the one archive that holds all logs and JSON files, begin with what failed. CUDA's libraries are looked for
in LD_LIBRARY_PATH, the system, /usr/local/cuda, and python3's nvidia-* wheels. Exit code: 0 if everything that ran has passed,
else 1.
"""
import argparse
import concurrent.futures
import glob
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE / "source"
UNIT = ("cuda_kernels_test", "cuda_layers_test", "cuda_driver_test")
END_TO_END = ("gpu_test", "gpu_sparse_test", "large_numbers_gpu_test", "gpu_summaries_test")
SANITIZERS = ("racecheck", "memcheck", "synccheck")
MEASUREMENTS = ("kernel_rates", "run_rates", "tree_rates", "nccl_rates", "nets", "compiled")
PARTS = ("info", *UNIT, *END_TO_END, *MEASUREMENTS, *SANITIZERS)
LARGEST_LOG = 1 << 20  # bytes of a log that the archive keeps
# Of a given time: until then checks, measurements.
CHECKS_UNTIL, MEASUREMENTS_UNTIL = 0.5, 0.9


def environment():
    """The variables of every process."""
    wheels = [path for folder in sys.path for path in glob.glob(folder + "/nvidia/*/lib")]
    libraries = [os.environ.get("LD_LIBRARY_PATH", ""), "/usr/local/cuda/lib64", *wheels]
    return {**os.environ,
            "LD_LIBRARY_PATH": ":".join(path for path in libraries if path),
            "PATH": f"{HERE / 'bin'}:{os.environ['PATH']}:/usr/local/cuda/bin",
            "OPAL_PREFIX": str(HERE), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
            "OMPI_MCA_mpi_yield_when_idle": "1",
            "LOCKSTEP_REQUIRE_GPU": os.environ.get("LOCKSTEP_REQUIRE_GPU", "1"),
            "LOCKSTEP_HAS_FAULTS": "1" if (HERE / "has_faults").exists() else "0",
            "LOCKSTEP_PROGRAM": str(HERE / "bin" / "lockstep"), "LOCKSTEP_SOURCE": str(SOURCE),
            "LOCKSTEP_MPIRUN": f"{HERE / 'bin' / 'mpirun'} --oversubscribe --bind-to none",
            "PYTHONPATH": str(SOURCE / "tests" / "support"), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}


class Task:
    """A process with a log. `weight`: an estimate of its seconds; the longest start first."""

    def __init__(self, part, name, command, limit, weight=1.0):
        self.part, self.name, self.command, self.limit, self.weight = part, name, [str(word) for word in command], limit, weight
        self.state, self.seconds, self.text = "left out, no time", 0.0, ""

    def run(self, logs, variables, deadline):
        limit = min(self.limit, deadline - time.monotonic())
        if limit < 3:
            return self
        path, begin = logs / f"{self.part}.{re.sub(r'[^A-Za-z0-9_.-]+', '_', self.name)[:80]}.log", time.monotonic()
        with open(path, "wb") as log, subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT, cwd=logs, env=variables,
                                                       stdin=subprocess.DEVNULL, start_new_session=True) as process:
            try:
                code = process.wait(limit)
                self.state = {0: "passed", 77: "skipped"}.get(code, f"failed ({code})")
            except subprocess.TimeoutExpired:
                self.state = f"failed: cut off after {limit:.0f} s" if limit >= self.limit else "cut off, no time left"
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)  # ranks that it has left behind
                except ProcessLookupError:
                    pass
        self.seconds, self.text = time.monotonic() - begin, path.read_text(errors="replace")
        return self

    @property
    def failed(self):
        return self.state.startswith("failed")

    def told(self):
        """The lines of the log that say most about a failure."""
        pattern = re.compile(r"FAILED|Failure|^error|FAIL:|ERROR:|Error|ERROR SUMMARY|RACECHECK|Assertion")
        return [line[:300] for line in self.text.splitlines() if pattern.search(line)][:8] or self.text.splitlines()[-5:]


def suites(program, variables):
    """The suites of a program of GoogleTest, with the number of their tests."""
    listed = subprocess.run([HERE / "bin" / program, "--gtest_list_tests"], capture_output=True, text=True, env=variables, timeout=120)
    found = {}
    for line in listed.stdout.splitlines():
        if re.match(r"\S+\.(\s|$)", line):
            found[name := line.split()[0]] = 0
        elif line.startswith("  "):
            found[name] += 1
    if listed.returncode != 0 or not found:
        raise SystemExit(f"error: {program} lists no tests: {listed.stderr or listed.stdout}")
    return found


def tests_of(script):
    """(class, method) of each test of an end-to-end script."""
    owner = None
    for line in script.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"class (\w+)", line):
            owner = match[1]
        elif (match := re.match(r"    def (test_\w+)", line)) and owner:
            yield f"{owner}.{match[1]}"


def check_tasks(wanted, variables):
    for part in UNIT:
        if part in wanted:
            for suite, count in suites(part, variables).items():
                yield Task(part, suite, [HERE / "bin" / part, f"--gtest_filter={suite}*"], 240, 1 + 0.2 * count)
    for part in END_TO_END:
        script = SOURCE / "tests" / "e2e" / f"{part}.py"
        if part in wanted and script.exists():
            for name in tests_of(script):
                yield Task(part, name, [sys.executable, "-B", script, "-v", name], 240, 20)


def measurement_tasks(wanted, logs):
    mpirun = [HERE / "bin" / "mpirun", "--oversubscribe", "--bind-to", "none"]
    compare = [sys.executable, SOURCE / "bench" / "gpu" / "compare.py", "--build", HERE]
    rates = HERE / "bench" / "tree_rates"
    for name, limit, command in (
            ("kernel_rates", 150, [HERE / "bench" / "kernel_rates", "--json", logs / "kernel_rates.json"]),
            ("run_rates", 120, [sys.executable, SOURCE / "bench" / "gpu" / "run_rates.py", "--program", HERE / "bin" / "lockstep",
                                "--json", logs / "run_rates.json"]),
            ("tree_rates", 60, [rates, "--json", logs / "tree_rates.json"]),
            ("nccl_rates", 90, [*mpirun, "-n", "2", rates, "--shared-gpu", "nccl", "--megabytes", "1", "--repeat", "5", "--json",
                                logs / "nccl_rates.json"]),
            ("nets", 600, [*compare, "--ways", "lockstep,eager", "--rounds", "1", "--budget", "{left}", "--json",
                           logs / "nets.json"]),
            ("compiled", 600, [*compare, "--ways", "lockstep,compiled", "--rounds", "1", "--budget", "{left}",
                               "--json", logs / "compiled.json"])):
        if name in wanted:
            yield Task(name, name, command, limit)


def sanitizer_tasks(wanted, variables):
    for tool in SANITIZERS:
        if tool in wanted:
            for suite in suites("cuda_kernels_test", variables):
                yield Task(tool, suite, ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", HERE / "bin" / "cuda_kernels_test",
                                         f"--gtest_filter={suite}*:-*Random*:*Large*"], 240)


def side_by_side(tasks, jobs, *arguments):
    tasks = sorted(tasks, key=lambda task: -task.weight)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda task: task.run(*arguments), tasks))


def one_after_the_other(tasks, logs, variables, deadline):
    done = []
    for task in tasks:
        left = max(int(min(task.limit, deadline - time.monotonic())) - 5, 1)
        task.command = [word.replace("{left}", str(left)) for word in task.command]
        done.append(task.run(logs, variables, deadline))
        print(f"{task.part}: {task.state}, {task.seconds:.0f} s", flush=True)
    return done


def summary(tasks, seconds):
    lines = []
    for task in (task for task in tasks if task.failed):
        lines += [f"FAILED {task.part} {task.name}: {task.state}", *("    " + line for line in task.told())]
    for part in PARTS:
        own = [task for task in tasks if task.part == part]
        states = {}
        for task in own:
            states[task.state] = states.get(task.state, 0) + 1
        if own:
            lines.append(f"{part:24} {', '.join(f'{count} {state}' for state, count in states.items())}, "
                         f"{sum(task.seconds for task in own):.0f} s of processes")
    return "\n".join([*lines, f"{seconds:.0f} s in all"])


def archive(logs, path):
    """All logs, cut to their ends, and JSON files in one file."""
    for log in logs.glob("*.log"):
        if log.stat().st_size > LARGEST_LOG:
            content = log.read_bytes()
            log.write_bytes(content[:LARGEST_LOG // 4] + b"\n[...]\n" + content[-LARGEST_LOG * 3 // 4:])
    with tarfile.open(path, "w:xz") as out:
        out.add(logs / "summary.txt", "summary.txt")
        for file in sorted(logs.iterdir()):
            if file.is_file() and file.name != "summary.txt":
                out.add(file, file.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0, help="for everything; 0, the default: no limit")
    parser.add_argument("--only", default="", help=f"of: {', '.join(PARTS)}; default: all")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 12), help="processes side by side")
    parser.add_argument("--output", default="gpu_checks", help="folder of logs; the archive is FOLDER.tar.xz")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else PARTS
    if unknown := [part for part in wanted if part not in PARTS]:
        parser.error(f"unknown part {unknown[0]}; parts: {', '.join(PARTS)}")
    if not SOURCE.is_dir():
        parser.error(f"{HERE} is no folder that pack_gpu_checks.sh made")
    logs = pathlib.Path(options.output).resolve()
    logs.mkdir(parents=True, exist_ok=True)
    variables, begin, total = environment(), time.monotonic(), options.seconds or 1e6
    done = []
    if "info" in wanted:
        done.append(Task("info", "info", ["sh", "-c", f"nvidia-smi; '{HERE}/bin/lockstep' info"], 60).run(logs, variables, begin + total))
    checks, measured = list(check_tasks(wanted, variables)), list(measurement_tasks(wanted, logs))
    sanitized = list(sanitizer_tasks(wanted, variables)) if set(wanted) & set(SANITIZERS) else []
    until = total * (CHECKS_UNTIL if measured or sanitized else 1)
    done += side_by_side(checks, options.jobs, logs, variables, begin + until)
    if checks:
        print(summary(done, time.monotonic() - begin), flush=True)
    done += one_after_the_other(measured, logs, variables, begin + total * (MEASUREMENTS_UNTIL if sanitized else 1))
    done += side_by_side(sanitized, options.jobs, logs, variables, begin + total)
    text = summary(done, time.monotonic() - begin)
    (logs / "summary.txt").write_text(text + "\n", encoding="utf-8")
    path = logs.with_name(logs.name + ".tar.xz")
    archive(logs, path)
    print(f"\n{text}\n{path}: {path.stat().st_size / 1e6:.1f} MB")
    return 1 if any(task.failed for task in done) else 0


if __name__ == "__main__":
    sys.exit(main())
