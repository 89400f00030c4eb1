#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Samples per second with parameter servers compared with synchronous training, on equal workers and where one of them stands still
half of the time (SIGSTOP and SIGCONT in turn). Forms take turns; the medians of several rounds, and their ratios to the first.

    bench/servers.py LOCKSTEP CONFIG [--workers 2] [--rounds 5] [--steps 480] [--slow]
"""
import argparse
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PERIOD = 0.02  # of standing still, and of running


def ranks_of(pid):
    """{rank: pid} of the ranks under mpirun."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                for word in (entry / "environ").read_bytes().split(b"\0"):
                    if word.startswith(b"OMPI_COMM_WORLD_RANK="):
                        found[int(word.partition(b"=")[2])] = int(entry.name)
        except OSError:
            pass
    return found


def measure(arguments, ranks, sets, slow):
    """Samples per second from the first to the last record."""
    with tempfile.TemporaryDirectory(prefix="lockstep-servers-") as folder:
        command = ["mpiexec", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), arguments.program, "train",
                   arguments.config, "--run-dir", f"{folder}/run", "--steps", str(arguments.steps), "--threads", "1"]
        for one in ["eval.every_epochs=0", "checkpoint.every_epochs=0", "summary.every_steps=10", *sets]:
            command += ["--set", one]
        with tempfile.TemporaryFile("w+") as log:
            job = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            metrics = pathlib.Path(folder) / "run" / "metrics.jsonl"
            while slow and job.poll() is None and not metrics.exists():
                time.sleep(0.01)
            worker = ranks_of(job.pid).get(0) if slow else None
            while worker and job.poll() is None:
                try:
                    os.kill(worker, signal.SIGSTOP)
                    time.sleep(PERIOD)
                    os.kill(worker, signal.SIGCONT)
                    time.sleep(PERIOD)
                except ProcessLookupError:
                    break
            code = job.wait()
            log.seek(0)
            text = log.read()
        if code != 0:
            sys.exit(f"{' '.join(command)}\n{text}")
        number, unit = re.search(r"([\d.]+)([kM]?) samples/s on average", text).groups()
        return float(number) * {"": 1, "k": 1e3, "M": 1e6}[unit]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("config")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=480)
    parser.add_argument("--slow", action="store_true", help="the first worker stands still half of the time")
    arguments = parser.parse_args()
    served = ["cluster.ps=1", "cluster.meet_every_steps=10"]
    forms = {"synchronous": (arguments.workers, ["cluster=null"]),
             "ps, staleness 0": (arguments.workers + 1, [*served, "cluster.staleness=0"]),
             "ps, staleness 1": (arguments.workers + 1, [*served, "cluster.staleness=1"]),
             "ps, staleness 3": (arguments.workers + 1, [*served, "cluster.staleness=3"])}
    rates = {name: [] for name in forms}
    for _ in range(arguments.rounds):
        for name, (ranks, sets) in forms.items():
            rates[name].append(measure(arguments, ranks, sets, arguments.slow))
    first = statistics.median(rates["synchronous"])
    for name, found in rates.items():
        print(f"{name:18} {statistics.median(found):9.0f} samples/s  {statistics.median(found) / first:5.2f}  "
              f"({min(found):.0f} to {max(found):.0f})")


if __name__ == "__main__":
    main()
