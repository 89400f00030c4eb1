#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A set that is read while it is used, compared with the same set in memory, h5py and a plain read of its file.

    bench/streaming.py [--build DIR] [--folder DIR] [--samples N] [--rounds N]

Makes HDF5 files of samples of 3 kB in chunks of 64: plain, and compressed with gzip and shuffle. Trains a net that
computes almost nothing for one and for nine epochs, through an eighth of the set's size: the difference is the time of eight epochs.
Prints MB/s of the values in memory: wall time, and processor time of all threads. The file is in the page cache.
Needs a Python with numpy and h5py.
"""
import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import time

import h5py
import numpy

CONFIG = """
shards: 2
data: {format: hdf5, path: data.h5, features: x, labels: y}
model: {layers: [{dense: {units: 2}}], loss: softmax_cross_entropy}
optimizer: {gradient_descent: {learning_rate: 1.0e-9}}
train: {batch_size: 512, epochs: 1, shuffle: blocks}
summary: {every_steps: 1000000}
checkpoint: {every_epochs: 0}
"""
WIDTH = 3072


def seconds(command):
    """Wall time, and processor time of all threads."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_epochs(program, folder, sets):
    """The time of one epoch, without the start."""
    times = []
    for epochs in (1, 9):
        shutil.rmtree(folder / "run", ignore_errors=True)
        more = [word for s in [*sets, f"train.epochs={epochs}"] for word in ("--set", s)]
        times.append(seconds([program, "train", folder / "c.yaml", "--run-dir", folder / "run", "--threads", "1", *more]))
    return tuple((nine - one) / 8 for one, nine in zip(*times))


def read_by_h5py(path):
    begin = time.monotonic()
    with h5py.File(path) as file:
        for first in range(0, len(file["x"]), 64):
            file["x"][first:first + 64]
    return (time.monotonic() - begin,) * 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--folder", help="for the files; default: a temporary one")
    parser.add_argument("--samples", type=int, default=60000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    program = (arguments.build / "bin" / "lockstep").resolve()
    # Few values, so that gzip has something to do: about 2 to 1.
    values = numpy.random.default_rng(0).integers(0, 8, (arguments.samples, WIDTH), dtype=numpy.uint8) * 32
    size = values.nbytes
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        (folder / "c.yaml").write_text(CONFIG, encoding="utf-8")
        for title, options in (("plain chunks", {}), ("gzip and shuffle", {"compression": "gzip", "compression_opts": 4, "shuffle": True})):
            with h5py.File(folder / "data.h5", "w") as file:
                file.create_dataset("x", data=values, chunks=(64, WIDTH), **options)
                file.create_dataset("y", data=(values[:, 0] > 127).astype(numpy.int32))
            forms = {
                "dd": lambda: seconds(["dd", f"if={folder}/data.h5", "of=/dev/null", "bs=1M"]),
                "h5py": lambda: read_by_h5py(folder / "data.h5"),
                "in memory": lambda: of_epochs(program, folder, []),
                "read, 1 thread": lambda: of_epochs(program, folder, [f"data.memory_gb={size / 8e9}", "data.reader_threads=1"]),
                "read, 2 threads": lambda: of_epochs(program, folder, [f"data.memory_gb={size / 8e9}", "data.reader_threads=2"]),
            }
            best = {form: (1e9, 1e9) for form in forms}
            for _ in range(arguments.rounds):
                for form, run in forms.items():
                    best[form] = tuple(min(pair) for pair in zip(best[form], run()))
            print(f"{title}: {size / 1e6:.0f} MB of values, a file of {os.path.getsize(folder / 'data.h5') / 1e6:.0f} MB")
            for form, (wall, processor) in best.items():
                print(f"  {form:<16} {size / wall / 1e6:8.0f} MB/s   {size / max(processor, 1e-9) / 1e6:8.0f} MB per processor second")


if __name__ == "__main__":
    main()
