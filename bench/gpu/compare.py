#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch (if installed) and Lockstep alternately on the same GPU and compares them.

Reports samples per second of each net, batch and activation type, and which share of the GPU's measured GEMM rate in
that type Lockstep's net reaches.

    bench/gpu/compare.py --build build/cuda [--net NAME[,NAME]] [--batch N] [--compute TYPE[,TYPE]] [--tf32]
                         [--ways lockstep,eager,compiled,deterministic] [--compile-mode MODE] [--rounds N] [--budget SECONDS]
                         [--json FILE]

PyTorch runs eager and, from 2.0 on, with torch.compile in one mode (--compile-mode reduce-overhead records CUDA graphs,
which helps small nets); channels last, with autocast in 16-bit types. The optional way
`deterministic` is eager PyTorch with deterministic algorithms only, as Lockstep always uses. Rounds alternate, so that
other load affects all ways; the table shows the medians of the rounds. In a round every net runs in Lockstep and eager
PyTorch before the first one is compiled, which may take minutes. Measurements that do not fit into --budget are skipped
and reported. The JSON file is written after every measurement, so an interrupted run loses only the current one. A failed
measurement is reported, the others go on, and the exit code is 1.

FLOP utilisation counts the multiplications and additions of matrix products and convolutions, the backward pass as twice
the forward pass, and half of causal attention, as the mask leaves it.
"""
import argparse
import collections
import importlib.util
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TYPES = ("float32", "bfloat16", "float16")
Net = collections.namedtuple("Net", "batches types flops")  # flops: of a sample's forward pass
Row = collections.namedtuple("Row", "net batch compute")


def transformer_flops(vocabulary, width, blocks, steps):
    dense = blocks * 2 * 12 * width * width + 2 * width * vocabulary
    attention = blocks * 2 * 2 * width * steps / 2
    return steps * (dense + attention)


NETS = {
    "mlp": Net([128], TYPES[:2], 1.34e6),
    "resnet20": Net([128], TYPES[:2], 82.0e6),
    "resnet50": Net([64, 256], ["bfloat16"], 8180.0e6),
    "gpt2": Net([8], ["bfloat16"], transformer_flops(50304, 768, 12, 1024)),
    "lstm": Net([64], TYPES[:2], 50 * 2 * 2 * (128 + 128) * 512),
    "gpt2_tiny": Net([4], TYPES[:2], transformer_flops(256, 64, 2, 16)),  # only to try the script
}
WAYS = ("lockstep", "eager", "deterministic", "compiled")


class Problem(Exception):
    """The reason for a missing value; the table shows it."""


def run(command, limit):
    """Runs a benchmark and returns its JSON result."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        full_command = [str(word) for word in [*command, "--json", result]]
        # Its own session: torch.compile's workers end with it.
        with subprocess.Popen(full_command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True) as process:
            try:
                output, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise Problem("cut off, no time left") from None
        if process.returncode != 0:
            print(f"{' '.join(full_command)} ended with {process.returncode}:\n{output}", file=sys.stderr, flush=True)
            raise Problem(f"failed with {process.returncode}")
        return json.loads(result.read_text(encoding="utf-8"))


