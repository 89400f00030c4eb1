#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""One step of AdamW on one core: PyTorch's fused and foreach forms and a compiled step, in turn with Lockstep's update_bench.

    bench/pytorch_update.py --update-bench build/release/bench/update_bench     # needs torch 2.0 or later

Prints milliseconds and GB/s of an array of the same size; 28 bytes per element are moved (w, m and v read and written, g read).
"""
import argparse
import re
import subprocess
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update-bench", required=True)
    parser.add_argument("--megabytes", type=int, default=64, help="of one array (default 64)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each; the best counts")
    options = parser.parse_args()
    import torch
    torch.set_num_threads(1)
    count = options.megabytes * (1 << 20) // 4

    def stepper(compiled=False, **form):
        w = torch.nn.Parameter(torch.full((count,), 0.5))
        w.grad = torch.full((count,), 0.01)
        optimizer = torch.optim.AdamW([w], lr=1e-9, weight_decay=0.01, **form)
        step = torch.compile(optimizer.step) if compiled else optimizer.step
        step()
        return step

    forms = {f"PyTorch {torch.__version__}, fused": stepper(fused=True), "PyTorch, foreach": stepper(foreach=True),
             "PyTorch, compiled": stepper(compiled=True, foreach=True)}
    best = dict.fromkeys(["Lockstep", *forms], float("inf"))
    for _ in range(options.rounds):
        out = subprocess.run([options.update_bench, "--megabytes", str(options.megabytes), "--only", "adam, decoupled"],
                             check=True, capture_output=True, text=True).stdout
        rate = float(re.search(r"^adam, decoupled decay\s+\d+\s+([\d.]+)", out, re.M).group(1))
        best["Lockstep"] = min(best["Lockstep"], count * 28 / rate * 1e-9)
        for name, step in forms.items():
            for _ in range(3):
                start = time.perf_counter()
                step()
                best[name] = min(best[name], time.perf_counter() - start)
    for name, seconds in best.items():
        print(f"{name:32} {seconds * 1e3:8.2f} ms {count * 28 / seconds * 1e-9:7.1f} GB/s {best['Lockstep'] / seconds:6.2f}")


if __name__ == "__main__":
    main()
