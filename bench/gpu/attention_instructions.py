#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""attention_instructions.py [--nvcc NVCC] [--nvdisasm NVDISASM] [--arch sm_90] [--all]

Counts the instructions that a warp of the fused attention kernels executes per tile, by class, in the code that the
compiler makes of them, and what limits the rate: arithmetic, not a measurement. It needs nvcc and nvdisasm (both of
CUDA's toolkit; `pip install nvidia-cuda-nvdisasm` brings the second alone) and no GPU.

The path is that of a tile that no mask touches and that is not the last: the shortest way around the loop that passes
all its products and all its copies. --all also prints the instances with dropout and in float16."""
import argparse
import collections
import heapq
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FILES = ("fused_attention", "fused_attention_backward")
KERNELS = {"forward_kernel": "forward", "query_gradient_kernel": "gradient of queries",
           "key_gradients_kernel": "gradients of keys and values"}
CLASSES = {"HMMA": "mma", "LDSM": "ldmatrix", "LDGSTS": "copies", "MUFU": "special", "FFMA": "float", "FADD": "float", "FMUL": "float",
           "FMNMX": "float", "FSEL": "float", "FSETP": "float", "F2FP": "float", "LDS": "other shared", "SHFL": "other shared",
           "STS": "other shared", "STL": "spills", "LDL": "spills"}
COLUMNS = ("mma", "ldmatrix", "special", "float", "copies", "other shared", "spills", "other")

# Per multiprocessor and clock, of an A100 and an H100: operations of mma.sync on 16-bit numbers (the H100's mma.sync
# reaches about 0.62 of what wgmma does, 4096), bytes of shared memory, special functions, float32 operations, warp
# instructions. Data sheets of both; CUDA programming guide, "Arithmetic instructions"; Luo et al. 2024, "Benchmarking and dissecting the NVIDIA Hopper
# GPU architecture", for the 0.62.
RATES = {"A100": (2048, 128, 16, 64, 4), "H100": (2540, 128, 16, 128, 4)}


def run(command):
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def disassembled(options, folder):
    """{mangled kernel: lines}"""
    functions = {}
    for name in FILES:
        cubin = pathlib.Path(folder) / f"{name}.cubin"
        run([options.nvcc, "-std=c++20", "-cubin", f"-arch={options.arch}", "-O3", "-DNDEBUG", "--fmad=false",
             "--expt-relaxed-constexpr", "-I", SOURCE / "src", SOURCE / "src" / "kernels" / f"{name}_cuda.cu", "-o", cubin])
        for line in run([options.nvdisasm, "-c", cubin]).splitlines():
            if begins := re.match(r"\.text\.(\w+):", line):
                lines = functions.setdefault(begins[1], [])
            elif functions:
                lines.append(line)
    return functions


class Blocks:
    """The basic blocks of a function: instructions, and where control goes."""

    def __init__(self, lines):
        self.code, self.targets, labels = [[]], [[]], {}
        for line in lines:
            if label := re.match(r"(\.L_x_\d+):", line):
                self._begin(falls=True)
                labels[label[1]] = len(self.code) - 1
            elif found := re.match(r"\s+/\*[0-9a-f]+\*/\s+(@!?U?P\w+\s+)?([A-Z0-9]+)(\S*)\s*(.*)", line):
                guard, name, _, rest = found.groups()
                self.code[-1].append(name)
                if name in ("BRA", "EXIT", "RET"):
                    if target := re.search(r"`\((\.L_x_\d+)\)", rest):
                        self.targets[-1].append(target[1])
                    conditional = guard is not None or re.match(r"!?U?P\w+,", rest) is not None
                    self._begin(falls=conditional)
        self.targets = [[labels[one] if isinstance(one, str) else one for one in targets if not isinstance(one, str) or one in labels]
                        for targets in self.targets]

    def _begin(self, falls):
        if falls:
            self.targets[-1].append(len(self.code))
        self.code.append([])
        self.targets.append([])

    def loop(self):
        """(first, last) block of the smallest loop with all tensor core instructions of any loop."""
        loops = [(target, i) for i, targets in enumerate(self.targets) for target in targets if target <= i]
        return max(loops, key=lambda one: (sum(self.code[i].count("HMMA") for i in range(one[0], one[1] + 1)), one[0] - one[1]))

    def shortest(self, start, end, first, last):
        """The cheapest path of blocks after `start` up to and including `end`, within the loop."""
        queue, seen = [(0, start, ())], set()
        while queue:
            cost, at, path = heapq.heappop(queue)
            if at == end and path:
                return path
            if at in seen:
                continue
            seen.add(at)
            for target in self.targets[at]:
                if first <= target <= last and (target > at):
                    heapq.heappush(queue, (cost + len(self.code[target]), target, (*path, target)))
        sys.exit("the loop has another form than this program knows")

    def counts(self):
        first, last = self.loop()
        wanted = [i for i in range(first, last + 1) if {"HMMA", "LDGSTS"} & set(self.code[i])]
        path, at = [first], first
        for stop in [*wanted, last]:
            if stop != at:
                path += self.shortest(at, stop, first, last)
                at = stop
        return collections.Counter(CLASSES.get(name, "other") for i in path for name in self.code[i])


def named(mangled):
    """(kernel, type, head size, dropout, bytes of shared memory)"""
    text = run(["c++filt", mangled])
    found = re.search(r"(\w+_kernel)<lockstep::(\w+), (\d+), (\w+), (\d+)>", text)
    return (found[1], found[2], int(found[3]), found[4] == "true", int(found[5])) if found else None


def clocks(counts, rates):
    """Clocks of a multiprocessor per warp and tile, by what limits."""
    tensor, shared, special, floats, issued = rates
    return {"tensor cores": counts["mma"] * 4096 / tensor,
            "shared memory": (counts["ldmatrix"] * 512 + counts["copies"] * 512 + counts["other shared"] * 128) / shared,
            "special": counts["special"] * 32 / special,
            "float": counts["float"] * 32 / floats,
            "issue": sum(counts.values()) / issued}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument("--nvdisasm", default=shutil.which("nvdisasm") or "/usr/local/cuda/bin/nvdisasm")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    for tool in (options.nvcc, options.nvdisasm):
        if shutil.which(tool) is None:
            sys.exit(f"there is no {tool}; --nvcc and --nvdisasm name them")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for mangled, lines in disassembled(options, folder).items():
            name = named(mangled)
            if name is None or name[0] not in KERNELS or (not options.all and (name[1] != "BFloat16" or name[3])):
                continue
            rows.append((name, Blocks(lines).counts()))
    rows.sort(key=lambda row: (list(KERNELS).index(row[0][0]), *row[0][1:4]))
    print("| kernel | heads of | " + " | ".join(COLUMNS) + " | " + " | ".join(f"{gpu}: tensor time / longest" for gpu in RATES) + " |")
    print("|---" * (len(COLUMNS) + 2 + len(RATES)) + "|")
    for (kernel, kind, head, dropout, _), counts in rows:
        title = KERNELS[kernel] + (f", {kind}" if options.all else "") + (", dropout" if dropout else "")
        limits = []
        for rates in RATES.values():
            times = clocks(counts, rates)
            longest = max(times, key=times.get)
            limits.append(f"{times['tensor cores'] / times[longest]:.2f} ({longest})")
        print(f"| {title} | {head} | " + " | ".join(str(counts[column]) for column in COLUMNS) + " | " + " | ".join(limits) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
