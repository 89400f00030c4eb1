#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Whole training runs on a GPU: samples per second by shards and branches, with the digests, which must not depend on branches, and
the seconds until the first step with and without the check of plans.

    bench/gpu/run_rates.py --program build/cuda/bin/lockstep [--device cuda|cpu] [--steps N] [--json FILE]

The rate is the last that the log prints before the end, of some seconds of steps without evaluations and checkpoints. A run that
fails is shown, the others go on, and the exit code is 1. Exit code 1, too, if digests differ that must be equal.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
BFLOAT16 = ["precision.compute=bfloat16"]
# Group (equal digests), name, configuration, options.
RUNS = (
    *(("digits", f"digits, 8 shards, branches {branches}", "digits.yaml", ["shards=8", f"gpu.branches={branches}"])
      for branches in (1, 2, 4, 8)),
    ("digits, 1", "digits, 1 shard", "digits.yaml", ["shards=1"]),
    *(("transformer", f"transformer, 4 shards, branches {branches}", "shakespeare_transformer.yaml",
       ["shards=4", f"gpu.branches={branches}", *BFLOAT16]) for branches in (1, 2, 4)),
    ("transformer, 1", "transformer, 1 shard", "shakespeare_transformer.yaml", ["shards=1", *BFLOAT16]),
    ("unchecked", "transformer, plans not checked", "shakespeare_transformer.yaml", ["shards=1", "gpu.check_plans=false", *BFLOAT16]),
)


def measure(arguments, folder, name, config, options):
    """(samples per second, seconds until the first step, digest, warnings) of a run."""
    run = folder / re.sub(r"\W+", "_", name)
    sets = [f"device={arguments.device}", "eval.every_epochs=0", "eval.every_steps=null", "checkpoint.every_epochs=0",
            "checkpoint.every_steps=null", *options]
    command = [arguments.program, "train", EXAMPLES / config, "--run-dir", run, "--steps", str(arguments.steps)]
    for one in sets:
        command += ["--set", one]
    begin, first, rates, warnings, lines = time.monotonic(), None, [], 0, []
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            lines.append(line)
            if first is None and line.startswith("step "):
                first = time.monotonic() - begin
            warnings += line.startswith("warning")
            rates += [float(number) * {"": 1, "k": 1e3, "M": 1e6}[unit]
                      for number, unit in re.findall(r"^step .* ([\d.]+)([kM]?) samples/s  ", line)]
    if process.returncode != 0 or not rates:
        raise RuntimeError(f"ended with {process.returncode}: {''.join(lines[-4:])}")
    digest = subprocess.run([arguments.program, "inspect", run, "--digest"], capture_output=True, text=True, check=True).stdout.strip()
    return {"samples_per_s": rates[-1], "first_step_s": first, "digest": digest, "warnings": warnings}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the program lockstep")
    parser.add_argument("--device", default="cuda", help="cpu: only to try the script")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    rows, digests, failed = [], {}, False
    print(f"{'run':<36} {'samples/s':>10} {'first step, s':>14} {'warnings':>9}  digest", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for group, name, config, options in RUNS:
            try:
                row = measure(arguments, pathlib.Path(folder), name, config, options)
            except (RuntimeError, OSError) as error:
                failed = True
                print(f"{name:<36} {error}", flush=True)
                continue
            rows.append({"run": name, **row})
            note = "" if digests.setdefault(group, row["digest"]) == row["digest"] else "  DIFFERS"
            failed = failed or bool(note)
            print(f"{name:<36} {row['samples_per_s']:>10.0f} {row['first_step_s']:>14.2f} {row['warnings']:>9}  {row['digest'][:16]}{note}",
                  flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
