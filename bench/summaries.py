#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""What summaries cost, as a share of the steps at their default intervals: runs with a summary every two steps compared with runs without,
one after the other, on one core.

  bench/summaries.py --program build/release/bin/lockstep [--repeats 3] [--cpu-time]

  --cpu-time   counts the processor's time of the process, with that of the thread that writes: for a machine that others use
"""
import argparse
import json
import pathlib
import resource
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH, EVERY = 128, 2
MLP = """
shards: 4
data: {format: synthetic, shape: [784], classes: 10, train: {samples: 2560}}
model:
  layers: [dense: {units: 512}, relu, dense: {units: 512}, relu, dense: {units: 10}]
  loss: softmax_cross_entropy
optimizer: {momentum: {learning_rate: 0.01, momentum: 0.9}}
train: {batch_size: 128, epochs: 1000}
"""
SYNTHETIC_CIFAR = "data={format: synthetic, shape: [32, 32, 3], classes: 10, train: {samples: 2560}}"
# What is measured together, at which default interval. The second line contains the first one.
PARTS = (("weights and gradients", 100, ("weights", "gradients")),
         ("weights, gradients, updates, activations", 100, ("weights", "gradients", "updates", "activations")),
         ("inputs, filters", 500, ("inputs", "filters")),
         ("ranks", 10, ("ranks",)))


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def seconds_per_step(options, config, steps, sets, folder):
    run = pathlib.Path(tempfile.mkdtemp(dir=folder))
    command = [options.program, "train", config, "--run-dir", run, "--steps", steps, "--threads", 1, "--quiet"]
    for override in [f"summary.every_steps={steps}", "checkpoint.every_epochs=0", *sets]:
        command += ["--set", override]
    before = cpu_seconds()
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    if options.cpu_time:
        return (cpu_seconds() - before) / steps
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return BATCH / [row["samples_per_second"] for row in rows if "samples_per_second" in row][-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mlp = pathlib.Path(folder) / "mlp.yaml"
        mlp.write_text(MLP, encoding="utf-8")
        for name, config, steps, sets, without in (("MLP 784-512-512-10", mlp, 400, [], {"filters"}),
                                                   ("ResNet-20", ROOT / "examples/cifar10_resnet20.yaml", 20, [SYNTHETIC_CIFAR], set())):
            for _ in range(options.repeats):
                plain = seconds_per_step(options, config, steps, sets, folder)
                print(f"{name}: a step takes {1e3 * plain:.2f} ms")
                whole = 0
                for what, interval, parts in PARTS:
                    on = [f"summary.{part}={{every_steps: {EVERY}}}" for part in parts if part not in without]
                    each = (seconds_per_step(options, config, steps, [*sets, *on], folder) - plain) * EVERY
                    share = 100 * each / plain / interval
                    whole += share if what != PARTS[0][0] else 0
                    print(f"  {what}: {1e3 * each:.2f} ms each, {share:.2f} % every {interval} steps", flush=True)
                print(f"  everything at its default interval: {whole:.2f} %", flush=True)


if __name__ == "__main__":
    main()
