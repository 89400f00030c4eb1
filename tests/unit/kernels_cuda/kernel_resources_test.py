#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Registers, spills and shared memory of the hot GPU kernels, as the compiler reports them (-Xptxas -v) for compute
capability 9.0, against the ceilings in kernel_resources.csv, and their vector accesses to global memory, in the compiler's
PTX, against the floors there. No GPU is needed; without nvcc the test is skipped.

    kernel_resources_test.py NVCC SOURCE_FOLDER [--print | --write]

A ceiling is what a kernel takes now. More registers or shared memory means fewer threads per multiprocessor, a spill means
memory traffic in the innermost loop: who passes a ceiling measures, and then raises it with --write. A floor is the number
of reads and writes of 16 and of 8 bytes in a kernel's code now: with fewer, it reads one number at a time somewhere.
--print prints the table of docs/gpu_counts.md."""
import concurrent.futures
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

CEILINGS = pathlib.Path(__file__).with_name("kernel_resources.csv")
FILES = ("fused_attention", "fused_attention_backward", "hopper_attention", "norm", "loss", "loss_terms", "recurrent", "elementwise", "group_norm",
         "embedding", "pool", "spatial", "sequence")
HOPPER = ("hopper_attention",)  # LOCKSTEP_HOPPER_SOURCES of src/cuda_sources.cmake
CEILED = ("registers", "spilled_bytes", "shared_bytes")
FLOORED = ("loads_of_16_bytes", "loads_of_8_bytes", "stores_of_16_bytes", "stores_of_8_bytes")
FIELDS = CEILED + FLOORED
SKIPPED = 77


def compile_one(nvcc, source, name, folder):
    """The compiler's report about a file, with the flags that src/CMakeLists.txt gives it, and its PTX."""
    target = "-gencode=arch=compute_90a,code=sm_90a" if name in HOPPER else "-arch=sm_90"
    command = [nvcc, "-std=c++20", "-cubin", target, "-O3", "-DNDEBUG", "--fmad=false", "--expt-relaxed-constexpr",
               "-Xptxas", "-v", "--keep", "--keep-dir", folder, "-I", str(source / "src"), str(source / "src" / "kernels" / f"{name}_cuda.cu"),
               "-o", f"{folder}/{name}.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stderr + done.stdout, (pathlib.Path(folder) / f"{name}_cuda.ptx").read_text(encoding="utf-8")


def plain_names(mangled):
    """{mangled: "query_gradient_kernel<BFloat16, 64>"}"""
    lines = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout
    names = {}
    for one, text in zip(mangled, lines.splitlines()):
        text = text.replace("(anonymous namespace)", "anonymous").removeprefix("void ")
        depth = 0
        for end, letter in enumerate(text):  # up to the parameters
            depth += {"<": 1, ">": -1}.get(letter, 0)
            if letter == "(" and depth == 0:
                break
        text = re.sub(r"[\w:]*::", "", text[:end])
        names[one] = re.sub(r"\((?:int|bool|unsigned int|long)\)", "", text)
    return names


def count_accesses(ptx, found):
    """Counts the vector accesses of each kernel's code. An address space other than global is not counted."""
    kernel = None
    for line in ptx.splitlines():
        if begins := re.search(r"\.entry (\w+)", line):
            kernel = found.get(begins[1])
        elif kernel is not None and (access := re.match(r"\s*(?:@\S+ )?(ld|st)\.global\S*\.v(\d)\.[busf](\d+)\s", line)):
            field = f"{'loads' if access[1] == 'ld' else 'stores'}_of_{int(access[2]) * int(access[3]) // 8}_bytes"
            if field in kernel:
                kernel[field] += 1


def found_in(report, ptx, file):
    """{kernel: {field: value}}"""
    found, kernel = {}, None
    for line in report.splitlines():
        if begins := re.search(r"Compiling entry function '(\w+)'", line):
            kernel = found.setdefault(begins[1], dict.fromkeys(FIELDS, 0))
        elif kernel is not None and (spills := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)):
            kernel["spilled_bytes"] = int(spills[1]) + int(spills[2])
        elif kernel is not None and (used := re.search(r"Used (\d+) registers", line)):
            kernel["registers"] = int(used[1])
            shared = re.search(r"(\d+) bytes smem", line)
            kernel["shared_bytes"] = int(shared[1]) if shared else 0
    count_accesses(ptx, found)
    names = plain_names(list(found))
    for mangled, name in names.items():  # the last argument of these is their dynamic shared memory
        if file.startswith("fused_attention") and (dynamic := re.search(r", (\d+)>$", name)):
            found[mangled]["shared_bytes"] += int(dynamic[1])
    return {f"{file}: {names[mangled]}": resources for mangled, resources in found.items()}


def compile_all(nvcc, source):
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        reports = pool.map(lambda name: compile_one(nvcc, source, name, folder), FILES)
        return {kernel: resources for name, report in zip(FILES, reports)
                for kernel, resources in found_in(*report, name).items()}


def version_of(nvcc):
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"release ([\d.]+)", text)[1]


def write(found, version):
    with CEILINGS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", *FIELDS, "nvcc"])
        for kernel, resources in sorted(found.items()):
            writer.writerow([kernel, *(resources[field] for field in FIELDS), version])


def print_table(found):
    print("| kernel | " + " | ".join(field.replace("_", " ") for field in FIELDS) + " |\n|---" + "|---" * len(FIELDS) + "|")
    for kernel, resources in sorted(found.items()):
        print(f"| `{kernel}` | " + " | ".join(str(resources[field]) for field in FIELDS) + " |")


def main():
    nvcc, source = sys.argv[1], pathlib.Path(sys.argv[2])
    if not nvcc or nvcc.endswith("NOTFOUND"):
        print("SKIPPED: there is no nvcc, so the resources of the GPU kernels are not known")
        return SKIPPED
    found, version = compile_all(nvcc, source), version_of(nvcc)
    if "--write" in sys.argv:
        write(found, version)
        return 0
    if "--print" in sys.argv:
        print_table(found)
        return 0
    with CEILINGS.open(encoding="utf-8", newline="") as file:
        ceilings = {row["kernel"]: row for row in csv.DictReader(file)}
    other = {row["nvcc"] for row in ceilings.values()} - {version}
    if other:
        print(f"SKIPPED: the ceilings are those of nvcc {', '.join(sorted(other))}, and this is nvcc {version}")
        return SKIPPED
    failures = [f"{kernel}: no such kernel any more" for kernel in ceilings.keys() - found.keys()]
    failures += [f"{kernel}: has no ceiling" for kernel in found.keys() - ceilings.keys()]
    for kernel in sorted(ceilings.keys() & found.keys()):
        for field in FIELDS:
            now, limit = found[kernel][field], int(ceilings[kernel][field])
            if now > limit if field in CEILED else now < limit:
                failures.append(f"{kernel}: {now} {field.replace('_', ' ')}, the {'ceiling' if field in CEILED else 'floor'} is {limit}")
    for failure in failures:
        print(failure)
    if failures:
        print(f"Measure what that costs; then {sys.argv[0]} {nvcc} {source} --write")
        return 1
    print(f"{len(found)} kernels are at or below their ceilings, with all their wide accesses (nvcc {version})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
