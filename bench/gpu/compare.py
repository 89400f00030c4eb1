#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch (where installed) and Lockstep in turn on the same GPU: samples per second of each net, and the share of the
GPU's measured GEMM rate that Lockstep's net reaches.

    bench/gpu/compare.py --build build/cuda [--net NAME[,NAME]] [--tf32] [--rounds N] [--json FILE]

Both run float32, channels last. Rounds alternate, so that what else the machine does strikes both; the table shows the
medians of the rounds. PyTorch runs eager and, from 2.0 on, with torch.compile.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# name: (batches, multiplications and additions of a sample's forward pass, in millions; backward takes twice that)
NETS = {"mlp": ([128], 1.34), "resnet20": ([128], 82.0), "resnet50": ([64, 256], 8180.0)}


def run(command):
    """The JSON that a benchmark writes, or None with its message if it cannot run here."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        done = subprocess.run([str(word) for word in [*command, "--json", file.name]], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}{done.stdout}")
        return json.loads(pathlib.Path(file.name).read_text(encoding="utf-8"))


def lockstep(program, device, net, batch, tf32):
    flags = ["--tf32"] if tf32 else []
    found = run([program, "--device", device, "--net", net, "--batch", batch, "--shards", 1, "--no-convolutions", *flags])
    return batch / found["rows"][0]["step_median_s"]


def pytorch(device, net, batch, tf32, compiled):
    flags = [flag for flag, wanted in (("--tf32", tf32), ("--compile", compiled)) if wanted]
    found = run([sys.executable, HERE.parent / "pytorch_step.py", "--device", device, "--net", net, "--batch", batch, *flags])
    return found["rows"][0]["samples_per_s"]


def gemm_rate(device, tf32):
    """FLOP/s of a large product by PyTorch, and whether it can compile; None without it."""
    try:
        import torch
    except ImportError:
        return None, False
    import time
    torch.backends.cuda.matmul.allow_tf32 = tf32
    size = 8192 if device == "cuda" else 1024
    a, b = (torch.rand(size, size, device=device) for _ in range(2))
    best = 0.0
    for _ in range(20):
        start = time.perf_counter()
        a @ b
        if device == "cuda":
            torch.cuda.synchronize()
        best = max(best, 2.0 * size ** 3 / (time.perf_counter() - start))
    return best, hasattr(torch, "compile")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder, with bench/step_bench_gpu")
    parser.add_argument("--net", default=",".join(NETS), help="names, with commas: " + ", ".join(NETS))
    parser.add_argument("--batch", type=int, help="instead of each net's own")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: only to try the script")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    program = arguments.build / "bench" / ("step_bench_gpu" if arguments.device == "cuda" else "step_bench")
    if not program.exists():
        sys.exit(f"{program} is not there: build with -DLOCKSTEP_CUDA=ON and -DLOCKSTEP_BENCH=ON")
    rate, compiles = gemm_rate(arguments.device, arguments.tf32)
    ways = ["Lockstep", *(["PyTorch"] if rate else []), *(["compiled"] if compiles else [])]
    print("GEMM rate: " + ("not measured, PyTorch is not installed" if rate is None else f"{rate / 1e12:.2f} TFLOP/s"))
    print(f"{'net':<10} {'batch':>6} " + " ".join(f"{way:>12}" for way in ways) + f" {'of PyTorch':>11} {'of GEMM':>8}")
    rows = []
    for net in arguments.net.split(","):
        if net not in NETS:
            parser.error(f"no net '{net}'; known: {', '.join(NETS)}")
        batches, mflop = NETS[net]
        for batch in [arguments.batch] if arguments.batch else batches:
            speeds = {way: [] for way in ways}
            for _ in range(arguments.rounds):
                for way in ways:
                    speeds[way].append(lockstep(program, arguments.device, net, batch, arguments.tf32) if way == "Lockstep" else
                                       pytorch(arguments.device, net, batch, arguments.tf32, way == "compiled"))
            medians = {way: statistics.median(values) for way, values in speeds.items()}
            rows.append({"net": net, "batch": batch, "samples_per_s": speeds, "gemm_flops": rate})
            ratio = f"{medians['Lockstep'] / medians['PyTorch']:>11.2f}" if rate else f"{'-':>11}"
            share = f"{3e6 * mflop * medians['Lockstep'] / rate:>8.1%}" if rate else f"{'-':>8}"
            print(f"{net:<10} {batch:>6} " + " ".join(f"{medians[way]:>12.0f}" for way in ways) + f" {ratio} {share}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
