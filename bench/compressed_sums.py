#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A step with sums rounded to bfloat16 (comm.compress) compared with the plain one, and with one core.

    bench/compressed_sums.py [--build DIR] [--net NAME] [--rounds N] [--steps N] [--megabits N]

Runs step_bench in turn on one core, on two ranks, and on two ranks with --compress (and --error-feedback), with the same batch per rank, `--rounds`
times. Prints the fastest step of all rounds (other work on the machine only slows a step down), the share of twice one core's
samples per second, bytes sent in a step and the largest memory of a rank.
--megabits puts the two ranks on two hosts, which are network namespaces of this machine (tests/hosts), joined by a link of N
Mbit/s in each direction; it needs root, ip and tc.
Needs mpirun and a build with -DLOCKSTEP_BENCH=ON.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests" / folder) for folder in ("hosts", "e2e", "support")]
RANKS, SHARDS = 2, 2  # shards per rank


def launcher(hosts):
    """The command before the program, on two ranks."""
    mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(RANKS)]
    if hosts is None:
        return mpirun
    name = hosts.name(1)
    tcp = {"plm": "rsh", "plm_rsh_agent": hosts.ENTER, "btl": "tcp,self", "btl_tcp_if_include": "eth0",
           "oob_tcp_if_include": "eth0"}
    return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name, *mpirun, "--host",
            "10.77.0.1:1,10.77.0.2:1", *(str(word) for key, value in tcp.items() for word in ("--mca", key, value))]


def measure(program, arguments, hosts, ranks, more):
    environment = dict(os.environ, LOCKSTEP_HOSTS=hosts.PREFIX if hosts else "")
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        command = [*([] if ranks == 1 else launcher(hosts)), str(program), "--net", arguments.net, "--shards", str(SHARDS), "--scale",
                   str(ranks), "--steps", str(arguments.steps), "--repeat", "3", "--no-convolutions", "--json", result.name, *more]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment, timeout=600)
        return json.loads(pathlib.Path(result.name).read_text(encoding="utf-8"))["rows"][0]


def link_hosts(megabits, program):
    # What the tests' helpers look for.
    os.environ.setdefault("LOCKSTEP_PROGRAM", str(program))
    os.environ.setdefault("LOCKSTEP_MPIRUN", "mpirun")
    os.environ.setdefault("LOCKSTEP_SOURCE", str(ROOT))
    import two_hosts  # pylint: disable=import-outside-toplevel
    two_hosts.make()
    for number in (1, 2):
        two_hosts.command("ip", "netns", "exec", two_hosts.name(number), "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate",
                          f"{megabits}mbit", "burst", "256kb", "latency", "100ms")
    return two_hosts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--net", default="mlp_adam")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--megabits", type=int)
    arguments = parser.parse_args()
    program = (arguments.build / "bench" / "step_bench").resolve()
    forms = {"one core": (1, []), "none": (RANKS, []), "bfloat16": (RANKS, ["--compress"]), "feedback": (RANKS, ["--error-feedback"]),
             "shared": (RANKS, ["--shard-update"]), "both": (RANKS, ["--shard-update", "--compress"])}
    rows = {name: [] for name in forms}
    hosts = None
    try:
        hosts = link_hosts(arguments.megabits, program) if arguments.megabits else None
        for _ in range(arguments.rounds):
            for name, (ranks, more) in forms.items():
                rows[name].append(measure(program, arguments, hosts, ranks, more))
    finally:
        if "two_hosts" in sys.modules:
            sys.modules["two_hosts"].remove_all()

    def of(name, key):
        return min(row[key] for row in rows[name])

    def samples_per_s(name):
        return max(row["samples_per_s_at_minimum"] for row in rows[name])

    where = f"a link of {arguments.megabits} Mbit/s" if arguments.megabits else "one host"
    print(f"{arguments.net}, {RANKS} ranks, {where}, {arguments.rounds} rounds")
    print(f"{'':<10}{'ms':>9}{'samples/s':>12}{'of 2 cores':>12}{'sent MB':>9}{'peak MB':>9}")
    for name in forms:
        share = samples_per_s(name) / samples_per_s("one core") / forms[name][0]
        print(f"{name:<10}{1e3 * of(name, 'step_minimum_s'):>9.3f}{samples_per_s(name):>12.0f}{100 * share:>10.1f} %"
              f"{1e-6 * of(name, 'sent_bytes'):>9.2f}{1e-6 * of(name, 'peak_resident_bytes'):>9.1f}")


if __name__ == "__main__":
    main()
