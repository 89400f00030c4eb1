#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Runs all benchmarks and prints one report in Markdown.

    bench/run_all.py --output DIR [--build DIR] [--repeat N] [--megabytes N] [--net NAME[,NAME]] [--only steps|rest]

Each net runs on one core, on one rank with two threads and on two ranks, one after the other, with the same batch per
core in microshards of the same size. Then `shards: 8` is compared with `shards: 2` at one batch on two threads. The
reduction tree is compared with MPI_Allreduce, and kernels and checkpoints are measured. DIR receives all results as
JSON, and report.md. Run it on an otherwise idle machine. Needs mpirun; if Python has h5py, the report compares the
checkpoints with h5py.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

# net, batch on one core; shards on one core
STEPS = [("resnet20", 32), ("resnet20", 128), ("lenet", 128), ("mlp", 128), ("mlp_adam", 128), ("digits", 64), ("lstm", 64),
         ("tiny_dense", 2), ("tiny_norm", 2)]
SHARDS = 2


class Runner:
    def __init__(self, build, output):
        self.build, self.output = build, output
        self.mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none"]
        self.environment = dict(os.environ)
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def run(self, program, arguments, name, ranks=1):
        """The program's JSON result. Its output goes to a log file next to the JSON file."""
        result = self.output / f"{name}.json"
        command = [str(self.build / "bench" / program), *map(str, arguments), "--json", str(result)]
        if ranks > 1:
            command = [*self.mpirun, "-n", str(ranks), *command]
        print(f"... {name}", file=sys.stderr, flush=True)
        log = self.output / f"{name}.log"
        with open(log, "w", encoding="utf-8") as file:
            code = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=self.environment, timeout=1800,
                                  check=False).returncode
        if code != 0:
            sys.exit(f"{' '.join(command)} ended with exit code {code}; see {log}")
        with open(result, encoding="utf-8") as file:
            return json.load(file)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def steps(runner, arguments):
    speed, parts, shards = [], [], []
    for net, batch in STEPS:
        if arguments.net and net not in arguments.net.split(","):
            continue
        common = ["--net", net, "--repeat", arguments.repeat]

        def row(name, more, ranks=1, shape=common):
            return runner.run("step_bench", [*shape, *more], f"step_{net}_{batch}_{name}", ranks)["rows"][0]

        load = ["--batch", batch, "--shards", SHARDS]
        one = row("one_core", [*load, "--parts"])
        threads = row("two_threads", [*load, "--scale", 2, "--threads", 2])
        ranks = row("two_ranks", [*load, "--scale", 2], 2)

        def efficiency(two):
            shares = [100 * two[key] / one[key] / 2 for key in ("samples_per_s", "samples_per_s_at_minimum")]
            return f"{two['samples_per_s']:.0f} ({shares[0]:.1f} %, {shares[1]:.1f} %)"

        ratio = ""
        if "convolutions_median_s" in one:
            ratio = (f"{one['step_median_s'] / one['convolutions_median_s']:.3f} "
                     f"(minima {one['step_minimum_s'] / one['convolutions_minimum_s']:.3f}, "
                     f"cpu {one['step_processor_s'] / one['convolutions_processor_s']:.3f})")
        speed.append([net, batch, f"{one['samples_per_s']:.0f}", f"{one['samples_per_s_at_minimum']:.0f}",
                      efficiency(threads), efficiency(ranks), ratio,
                      f"{1e6 * one['step_median_s'] / one['layers']:.2f}", f"{1e-6 * one['activation_bytes']:.1f}",
                      f"{1e-6 * one['peak_resident_bytes']:.0f}"])
        parts.append([net, batch, *(f"{1e3 * one['parts_s'][part]:.3f}" for part in
                                    ("refresh", "forward", "backward", "reduction", "control", "update"))])
        if batch >= 32:
            two, eight = (row(f"shards_{g}", ["--batch", batch, "--shards", g, "--threads", 2, "--no-convolutions"])
                          for g in (2, 8))
            shards.append([net, batch, f"{two['samples_per_s']:.0f}", f"{eight['samples_per_s']:.0f}",
                           f"{100 * (eight['step_median_s'] / two['step_median_s'] - 1):+.1f} %",
                           f"{100 * (eight['step_minimum_s'] / two['step_minimum_s'] - 1):+.1f} %"])
    return [
        "## Training steps\n\nsamples/s at the median step; in parentheses the percentage of twice one core's speed, for median and fastest steps.\n",
        table(["net", "batch per core", "one core", "at its fastest step", "one rank x 2 threads", "two ranks",
               "step / convolutions alone", "us per layer and step", "activations MB", "peak MB"], speed),
        "## The parts of a step on one core\n\nMilliseconds, medians.\n",
        table(["net", "batch", "packing weights", "forward", "backward", "sums of gradients", "loss sum", "update"],
              parts),
        "## The cost of `shards: 8` against `shards: 2`\n\nOne rank with two threads, the same batch; samples/s.\n",
        table(["net", "batch", "shards 2", "shards 8", "more time, medians", "more time, fastest steps"], shards),
    ]


