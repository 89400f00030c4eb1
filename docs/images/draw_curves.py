#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Draws loss and accuracy of a run, over its steps, from its metrics.jsonl. Needs matplotlib.

    mpirun -n 2 lockstep train examples/digits.yaml --run-dir runs/curves --set eval.every_epochs=1 --set summary.every_steps=8
    docs/images/draw_curves.py runs/curves docs/images/digits.svg
"""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "lockstep"  # the same file for the same run
import matplotlib.pyplot as plt

COLORS = {"train": "#9bb8d3", "eval": "#c4511f"}
LABELS = {"train": "training batches", "eval": "held-out digits"}


def read(run_dir):
    """{split: {name: ([steps], [values])}}"""
    curves = {}
    for line in (pathlib.Path(run_dir) / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        for name in ("loss", "accuracy"):
            if name in record:
                steps, values = curves.setdefault(record["split"], {}).setdefault(name, ([], []))
                steps.append(record["step"])
                values.append(record[name])
    return curves


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    curves = read(sys.argv[1])
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.9), facecolor="white")
    for axis, name in zip(axes, ("loss", "accuracy")):
        for split in ("train", "eval"):
            steps, values = curves[split][name]
            if name == "accuracy":
                values = [100 * value for value in values]
            axis.plot(steps, values, color=COLORS[split], label=LABELS[split], linewidth=1.2 if split == "train" else 2)
        axis.set_xlabel("step")
        axis.set_xlim(left=0)
        axis.grid(color="#e6e6e6", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("loss (cross-entropy, log scale)")
    axes[0].set_yscale("log")
    axes[1].set_ylabel("accuracy, %")
    axes[1].set_ylim(top=100.5, bottom=70)
    axes[1].legend(frameon=False, loc="lower right")
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=110, metadata={"Date": None} if sys.argv[2].endswith(".svg") else None)


main()
