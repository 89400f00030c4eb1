# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Registers, spills and shared memory of the hot GPU kernels, as the compiler reports them (-Xptxas -v) for compute
capability 9.0, against the ceilings in kernel_resources.csv. No GPU is needed; without nvcc the test is skipped.

    kernel_resources_test.py NVCC SOURCE_FOLDER [--print | --write]

A ceiling is what a kernel takes now. More registers or shared memory means fewer threads per multiprocessor, a spill means
memory traffic in the innermost loop: who passes a ceiling measures, and then raises it with --write. --print prints the
table of docs/gpu.md."""
import concurrent.futures
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

CEILINGS = pathlib.Path(__file__).with_name("kernel_resources.csv")
FILES = ("fused_attention", "fused_attention_backward", "norm", "loss", "loss_terms", "recurrent")
FIELDS = ("registers", "spilled_bytes", "shared_bytes")
SKIPPED = 77


def compile_one(nvcc, source, name, folder):
    """The compiler's report about a file, of the flags that src/CMakeLists.txt gives it."""
    command = [nvcc, "-std=c++20", "-cubin", "-arch=sm_90", "-O3", "-DNDEBUG", "--fmad=false", "--expt-relaxed-constexpr",
               "-Xptxas", "-v", "-I", str(source / "src"), str(source / "src" / "kernels" / f"{name}_cuda.cu"),
               "-o", f"{folder}/{name}.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stderr + done.stdout


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


def found_in(report, file):
    """{kernel: {registers, spilled_bytes, shared_bytes}}"""
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
    names = plain_names(list(found))
    for mangled, name in names.items():  # the last argument of these is their dynamic shared memory
        if file.startswith("fused_attention") and (dynamic := re.search(r", (\d+)>$", name)):
            found[mangled]["shared_bytes"] += int(dynamic[1])
    return {f"{file}: {names[mangled]}": resources for mangled, resources in found.items()}


def compile_all(nvcc, source):
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        reports = pool.map(lambda name: compile_one(nvcc, source, name, folder), FILES)
        return {kernel: resources for name, report in zip(FILES, reports)
                for kernel, resources in found_in(report, name).items()}


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
    print("| kernel | registers | spilled bytes | shared bytes |\n|---|---|---|---|")
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
            if found[kernel][field] > int(ceilings[kernel][field]):
                failures.append(f"{kernel}: {found[kernel][field]} {field.replace('_', ' ')}, the ceiling is {ceilings[kernel][field]}")
    for failure in failures:
        print(failure)
    if failures:
        print(f"Measure what that costs; then {sys.argv[0]} {nvcc} {source} --write")
        return 1
    print(f"{len(found)} kernels are at or below their ceilings (nvcc {version})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
