#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The nets of step_bench in PyTorch, for comparison: training steps per second on the CPU or a GPU.

    pytorch_step.py [--net NAME[,NAME]] [--batch N] [--processes P] [--seconds S] [--json FILE]
                    [--device cuda] [--tf32] [--amp bfloat16|float16] [--compile] [--compile-mode MODE] [--deterministic]
    pytorch_step.py --gemm TYPE[,TYPE] [--device cuda] [--tf32] [--json FILE]

One thread per process. With --processes 2 or more, DistributedDataParallel over Gloo, with --batch samples per process.
Data are synthetic and in memory; a step is forward, loss, backward, update. The output has median and minimum over the
steps, of the slowest process. On a GPU a time is that of ten asynchronously queued steps, divided by ten. Images are
channels last. --amp is torch.autocast around the forward pass and the loss, with a GradScaler for float16 (on a GPU; the
steps that the scaler skips at the start precede the measured ones). Attention is F.scaled_dot_product_attention if
PyTorch has it (2.0), otherwise a masked softmax. Without --deterministic, cuDNN may benchmark its algorithms
(cudnn.benchmark), and updates are fused if PyTorch supports it. --gemm measures the rate of a large matrix product in each
type instead. Needs torch; nothing else of the project does.
"""
import argparse
import inspect
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
    """Two layers of 128 units over 50 steps, the last state classified; words: preceded by an embedding."""

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


class Attention(nn.Module):
    """Causal self-attention with its projections."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        samples, steps, width = x.shape
        q, k, v = self.into(x).view(samples, steps, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.ones(steps, steps, dtype=torch.bool, device=x.device).triu(1)
            scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
            y = scores.masked_fill(mask, float("-inf")).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(samples, steps, width))


class TransformerBlock(nn.Module):
    """Pre-norm: attention and a feed-forward net, each added to its input."""

    def __init__(self, width, heads, gelu):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate=gelu), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.feed_forward(self.norms[1](x))


class Transformer(nn.Module):
    def __init__(self, words, width, heads, blocks, steps, gelu="tanh", head_bias=False):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.rand(steps, width))
        self.blocks = nn.Sequential(*[TransformerBlock(width, heads, gelu) for _ in range(blocks)])
        self.norm = nn.LayerNorm(width)
        self.dense = nn.Linear(width, words, bias=head_bias)

    def forward(self, x):
        return self.dense(self.norm(self.blocks(self.embedding(x) + self.positions))).flatten(0, 1)


def transformer():
    return Transformer(65, 128, 4, 4, 128, "none", True)


def gpt2():
    return Transformer(50304, 768, 12, 12, 1024)


def gpt2_tiny():
    return Transformer(256, 64, 4, 2, 16)


# The vocabulary sizes of nets on words.
WORDS = {"lstm": 10000, "transformer": 65, "gpt2": 50304, "gpt2_tiny": 256}
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
    "gpt2": (gpt2, (1024,), 8, True),
    "gpt2_tiny": (gpt2_tiny, (16,), 4, True),
}


def loss_scaler(arguments):
    """Scales the loss if gradients are float16; does nothing otherwise."""
    wanted = arguments.amp == "float16"
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(arguments.device, enabled=wanted)
    return torch.cuda.amp.GradScaler(enabled=wanted)


def measure(name, batch, processes, arguments):
    make, shape, _, adam = NETS[name]
    torch.manual_seed(1)
    on_gpu = arguments.device == "cuda"
    model = make().to(arguments.device)
    x, y = torch.rand(batch, *shape, device=arguments.device), torch.randint(0, 10, (batch,), device=arguments.device)
    if name in WORDS:
        x = torch.randint(0, WORDS[name], (batch, *shape), device=arguments.device)
    if make in (transformer, gpt2, gpt2_tiny):  # one label per step
        y = torch.randint(0, WORDS[name], (batch * shape[0],), device=arguments.device)
    if len(shape) == 3:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if processes > 1:
        model = nn.parallel.DistributedDataParallel(model)
    kind, options = (torch.optim.Adam, {"lr": 1e-4}) if adam else (torch.optim.SGD, {"lr": 1e-3, "momentum": 0.9})
    if on_gpu and "fused" in inspect.signature(kind).parameters:
        options["fused"] = True
    optimizer = kind(model.parameters(), **options)

    if arguments.compile:
        model = torch.compile(model, mode=None if arguments.compile_mode == "default" else arguments.compile_mode)
    scaler = loss_scaler(arguments)
    amp_type = getattr(torch, arguments.amp or "bfloat16")

    def step():
        for _ in range(10 if on_gpu else 1):
            optimizer.zero_grad()
            with torch.autocast(arguments.device, dtype=amp_type, enabled=arguments.amp is not None):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            if arguments.clip is not None:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), arguments.clip)
            scaler.step(optimizer)
            scaler.update()
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


