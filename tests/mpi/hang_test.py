# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A rank hangs, stops, throws or dies: the run ends in time, with a code other than 0, and reports the place.

  hang_test.py FAULT RANKS PROGRAM MPIRUN...
"""
import platform
import re
import subprocess
import sys
import time

fault, ranks, program, *mpirun = sys.argv[1:]
ranks = int(ranks)
bad, host = ranks - 1, re.escape(platform.node())
waiting = rf"rank 0 of {ranks} on host {host} has waited \d+ s in 'batch_norm bn1' \(phase 'step 17'\)"

# fault -> (exit code or None for "not 0", texts that must appear, texts that must not, seconds)
EXPECTED = {
    "none": (0, [], ["lockstep:"], 20),
    "sleep": (1, [waiting, rf"rank {bad}: in no communication call \(phase 'reading data'\) on host {host}, for \d+ s",
                  r"#\d+ 'the start'", rf"The last calls of the other ranks[^\n]*\n(?:  rank \d[^\n]*\n)*  rank {bad}:[^\n]*#\d+ 'the start'"],
              [], 14),
    "save": (1, [rf"has waited 1\d s in 'batch_norm bn1'", rf"rank {bad}: in no communication call \(phase 'saving'\)"], [], 24),
    "stop": (1, [waiting, rf"rank {bad}: no answer"], [], 16),
    "overlap": (1, [rf"has waited \d+ s in 'gradients 1 of 1'", rf"rank {bad}: in no communication call"], [], 14),
    "throw": (3, [rf"rank {bad}: train.h5: record 7 is torn"], ["has waited"], 10),
    "exit": (9, [], [], 10),
}
code, wanted, unwanted, limit = EXPECTED[fault]



def started():
    """Runs the program. Returns the result and the elapsed seconds."""
    begin = time.monotonic()
    done = subprocess.run([*mpirun, "-n", str(ranks), program, fault], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=90, check=False)
    elapsed = time.monotonic() - begin
    print(done.stdout)
    print(f"exit code {done.returncode} after {elapsed:.1f} s")
    return done, elapsed


run, seconds = started()
# Open MPI 4.1.4's mpiexec has crashed once in several hundred runs while it ended itself after our processes.
if run.returncode < 0 and "PMIx_server_finalize" in run.stdout:
    print("mpiexec itself crashed at its end: run again")
    run, seconds = started()
failures = []
if run.returncode != code:
    failures.append(f"exit code {run.returncode}, expected {code}")
if not seconds < limit:
    failures.append(f"took {seconds:.1f} s, limit {limit}")
failures += [f"missing: {text}" for text in wanted if not re.search(text, run.stdout)]
failures += [f"unexpected: {text}" for text in unwanted if re.search(text, run.stdout)]
if len(re.findall("; the run ends here", run.stdout)) > 1:
    failures.append("more than one rank printed the watchdog's message")
sys.exit("\n".join(failures) if failures else 0)