class Comparison:
    def __init__(self, arguments):
        self.arguments = arguments
        self.start = time.monotonic()
        self.torch = importlib.util.find_spec("torch") is not None
        self.gemm = {}  # FLOP/s by type
        self.gemm_source = ""
        self.torch_version = None
        self.compiles = False
        self.speeds = collections.defaultdict(lambda: collections.defaultdict(list))  # [row][way]
        self.notes = collections.defaultdict(dict)
        self.durations = {}  # of the last measurement of (row, way)
        self.failed = False

    def remaining(self):
        if self.arguments.budget is None:
            return None
        return self.arguments.budget - (time.monotonic() - self.start)

    def rows(self):
        found = []
        for net in self.arguments.net:
            for batch in [self.arguments.batch] if self.arguments.batch else NETS[net].batches:
                for compute in self.arguments.compute or NETS[net].types:
                    found.append(Row(net, batch, compute))
        return found

    def ways(self):
        there = {"lockstep": True, "eager": self.torch, "deterministic": self.torch, "compiled": self.torch and self.compiles}
        return [way for way in WAYS if way in self.arguments.ways and there[way]]

    def measure_gemm(self, types):
        """Measures the GEMM rate with PyTorch, or with Lockstep's products if PyTorch is missing."""
        device, flags = self.arguments.device, ["--tf32"] if self.arguments.tf32 else []
        try:
            if self.torch:
                found = run([sys.executable, HERE.parent / "pytorch_step.py", "--device", device, "--gemm", ",".join(types), *flags],
                            self.remaining())
                self.torch_version, self.compiles = found["torch"], found["compiles"]
                self.gemm, self.gemm_source = found["gemm_flops"], "PyTorch"
            elif device == "cuda":
                single = "tf32" if self.arguments.tf32 else "float32"
                wanted = ",".join(name.replace("float32", single) for name in types)
                found = run([self.arguments.build / "bench" / "kernel_rates", "--only", "gemm", "--compute", wanted,
                             *(["--tiny"] if self.arguments.quick else [])], self.remaining())
                self.gemm = {row["type"].replace("tf32", "float32"): 1e12 * row["value"] for row in found["rows"]}
                self.gemm_source = "Lockstep"
        except Problem as problem:
            self.failed = self.failed or "failed" in str(problem)
            print(f"GEMM rate: {problem}", flush=True)
        for name, rate in self.gemm.items():
            tf32 = " (TF32)" if self.arguments.tf32 and name == "float32" else ""
            print(f"GEMM rate by {self.gemm_source}, {name}{tf32}: {rate / 1e12:.2f} TFLOP/s")
        print(f"PyTorch {self.torch_version}" if self.torch else "PyTorch is not installed: Lockstep runs alone", flush=True)

    def command(self, row, way):
        a = self.arguments
        common = ["--device", a.device, "--net", row.net, "--batch", row.batch, *(["--tf32"] if a.tf32 else [])]
        if way == "lockstep":
            program = "step_bench_gpu" if a.device == "cuda" else "step_bench"
            return [a.build / "bench" / program, *common, "--shards", 1, "--no-convolutions", "--compute", row.compute,
                    *(["--steps", 1, "--repeat", 1] if a.quick else [])]
        return [sys.executable, HERE.parent / "pytorch_step.py", *common, *(["--compile", "--compile-mode", a.compile_mode] if way == "compiled" else []),
                *(["--deterministic"] if way == "deterministic" else []),
                *(["--amp", row.compute] if row.compute != "float32" else []), "--seconds", 0.01 if a.quick else 3]

    def measure(self, row, way, turn):
        """Runs one measurement, or notes why it is missing."""
        remaining = self.remaining()
        expected = self.durations.get((row, way), 0.0)
        try:
            if remaining is not None and remaining <= expected:
                raise Problem("skipped, no time left")
            start = time.monotonic()
            found = run(self.command(row, way), remaining)["rows"][0]
            self.durations[row, way] = time.monotonic() - start
            self.speeds[row][way].append(row.batch / found["step_median_s"])
            said = f"{self.speeds[row][way][-1]:.0f} samples/s, in {self.durations[row, way]:.0f} s"
        except Problem as problem:
            self.failed = self.failed or "failed" in str(problem)
            said = str(problem)
            self.notes[row].setdefault(way, f"round {turn + 1}: {said}")
        print(f"round {turn + 1}  {row.net:<10} {row.batch:>5} {row.compute:<9} {way:<13} {said}", flush=True)
        self.save()

    def measure_all(self):
        self.measure_gemm(sorted({row.compute for row in self.rows()}))
        self.save()
        for turn in range(self.arguments.rounds):
            for group in (WAYS[:-1], WAYS[-1:]):
                for row in self.rows():
                    for way in self.ways():
                        if way in group:
                            self.measure(row, way, turn)

    def figures(self, row):
        medians = {way: statistics.median(values) for way, values in self.speeds[row].items() if values}
        mine, rate = medians.get("lockstep"), self.gemm.get(row.compute)
        ratio = {way: mine / medians[way] for way in WAYS[1:] if mine and way in medians}
        if ratio:
            ratio["best"] = min(ratio.values())
        return medians, ratio, 3 * NETS[row.net].flops * mine / rate if mine and rate else None

    def save(self):
        if not self.arguments.json:
            return
        rows = []
        for row in self.rows():
            _, ratio, share = self.figures(row)
            rows.append({**row._asdict(), "samples_per_s": dict(self.speeds[row]), "notes": self.notes[row],
                         "lockstep_of": ratio, "flop_utilisation": share})
        content = {"device": self.arguments.device, "tf32": self.arguments.tf32, "torch": self.torch_version,
                   "compile_mode": self.arguments.compile_mode,
                   "gemm_flops": self.gemm, "gemm_source": self.gemm_source, "rows": rows}
        part = self.arguments.json.with_name(self.arguments.json.name + ".part")
        part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        part.replace(self.arguments.json)

    def print_table(self):
        ways = [way for way in WAYS if way in self.arguments.ways]
        compared = [*(way for way in ways if way != "lockstep"), "best"]
        heads = [f"of {way}" for way in compared]
        print(f"\n{'net':<10} {'batch':>5} {'type':<9} " + " ".join(f"{way:>13}" for way in ways) + " " +
              " ".join(f"{head:>16}" for head in heads) + f" {'of GEMM':>8}   samples/s, medians")
        for row in self.rows():
            medians, ratio, share = self.figures(row)
            cells = [f"{medians[way]:>13.0f}" if way in medians else f"{'-':>13}" for way in ways]
            cells += [f"{ratio[way]:>16.2f}" if way in ratio else f"{'-':>16}" for way in compared]
            cells.append(f"{share:>8.1%}" if share else f"{'-':>8}")
            print(f"{row.net:<10} {row.batch:>5} {row.compute:<9} " + " ".join(cells))
            for way, note in self.notes[row].items():
                print(f"    {way}: {note}")


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ", ".join(NETS)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder, with bench/step_bench_gpu")
    parser.add_argument("--net", default=",".join(name for name in NETS if name != "gpt2_tiny"), help=f"names, separated by commas: {names}")
    parser.add_argument("--batch", type=int, help="instead of each net's own")
    parser.add_argument("--compute", help="activation types, separated by commas, instead of each net's own: " + ", ".join(TYPES))
    parser.add_argument("--ways", default="lockstep,eager,compiled", help="what to measure, separated by commas: " + ", ".join(WAYS))
    parser.add_argument("--compile-mode", default="default", choices=["default", "reduce-overhead", "max-autotune"],
                        help="of torch.compile")
    parser.add_argument("--tf32", action="store_true", help="float32 products and convolutions may round their inputs, in all ways")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, help="seconds; measurements that do not fit are skipped")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: only to try the script")
    parser.add_argument("--quick", action="store_true", help="a few steps of each: only to try the script")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args(argv)
    for option, known in (("net", NETS), ("compute", TYPES), ("ways", WAYS)):
        chosen = getattr(arguments, option)
        if chosen is None:
            continue
        setattr(arguments, option, chosen.split(","))
        for name in chosen.split(","):
            if name not in known:
                parser.error(f"--{option}: '{name}' is not one of {', '.join(known)}")
    program = arguments.build / "bench" / ("step_bench_gpu" if arguments.device == "cuda" else "step_bench")
    if not program.exists():
        parser.error(f"{program} is missing: build with -DLOCKSTEP_CUDA=ON and -DLOCKSTEP_BENCH=ON")
    return arguments


def main():
    comparison = Comparison(arguments_of(sys.argv[1:]))
    comparison.measure_all()
    comparison.print_table()
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())
