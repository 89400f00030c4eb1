#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The nets of step_bench in PyTorch, for comparison: training steps per second on the CPU.

    pytorch_step.py [--net NAME[,NAME]] [--batch N] [--processes P] [--seconds S] [--json FILE]
                    [--device cuda] [--tf32] [--compile]

One thread per process. With --processes 2 or more, DistributedDataParallel over Gloo, --batch samples in each process.
Data are synthetic and in memory; a step is forward, loss, backward, update. Median and minimum over the steps, of the
slowest process. On a GPU a time is that of ten steps that the host may run ahead in, divided by ten. Needs torch; nothing
else of the project does.
"""
import argparse
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut; a 1x1 convolution where the shape changes."""

    def __init__(self, in_c, out_c, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(in_c, out_c, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_c)
        self.conv2 = nn.Conv2d(out_c, out_c, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_c)
        self.shortcut = nn.Identity()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(in_c, out_c, 1, stride, bias=False), nn.BatchNorm2d(out_c))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def resnet20():
    blocks, in_c = [], 16
    for stage, out_c in enumerate((16, 32, 64)):
        for block in range(3):
            blocks.append(Block(in_c, out_c, 2 if stage > 0 and block == 0 else 1))
            in_c = out_c
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions and a shortcut."""

    def __init__(self, in_c, filters, stride, first):
        super().__init__()
        out_c = 4 * filters
        self.body = nn.Sequential(
            nn.Conv2d(in_c, filters, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(),
            nn.Conv2d(filters, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(),
            nn.Conv2d(filters, out_c, 1, bias=False), nn.BatchNorm2d(out_c))
        self.shortcut = nn.Identity()
        if first:
            self.shortcut = nn.Sequential(nn.Conv2d(in_c, out_c, 1, stride, bias=False), nn.BatchNorm2d(out_c))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def resnet50():
    blocks, in_c = [], 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for block in range(count):
            filters = 64 << stage
            blocks.append(Bottleneck(in_c, filters, 2 if stage > 0 and block == 0 else 1, block == 0))
            in_c = 4 * filters
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                         *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def digits():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(),
                         nn.Dropout(0.25), nn.Linear(1024, 10))


class Recurrent(nn.Module):
    """Two layers of 128 units over 50 steps, the last state to a class; words: an embedding before them."""

    def __init__(self, cell, words):
        super().__init__()
        self.embedding = nn.Embedding(words, 128) if words else nn.Identity()
        self.cell = cell(128, 128, 2, batch_first=True)
        self.dense = nn.Linear(128, 10)

    def forward(self, x):
        return self.dense(self.cell(self.embedding(x))[0][:, -1])


def lstm():
    return Recurrent(nn.LSTM, 10000)


def lstm_alone():
    return Recurrent(nn.LSTM, 0)


def gru_alone():
    return Recurrent(nn.GRU, 0)
class TransformerBlock(nn.Module):
    """Causal attention with 4 heads and a feed-forward net, each added to what goes in."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(128, 4, batch_first=True)
        self.norms = nn.ModuleList([nn.LayerNorm(128), nn.LayerNorm(128)])
        self.feed_forward = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))
        self.register_buffer("mask", torch.triu(torch.ones(128, 128, dtype=torch.bool), 1))

    def forward(self, x):
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, attn_mask=self.mask, need_weights=False)[0]
        return x + self.feed_forward(self.norms[1](x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(65, 128)
        self.positions = nn.Parameter(torch.rand(128, 128))
        self.blocks = nn.Sequential(*[TransformerBlock() for _ in range(4)])
        self.norm = nn.LayerNorm(128)
        self.dense = nn.Linear(128, 65)

    def forward(self, x):
        return self.dense(self.norm(self.blocks(self.embedding(x) + self.positions))).flatten(0, 1)


def transformer():
    return Transformer()


# name: (model, shape of one sample, usual batch, Adam instead of momentum)
NETS = {
    "resnet20": (resnet20, (3, 32, 32), 32, False),
    "resnet50": (resnet50, (3, 224, 224), 64, False),
    "lenet": (lenet, (1, 28, 28), 128, False),
    "mlp": (mlp, (784,), 128, False),
    "mlp_adam": (mlp, (784,), 128, True),
    "digits": (digits, (1, 8, 8), 64, True),
    "lstm": (lstm, (50,), 64, False),
    "lstm_alone": (lstm_alone, (50, 128), 64, False),
    "gru_alone": (gru_alone, (50, 128), 64, False),
    "transformer": (transformer, (128,), 16, True),
}


def measure(name, batch, processes, arguments):
    make, shape, _, adam = NETS[name]
    torch.manual_seed(1)
    on_gpu = arguments.device == "cuda"
    model = make().to(arguments.device)
    x, y = torch.rand(batch, *shape, device=arguments.device), torch.randint(0, 10, (batch,), device=arguments.device)
    if name == "lstm":
        x = torch.randint(0, 10000, (batch, *shape), device=arguments.device)
    if name == "transformer":
        x = torch.randint(0, 65, (batch, *shape), device=arguments.device)
        y = torch.randint(0, 65, (batch * shape[0],), device=arguments.device)
    if len(shape) == 3:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if processes > 1:
        model = nn.parallel.DistributedDataParallel(model)
    parameters = model.parameters()
    optimizer = torch.optim.Adam(parameters, 1e-4) if adam else torch.optim.SGD(parameters, 1e-3, momentum=0.9)

    if arguments.compile:
        model = torch.compile(model)

    def step():
        for _ in range(10 if on_gpu else 1):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()

    for _ in range(3):
        step()
    start = time.perf_counter()
    step()
    steps = torch.tensor([max(5, int(arguments.seconds / (time.perf_counter() - start)))])
    if processes > 1:
        dist.broadcast(steps, 0)
    times, processor = [], []
    for _ in range(int(steps)):
        start, start_processor = time.perf_counter(), time.process_time()
        step()
        times.append((time.perf_counter() - start) / (10 if on_gpu else 1))
        processor.append((time.process_time() - start_processor) / (10 if on_gpu else 1))
    times = torch.tensor(times, dtype=torch.float64)
    if processes > 1:
        dist.all_reduce(times, dist.ReduceOp.MAX)
    return times.tolist(), statistics.median(processor)


def work(process, processes, arguments):
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = arguments.tf32
    if processes > 1:
        dist.init_process_group("gloo", rank=process, world_size=processes)
    rows = []
    for name in arguments.net.split(","):
        batch = arguments.batch or NETS[name][2]
        times, processor = measure(name, batch, processes, arguments)
        row = {"net": name, "batch": batch * processes, "processes": processes, "steps": len(times),
               "step_median_s": statistics.median(times), "step_minimum_s": min(times), "step_processor_s": processor}
        row["samples_per_s"] = row["batch"] / row["step_median_s"]
        row["samples_per_s_at_minimum"] = row["batch"] / row["step_minimum_s"]
        rows.append(row)
        if process == 0:
            print(f"{name:<11} {row['batch']:>6} {processes:>9} {1e3 * row['step_median_s']:>10.3f} "
                  f"{1e3 * row['step_minimum_s']:>10.3f} {1e3 * processor:>10.3f} {row['samples_per_s']:>11.0f} "
                  f"{row['samples_per_s_at_minimum']:>11.0f}", flush=True)
    if process == 0 and arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "rows": rows}, file, indent=2)
            file.write("\n")
    if processes > 1:
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--net", default=",".join(name for name in NETS if name != "resnet50"), help="names, with commas: " + ", ".join(NETS))
    parser.add_argument("--batch", type=int, help="samples per process; the net's own if absent")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3, help="how long each net is measured")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--tf32", action="store_true", help="on a GPU: products and convolutions may use TF32")
    parser.add_argument("--compile", action="store_true", help="torch.compile the net")
    parser.add_argument("--json", help="file for the results")
    arguments = parser.parse_args()
    for name in arguments.net.split(","):
        if name not in NETS:
            parser.error(f"no net '{name}'; known: {', '.join(NETS)}")
    print(f"PyTorch {torch.__version__}\n{'net':<11} {'batch':>6} {'processes':>9} {'median ms':>10} {'minimum':>10} {'cpu ms':>10} "
          f"{'samples/s':>11} {'at minimum':>11}", flush=True)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    if arguments.processes == 1:
        work(0, 1, arguments)
    else:
        mp.spawn(work, args=(arguments.processes, arguments), nprocs=arguments.processes)


if __name__ == "__main__":
    sys.exit(main())