def allow(arguments):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = arguments.tf32
    torch.backends.cudnn.benchmark = not arguments.deterministic
    torch.use_deterministic_algorithms(arguments.deterministic, warn_only=True)


def gemm_rate(name, device):
    """FLOP/s of a large square product: the best of several measurements of a few products each."""
    size, times = (8192, 10) if device == "cuda" else (512, 1)
    a, b = (torch.rand(size, size, device=device).to(getattr(torch, name)) for _ in range(2))
    best = 0.0
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(times):
            a @ b
        if device == "cuda":
            torch.cuda.synchronize()
        best = max(best, 2.0 * times * size ** 3 / (time.perf_counter() - start))
    return best


def write_json(path, content):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"torch": torch.__version__, "compiles": hasattr(torch, "compile"), **content}, file, indent=2)
        file.write("\n")


def gemm(arguments):
    rates = {}
    for name in arguments.gemm.split(","):
        rates[name] = gemm_rate(name, arguments.device)
        print(f"{name:<10} {1e-12 * rates[name]:>10.2f} TFLOP/s", flush=True)
    if arguments.json:
        write_json(arguments.json, {"gemm_flops": rates})


def work(process, processes, arguments):
    torch.set_num_threads(1)
    allow(arguments)
    if processes > 1:
        dist.init_process_group("gloo", rank=process, world_size=processes)
    rows = []
    for name in arguments.net.split(","):
        batch = arguments.batch or NETS[name][2]
        times, processor = measure(name, batch, processes, arguments)
        row = {"net": name, "compute": arguments.amp or "float32", "batch": batch * processes, "processes": processes, "steps": len(times),
               "step_median_s": statistics.median(times), "step_minimum_s": min(times), "step_processor_s": processor}
        row["samples_per_s"] = row["batch"] / row["step_median_s"]
        row["samples_per_s_at_minimum"] = row["batch"] / row["step_minimum_s"]
        rows.append(row)
        if process == 0:
            print(f"{name:<11} {row['batch']:>6} {processes:>9} {1e3 * row['step_median_s']:>10.3f} "
                  f"{1e3 * row['step_minimum_s']:>10.3f} {1e3 * processor:>10.3f} {row['samples_per_s']:>11.0f} "
                  f"{row['samples_per_s_at_minimum']:>11.0f}", flush=True)
    if process == 0 and arguments.json:
        write_json(arguments.json, {"rows": rows})
    if processes > 1:
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--net", default=",".join(name for name in NETS if name not in ("resnet50", "gpt2", "gpt2_tiny")),
                        help="names, separated by commas: " + ", ".join(NETS))
    parser.add_argument("--batch", type=int, help="samples per process; default: the net's own")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3, help="duration of each net's measurement")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--tf32", action="store_true", help="on a GPU: products and convolutions may use TF32")
    parser.add_argument("--amp", choices=["bfloat16", "float16"], help="mixed precision; default: float32")
    parser.add_argument("--clip", type=float, help="limit of the norm of all gradients")
    parser.add_argument("--compile", action="store_true", help="torch.compile the net")
    parser.add_argument("--compile-mode", default="default", help="torch.compile's mode, such as reduce-overhead, which records CUDA graphs")
    parser.add_argument("--deterministic", action="store_true", help="use only deterministic algorithms, where PyTorch has them")
    parser.add_argument("--gemm", help="measure a matrix product in these types, separated by commas, instead of nets")
    parser.add_argument("--json", help="file for the results")
    arguments = parser.parse_args()
    if arguments.gemm:
        for name in arguments.gemm.split(","):
            if name not in ("float32", "bfloat16", "float16"):
                parser.error(f"--gemm: '{name}' is not one of float32, bfloat16, float16")
        allow(arguments)
        return gemm(arguments)
    for name in arguments.net.split(","):
        if name not in NETS:
            parser.error(f"no net '{name}'; known: {', '.join(NETS)}")
    if arguments.amp == "float16" and arguments.device == "cpu":
        parser.error("--amp float16 needs a GPU: on a CPU PyTorch's autocast supports bfloat16")
    if arguments.compile and not hasattr(torch, "compile"):
        parser.error(f"PyTorch {torch.__version__} has no torch.compile, which needs 2.0")
    print(f"PyTorch {torch.__version__}\n{'net':<11} {'batch':>6} {'processes':>9} {'median ms':>10} {'minimum':>10} {'cpu ms':>10} "
          f"{'samples/s':>11} {'at minimum':>11}", flush=True)
    if arguments.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # needed for a deterministic cuBLAS
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    if arguments.processes == 1:
        work(0, 1, arguments)
    else:
        mp.spawn(work, args=(arguments.processes, arguments), nprocs=arguments.processes)
    return None


if __name__ == "__main__":
    sys.exit(main())
