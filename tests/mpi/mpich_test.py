# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""With MPICH, where it is installed beside Open MPI (mpicxx.mpich, mpirun.mpich): communication, estimators, and a program that has
initialised MPI itself.

    mpich_test.py SOURCE BUILD

It configures BUILD/mpich as a user of MPICH does, and builds the room `comm` there, the only one that knows MPI. What BUILD, which is built
with Ninja, has of the other rooms and of the tests is linked with it. Exit code 77 ("skipped") without MPICH.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
FOLDER = BUILD / "mpich"
COMM = "src/comm/liblockstep_comm.a"
# They compute for minutes, and communicate as those that are left.
LEFT_OUT = "CompressedReduction.*:ErrorFeedback.*:Allocation.*"
KEPT = ("CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER", "LOCKSTEP_FAULTS", "LOCKSTEP_PCH", "LOCKSTEP_WERROR", "LOCKSTEP_ISA_LEVELS")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*command, limit=120, cwd=None, **variables):
    print("+", *command[:3], "..." if len(command) > 3 else "", flush=True)
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit,
                          check=False, cwd=cwd, env=dict(os.environ, **variables))
    if done.returncode != 0:
        sys.exit(f"ended with {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


cache = dict(line.split("=", 1) for line in (BUILD / "CMakeCache.txt").read_text(encoding="utf-8").splitlines() if "=" in line and line[0].isalpha())
cache = {name.partition(":")[0]: value for name, value in cache.items()}
programs = {name: shutil.which(name) for name in ("mpicc.mpich", "mpicxx.mpich", "mpirun.mpich")}
missing = [name for name, path in programs.items() if path is None]
if missing:
    skip(f"not installed: {', '.join(missing)} (Debian's mpich, libmpich-dev)")
if cache.get("LOCKSTEP_SANITIZE"):
    skip("the library is built with a sanitizer")

run("cmake", "-S", SOURCE, "-B", FOLDER, "-G", "Ninja", "-DLOCKSTEP_CUDA=OFF", "-DLOCKSTEP_BENCH=OFF",
    *(f"-D{name}={cache[name]}" for name in KEPT if name in cache),
    f"-DMPI_C_COMPILER={programs['mpicc.mpich']}", f"-DMPI_CXX_COMPILER={programs['mpicxx.mpich']}",
    f"-DMPIEXEC_EXECUTABLE={programs['mpirun.mpich']}")
run("cmake", "--build", FOLDER, "--parallel", "2", "--target", "lockstep_comm", limit=600)


def commands(target):
    """Those that BUILD makes the target with, as words; the last one links it."""
    return [[word for word in shlex.split(line) if word not in (":", "&&")]
            for line in run("ninja", "--quiet", "-C", BUILD, "-t", "commands", target).splitlines()]


def for_mpich(words, **changed):
    """A command of BUILD with MPICH's compiler, which knows MPICH's headers and libraries."""
    kept, words = [], iter(words[next(at for at, word in enumerate(words) if word == cache["CMAKE_CXX_COMPILER"]) + 1:])
    for word in words:
        group = [word, next(words)] if word in ("-isystem", "-o", "-MF", "-MT") else [word]
        if not any("openmpi" in part and not part.startswith("-Wl,") for part in group):
            kept += [str(changed.get(part, part)) for part in group]
    return [programs["mpicxx.mpich"], *kept]


def linked(target, calls_mpi=""):
    """The program of BUILD/tests/mpi with the room comm for MPICH. `calls_mpi`: a source that includes mpi.h, compiled for it, too."""
    changed = {f"tests/mpi/{target}": FOLDER / target, COMM: FOLDER / COMM}
    if calls_mpi:
        name = f"tests/mpi/CMakeFiles/{target}.dir/{calls_mpi}.o"
        compiled = next(words for words in commands(f"tests/mpi/{target}") if name in words)
        changed |= {name: FOLDER / f"{calls_mpi}.o", f"{name}.d": FOLDER / f"{calls_mpi}.d"}
        run(*for_mpich(compiled, **changed), cwd=BUILD)
    run(*for_mpich(commands(f"tests/mpi/{target}")[-1], **changed), cwd=BUILD)
    return FOLDER / target


# By number of ranks. A rank of MPICH that waits keeps its core busy, so that more ranks than cores take long.
MOST = f"*-{LEFT_OUT}"
COMMUNICATION = {1: MOST, 2: MOST, 3: MOST, 4: "MpiGroup*:Agree*:StartupCheck*:Communicators*"}
for target, calls_mpi, runs in (("comm_mpi_test", "mpi_group_test.cpp", COMMUNICATION), ("estimator_mpi_test", "", {1: "Estimator.*", 3: "Estimator.*"})):
    program = linked(target, calls_mpi)
    for ranks, tests in runs.items():
        said = run(programs["mpirun.mpich"], "-n", ranks, program, LOCKSTEP_TEST_RANKS=str(ranks), GTEST_FILTER=tests, limit=240)
        assert f" tests on {ranks} ranks, 0 failed" in said, said[-3000:]
assert re.search(r"; oneDNN [^;\n]*, MPICH [0-9.]+$", said, re.MULTILINE), said[:3000]
program = linked("guest_program", "guest_program.cpp")
said = []
for ranks, level in (("1", "single"), ("3", "multiple")):
    with tempfile.TemporaryDirectory() as folder:
        said.append(run(programs["mpirun.mpich"], "-n", ranks, program, level, "train", cwd=folder))
digests = {re.search(r"digests (.*)", text).group(1) for text in said}
assert len(digests) == 1, digests
print("MPICH: communication on 1 to 4 ranks, estimators on 1 and 3; a guest's digest is the same on 1 and 3")
