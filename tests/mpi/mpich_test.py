# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""With MPICH, where it is installed beside Open MPI (mpicxx.mpich, mpirun.mpich): the tests of communication on 1 to 4 ranks.

    mpich_test.py SOURCE BUILD

It builds in BUILD/mpich; all but the room `comm` is what ccache has of this build. Exit code 77 ("skipped") without MPICH or ccache.
"""
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE, BUILD = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
FOLDER = BUILD / "mpich"
# They compute for minutes, and communicate as those that are left.
LEFT_OUT = "CompressedReduction.*:ErrorFeedback.*:Allocation.*"
KEPT = ("CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER", "LOCKSTEP_FAULTS", "LOCKSTEP_PCH", "LOCKSTEP_WERROR", "LOCKSTEP_ISA_LEVELS")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*command, limit=120, **variables):
    print("+", *command, flush=True)
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit,
                          check=False, env=dict(os.environ, **variables))
    if done.returncode != 0:
        sys.exit(f"ended with {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


cache = dict(line.split("=", 1) for line in (BUILD / "CMakeCache.txt").read_text(encoding="utf-8").splitlines() if "=" in line and line[0].isalpha())
cache = {name.partition(":")[0]: value for name, value in cache.items()}
programs = {name: shutil.which(name) for name in ("mpicc.mpich", "mpicxx.mpich", "mpirun.mpich")}
missing = [name for name, path in programs.items() if path is None]
if missing:
    skip(f"not installed: {', '.join(missing)} (Debian's mpich, libmpich-dev)")
if not shutil.which("ccache"):
    skip("without ccache all of the library would be compiled again")
if cache.get("LOCKSTEP_SANITIZE"):
    skip("the library is built with a sanitizer")

run("cmake", "-S", SOURCE, "-B", FOLDER, "-G", "Ninja", "-DLOCKSTEP_CUDA=OFF", "-DLOCKSTEP_BENCH=OFF",
    *(f"-D{name}={cache[name]}" for name in KEPT if name in cache),
    f"-DMPI_C_COMPILER={programs['mpicc.mpich']}", f"-DMPI_CXX_COMPILER={programs['mpicxx.mpich']}",
    f"-DMPIEXEC_EXECUTABLE={programs['mpirun.mpich']}")
run("cmake", "--build", FOLDER, "--parallel", "2", "--target", "comm_mpi_test", limit=1500)

for ranks in ("1", "2", "3", "4"):
    said = run(programs["mpirun.mpich"], "-n", ranks, FOLDER / "tests" / "mpi" / "comm_mpi_test", LOCKSTEP_TEST_RANKS=ranks,
               GTEST_FILTER=f"*-{LEFT_OUT}", limit=240)
    assert f" tests on {ranks} ranks, 0 failed" in said, said[-3000:]
print("MPICH: communication on 1 to 4 ranks")
