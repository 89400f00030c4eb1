#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A set in memory that the ranks of a host share, compared with a copy per rank: memory, and time until the first step.

    bench/shared_data.py [--build DIR] [--folder DIR] [--samples N] [--ranks 1,2,4] [--rounds N]

Images of 32 x 32 x 3 bytes: as arrays of NumPy, and as a table in CSV with an eighth of the rows. Trains a net that computes almost nothing and adds up the proportional memory (Pss of /proc/PID/smaps_rollup) of
all ranks while it trains; what they take without the data is measured with 64 samples, and subtracted. Copies are made by the same program, which is told that there is no room in shared memory.
The files are in the page cache. Needs a Python with numpy, and mpirun.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import numpy

CONFIG = """
shards: 4
data: {%s}
model: {layers: [flatten, {dense: {units: 2}}], loss: softmax_cross_entropy}
optimizer: {gradient_descent: {learning_rate: 1.0e-9}}
train: {batch_size: 64, epochs: 1000000}
summary: {every_steps: 1}
checkpoint: {every_epochs: 0}
"""
NPY = "format: npy, features: x.npy, labels: y.npy"
CSV = "format: csv, path: x.csv"
NO_ROOM = {"OMPI_MCA_osc_sm_backing_directory": "/nowhere"}


def processes_of(folder):
    """The ranks: processes that train the configuration in the folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if str(folder).encode() + b"/run" in words and words[0].endswith(b"/lockstep"):
            found.append(entry)
    return found


def proportional(processes):
    return sum(1024 * int(kb) for process in processes
               for kb in re.findall(r"^Pss: +(\d+) kB", (process / "smaps_rollup").read_text(encoding="utf-8"), re.MULTILINE))


def train(program, folder, data, ranks, variables):
    """(memory of all ranks, seconds until the third step)"""
    (folder / "c.yaml").write_text(CONFIG % data, encoding="utf-8")
    shutil.rmtree(folder / "run", ignore_errors=True)
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **variables)
    command = ["mpirun", "--oversubscribe", "-n", str(ranks), program, "train", folder / "c.yaml", "--run-dir", folder / "run", "--threads", "1"]
    begin = time.monotonic()
    with open(folder / "log", "wb") as log:
        job = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        metrics = folder / "run" / "metrics.jsonl"
        while not metrics.exists() or metrics.read_bytes().count(b"\n") < 3:
            if job.poll() is not None:
                raise RuntimeError((folder / "log").read_text(encoding="utf-8"))
            time.sleep(0.002)
        return proportional(processes_of(folder)), time.monotonic() - begin
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        for process in processes_of(folder):
            os.kill(int(process.name), signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--folder", help="for the files; default: a temporary one")
    parser.add_argument("--samples", type=int, default=262144)
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    program = (arguments.build / "bin" / "lockstep").resolve()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        values = numpy.random.default_rng(0).integers(0, 256, (arguments.samples, 32, 32, 3), dtype=numpy.uint8)
        labels = (values[:, 0, 0, 0] > 127).astype(numpy.int32)
        numpy.save(folder / "x.npy", values)
        numpy.save(folder / "y.npy", labels)
        few = arguments.samples // 8
        table = numpy.concatenate([values[:few].reshape(few, -1), labels[:few, None]], axis=1)
        numpy.savetxt(folder / "x.csv", table, fmt="%d", delimiter=",")
        for title, data, size in (("npy", NPY, values.nbytes), ("csv", CSV, few * 3072 * 4)):
            print(f"{title}: {size / 1e6:.0f} MB of features")
            for ranks in map(int, arguments.ranks.split(",")):
                alone = train(program, folder, f"{data}, rows: [0, 64]", ranks, {})[0]
                for how, variables in (("shared", {}), ("copies", NO_ROOM)):
                    results = [train(program, folder, data, ranks, variables) for _ in range(arguments.rounds)]
                    memory, seconds = (sorted(column)[len(results) // 2] for column in zip(*results))
                    print(f"  {ranks} rank{'s' if ranks > 1 else ''}, {how}: {(memory - alone) / 1e6:.0f} MB, first steps after {seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
