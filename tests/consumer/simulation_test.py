# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The program examples/simulation, which trains and predicts inside its own time loop: one result on any number of ranks, and
an interrupt ends it as it would without Lockstep.

  simulation_test.py PROGRAM FOLDER MPIRUN...
"""
import os
import re
import signal
import subprocess
import sys
import time

program, folder, *mpirun = sys.argv[1:]
failures = []


def run_dir(name):
    return os.path.join(folder, f"simulation_{name}")


results = {}
for ranks in (1, 2, 3, 4):
    done = subprocess.run([*mpirun, "-n", str(ranks), program, run_dir(ranks)], text=True, check=False, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    results[ranks] = (done.returncode, done.stdout)
if results[1][0] != 0 or not re.fullmatch(r"120 steps: mean temperature 0\.\d+, digest [0-9a-f]{16}\n", results[1][1]):
    failures.append(f"on one rank: {results[1]}")
failures += [f"on {ranks} ranks {result}, on one {results[1]}" for ranks, result in results.items() if result != results[1]]

# The first training writes its folder: the interrupt comes while it runs, or in the time loop after it.
interrupted = run_dir("interrupted")
job = subprocess.Popen([*mpirun, "-n", "3", program, interrupted], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
until = time.monotonic() + 60
while not os.path.exists(os.path.join(interrupted, "config.yaml")) and time.monotonic() < until:
    time.sleep(0.002)
pids = subprocess.run(["pgrep", "-f", f"^{re.escape(program)} {re.escape(interrupted)}$"], text=True, check=False,
                      stdout=subprocess.PIPE).stdout.split()
for pid in pids:
    os.kill(int(pid), signal.SIGINT)
said = job.communicate(timeout=60)[0]
if not pids or job.returncode != 130 or not re.search(r"^\d+ steps: mean temperature", said, re.MULTILINE) or "120 steps" in said:
    failures.append(f"interrupted: processes {pids}, exit code {job.returncode}\n{said}")
sys.exit("\n".join(failures) if failures else 0)