def h5py_rows(megabytes, folder):
    """A plain HDF5 file of the same size: written by h5py, flushed to the disk, and read."""
    try:
        import h5py
        import numpy
    except ImportError:
        return []
    values = numpy.random.default_rng(1).random(megabytes * 250_000, dtype=numpy.float32)
    path = folder / "h5py.h5"
    seconds = {"write": [], "read": []}
    for _ in range(3):
        start = time.perf_counter()
        with h5py.File(path, "w") as file:
            for i in range(0, len(values), 1 << 20):
                file.create_dataset(f"layer{i >> 20}", data=values[i:i + (1 << 20)])
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
        seconds["write"].append(time.perf_counter() - start)
        start = time.perf_counter()
        with h5py.File(path, "r") as file:
            for dataset in file.values():
                dataset[...]
        seconds["read"].append(time.perf_counter() - start)
    path.unlink()
    return [{"name": f"h5py {what}, no checksums", "best_gb_per_s": 1e-3 * megabytes / min(times),
             "median_gb_per_s": 1e-3 * megabytes / statistics.median(times)} for what, times in seconds.items()]


def dd_rows(megabytes, folder):
    """The disk's speed by dd: as many zeros, flushed to the disk."""
    path = folder / "dd"
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        try:
            subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=1000000", f"count={megabytes}", "conv=fsync"],
                           check=True, capture_output=True, timeout=1800)
        except FileNotFoundError:
            return []
        seconds.append(time.perf_counter() - start)
    path.unlink()
    return [{"name": "dd conv=fsync", "best_gb_per_s": 1e-3 * megabytes / min(seconds),
             "median_gb_per_s": 1e-3 * megabytes / statistics.median(seconds)}]


def rest(runner, arguments):
    tree = runner.run("tree_bench", [], "tree", 2)["rows"]
    kernels = runner.run("kernel_bench", [], "kernels")["figures"]
    checkpoints = runner.run("checkpoint_bench", ["--megabytes", arguments.megabytes, "--folder", runner.output,
                                                  "--threads", 2], "checkpoint")["rows"]
    blocked = [f"{r['name']} {r['blocked_best_s_per_gb']:.3f} s per GB at best, {r['blocked_median_s_per_gb']:.3f} in the "
               "median.\n" for r in checkpoints if "blocked_best_s_per_gb" in r]
    checkpoints += dd_rows(arguments.megabytes, runner.output)
    checkpoints += h5py_rows(arguments.megabytes, runner.output)
    return [
        "## The reduction tree and `MPI_Allreduce`, two ranks\n",
        table(["bytes", "tree ms", "MPI_Allreduce ms", "ratio", "ratio of minima"],
              [[r["bytes"], f"{1e3 * r['tree_median_s']:.4f}", f"{1e3 * r['allreduce_median_s']:.4f}",
                f"{r['tree_median_s'] / r['allreduce_median_s']:.2f}",
                f"{r['tree_minimum_s'] / r['allreduce_minimum_s']:.2f}"] for r in tree]),
        f"## Checkpoints, {arguments.megabytes} MB\n",
        table(["", "GB/s, best", "median"],
              [[r["name"], f"{r['best_gb_per_s']:.2f}", f"{r['median_gb_per_s']:.2f}"] for r in checkpoints]),
        *blocked,
        "## Kernels on one core\n",
        table(["kernel", "value", "unit"], [[f["name"], f"{f['value']:.1f}", f["unit"]] for f in kernels]),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder for results; created if missing")
    parser.add_argument("--build", type=pathlib.Path, default=here / "build" / "release",
                        help="build folder with the benchmarks; default: build/release")
    parser.add_argument("--repeat", type=int, default=5, help="duration per net, in half seconds")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the checkpoint")
    parser.add_argument("--net", help="nets to measure, separated by commas")
    parser.add_argument("--only", choices=["steps", "rest"])
    arguments = parser.parse_args()
    if not (arguments.build / "bench" / "step_bench").exists():
        sys.exit(f"{arguments.build}/bench has no step_bench; build it with "
                 "'cmake --preset release -DLOCKSTEP_BENCH=ON && cmake --build build/release --target benchmarks', or name --build DIR")
    arguments.output.mkdir(parents=True, exist_ok=True)
    runner = Runner(arguments.build, arguments.output)
    sections = []
    if arguments.only != "rest":
        sections += steps(runner, arguments)
    if arguments.only != "steps":
        sections += rest(runner, arguments)
    report = "\n".join(sections)
    (arguments.output / "report.md").write_text(report, encoding="utf-8")
    print(report)


if __name__ == "__main__":
    main()
