#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The readers of arrays and records compared with dd, numpy.load and zlib: reader_bench on files that this script makes.

    bench/readers.py [--build DIR] [--folder DIR] [--samples N]

The files are in the page cache. Rates of compressed files are of what they unpack to. Needs a Python with numpy and h5py.
"""
import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import zlib

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "vectors"))
import make_record_vectors as records  # noqa: E402

WIDTH = 3072
CSV_COLUMNS = 64


def fast_crc32c():
    """A table makes 8 bits at a time of records.crc32c: the files are large."""
    table = numpy.zeros(256, dtype=numpy.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table[byte] = value
    entries = [int(value) for value in table]

    def crc(data):
        value = 0xFFFFFFFF
        for byte in data:
            value = entries[(value ^ byte) & 0xFF] ^ value >> 8
        return value ^ 0xFFFFFFFF
    return crc


def best(action, rounds=5):
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        action()
        times.append(time.process_time() - begin)
    return min(times)


def rates(title, size, command):
    """MB of the file per second."""
    print(f"{title}: {size / 1e6:.0f} MB", flush=True)
    samples = 0
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        what, wall, processor = line.split("\t")
        if what == "samples":
            samples = float(wall)
            continue
        wall, processor = float(wall), max(float(processor), 1e-9)
        print(f"  {what:<28} {size / wall / 1e6:8.0f} MB/s {samples / wall:12.0f} samples/s {size / processor / 1e6:8.0f} MB per processor second",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--folder", help="for the files; default: a temporary one")
    parser.add_argument("--samples", type=int, default=60000)
    arguments = parser.parse_args()
    program = next(arguments.build.rglob("reader_bench")).resolve()
    records.crc32c = fast_crc32c()
    values = numpy.random.default_rng(0).integers(0, 256, (arguments.samples, WIDTH), dtype=numpy.uint8)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        numpy.save(folder / "bytes.npy", values)
        numpy.save(folder / "floats.npy", values[:, :WIDTH // 4].astype(numpy.float32))
        one = [records.framed(records.example(x=records.byte_list(row.tobytes()), y=records.int64_list([int(row[0]) % 10]))) for row in values[:500]]
        floats = [records.framed(records.example(x=records.float_list(row[:WIDTH // 4]), y=records.int64_list([1]))) for row in values[:500]]
        for name, some in (("bytes", one), ("floats", floats)):
            (folder / f"{name}.tfrecord").write_bytes(b"".join(some) * (arguments.samples // 500))
        (folder / "x.bin").write_bytes(values.tobytes())
        rng = numpy.random.default_rng(1)
        for name, numbers in (("whole", rng.integers(0, 256, (2000, CSV_COLUMNS))), ("fractions", rng.normal(size=(2000, CSV_COLUMNS)).round(6))):
            rows = "".join(",".join(map(str, row)) + "\n" for row in numbers.tolist())
            (folder / f"{name}.csv").write_text(rows * (arguments.samples // 2000), encoding="ascii")
        lines = "".join(json.dumps({"x": row, "y": 1}) + "\n" for row in rng.normal(size=(1000, CSV_COLUMNS)).round(6).tolist())
        (folder / "x.jsonl").write_text(lines * (arguments.samples // 1000), encoding="ascii")
        size = values.nbytes
        times = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            said = subprocess.run(["dd", f"if={folder}/bytes.npy", "of=/dev/null", "bs=1M"], check=True, capture_output=True, text=True).stderr
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append((float(said.split(" copied, ")[1].split(" s")[0]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
        wall, processor = (min(column) for column in zip(*times))
        print(f"dd: {size / 1e6 / wall:.0f} MB/s, {size / 1e6 / processor:.0f} MB per processor second with its start")
        print(f"numpy.load: {size / 1e6 / best(lambda: numpy.load(folder / 'bytes.npy')):.0f} MB per processor second")
        for title, file, options in (
                ("npy, bytes", "bytes.npy", ["npy", "features=%s"]),
                ("npy, float32", "floats.npy", ["npy", "features=%s"]),
                ("tfrecord, bytes", "bytes.tfrecord", ["tfrecord", "path=%s", "features=x", "labels=y"]),
                ("tfrecord, floats", "floats.tfrecord", ["tfrecord", "path=%s", "features=x", "labels=y"]),
                ("binary", "x.bin", ["binary", "path=%s", f"shape={WIDTH}"]),
                ("csv, whole numbers", "whole.csv", ["csv", "path=%s", "label_column=null"]),
                ("csv, fractions", "fractions.csv", ["csv", "path=%s", "label_column=null"]),
                ("jsonl, fractions", "x.jsonl", ["jsonl", "path=%s", "features=x", "labels=y"])):
            path = folder / file
            rates(title, path.stat().st_size, [program, *(word.replace("%s", str(path)) for word in options)])
        few = values // 32 * 32  # gzip has something to do: about 2 to 1
        for title, options in (("hdf5, plain chunks", {}), ("hdf5, gzip and shuffle", {"compression": "gzip", "compression_opts": 4, "shuffle": True})):
            with h5py.File(folder / "x.h5", "w") as file:
                file.create_dataset("x", data=few, chunks=(64, WIDTH), **options)
                packed = file["x"].id.read_direct_chunk((0, 0))[1]
            if options:
                print(f"zlib alone: {64 * WIDTH / 1e6 / best(lambda: zlib.decompress(packed), 50):.0f} MB per processor second")
            rates(title, size, [program, "hdf5", f"path={folder / 'x.h5'}", "features=x"])
        rates("synthetic, bytes", size, [program, "synthetic", f"samples={arguments.samples}", f"shape={WIDTH}", "dtype=uint8"])


if __name__ == "__main__":
    main()
