#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A step with the update shared among ranks (optimizer.shard) compared with the plain one, and with one core.

    bench/sharded_update.py [--build DIR] [--net NAME] [--ranks R] [--rounds N] [--steps N]

Runs step_bench in turn on one core and on R ranks, whose gradients are sent as messages or summed in shared memory, each with
and without --shard-update; with the same batch per rank, `--rounds` times. Prints the fastest step of all rounds (other work on the machine only slows a step down), the share of R times one core's
samples per second, bytes sent in a step, bytes of slots and the largest memory of a rank.
Needs mpirun and a build with -DLOCKSTEP_BENCH=ON.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

SHARDS = 2  # per rank


def measure(program, arguments, ranks, more):
    environment = dict(os.environ)
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        launcher = [] if ranks == 1 else ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
        command = [*launcher, str(program), "--net", arguments.net, "--shards", str(SHARDS), "--scale", str(ranks),
                   "--steps", str(arguments.steps), "--repeat", "3", "--no-convolutions", "--json", result.name, *more]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment, timeout=600)
        return json.loads(pathlib.Path(result.name).read_text(encoding="utf-8"))["rows"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--net", default="mlp_adam")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    program = arguments.build / "bench" / "step_bench"
    ranks, shared, sharded = arguments.ranks, "--shared-memory", "--shard-update"
    forms = {"one core": (1, []), "messages": (ranks, []), "messages, sharded": (ranks, [sharded]),
             "shared memory": (ranks, [shared]), "shared memory, sharded": (ranks, [shared, sharded])}
    rows = {name: [] for name in forms}
    for _ in range(arguments.rounds):
        for name, (ranks, more) in forms.items():
            rows[name].append(measure(program, arguments, ranks, more))

    def of(name, key):
        return min(row[key] for row in rows[name])

    def samples_per_s(name):
        return max(row["samples_per_s_at_minimum"] for row in rows[name])

    print(f"{arguments.net}, {arguments.ranks} ranks, {arguments.rounds} rounds")
    print(f"{'':<24}{'ms':>9}{'samples/s':>12}{'of R cores':>12}{'sent MB':>9}{'slots MB':>10}{'peak MB':>9}")
    for name, (ranks, _) in forms.items():
        share = samples_per_s(name) / samples_per_s("one core") / ranks
        print(f"{name:<24}{1e3 * of(name, 'step_minimum_s'):>9.3f}{samples_per_s(name):>12.0f}"
              f"{100 * share:>10.1f} %{1e-6 * of(name, 'sent_bytes'):>9.2f}{1e-6 * of(name, 'slot_bytes'):>10.2f}"
              f"{1e-6 * of(name, 'peak_resident_bytes'):>9.1f}")


if __name__ == "__main__":
    main()
