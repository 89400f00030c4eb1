#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Small files of the formats that hold arrays and records, written by the tools themselves: tests/vectors/records.

    make_record_vectors.py [FOLDER]     needs numpy

Every array holds 0, 1, 2, ... (bool: of these, the lowest bit), so that tests know what to expect.
"""
import gzip
import json
import pathlib
import struct
import sys
import zlib

import numpy

TYPES = ["?", "u1", "i1", "<u2", ">u2", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]


def counted(dtype, shape):
    values = numpy.arange(numpy.prod(shape)).reshape(shape)
    return (values % 2 == 1) if dtype == "?" else values.astype(dtype)


def numpy_files(folder):
    for dtype in TYPES:
        name = numpy.dtype(dtype).name + ("_big" if dtype[0] == ">" else "")
        numpy.save(folder / f"{name}.npy", counted(dtype, (3, 2, 2)))
    for major in (1, 2, 3):
        with open(folder / f"version{major}.npy", "wb") as file:
            numpy.lib.format.write_array(file, counted("<f4", (3, 4)), version=(major, 0))
    numpy.save(folder / "fortran.npy", numpy.asfortranarray(counted("<f4", (3, 4))))
    numpy.save(folder / "fortran_column.npy", numpy.asfortranarray(counted("<f4", (4, 1))))
    numpy.save(folder / "scalar.npy", numpy.float32(3))
    numpy.save(folder / "structure.npy", numpy.zeros(3, dtype=[("a", "<f4"), ("b", "<i4")]))
    numpy.save(folder / "text.npy", numpy.array(["a", "b"]))
    numpy.save(folder / "labels.npy", numpy.array([2, 0, 1], dtype="<i8"))
    arrays = {"x": counted("<f4", (3, 4)), "y": numpy.array([2, 0, 1])}
    numpy.savez(folder / "stored.npz", **arrays)
    numpy.savez_compressed(folder / "deflated.npz", **arrays)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked_crc(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(data):
    length = struct.pack("<Q", len(data))
    return length + masked_crc(length) + data + masked_crc(data)


def varint(value):
    value %= 1 << 64  # negative numbers as 64 bits
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def byte_list(*values):
    return field(1, b"".join(field(1, value) for value in values))


def float_list(values, packed=True):
    items = [struct.pack("<f", value) for value in values]
    return field(2, field(1, b"".join(items)) if packed else b"".join(varint(1 << 3 | 5) + item for item in items))


def int64_list(values, packed=True):
    items = [varint(value) for value in values]
    return field(3, field(1, b"".join(items)) if packed else b"".join(varint(1 << 3) + item for item in items))


def example(**features):
    """As TensorFlow writes it: sorted by name, which SerializeToString() does not promise, but readers must not mind."""
    return field(1, b"".join(field(1, field(1, name.encode()) + field(2, value)) for name, value in sorted(features.items())))


def tfrecord_files(folder):
    records = b""
    for i in range(3):
        values = range(4 * i, 4 * i + 4)
        records += framed(example(
            label=int64_list([(2, 0, 1)[i]], packed=i != 1), floats=float_list(values, packed=i != 1),
            integers=int64_list(values, packed=i != 1), raw=byte_list(bytes(values)),
            big=byte_list(struct.pack(">4h", *values)), target=float_list([i / 2, -i]), name=byte_list(b"a", b"b"), empty=b"",
            negative=int64_list([-1, -2**63])))
    (folder / "plain.tfrecord").write_bytes(records)
    (folder / "gzip.tfrecord").write_bytes(gzip.compress(records, mtime=0))
    (folder / "zlib.tfrecord").write_bytes(zlib.compress(records))
    (folder / "other.tfrecord").write_bytes(framed(example(floats=float_list([12, 13, 14, 15]), label=int64_list([2]))))


def binary_files(folder):
    """As CIFAR-10's binary version: a byte for the class, then the image, channels first. And 16-bit numbers with gaps."""
    records = b"".join(bytes([(2, 0, 1)[i], *range(12 * i, 12 * i + 12)]) for i in range(3))
    (folder / "cifar.bin").write_bytes(records)
    (folder / "cifar.bin.gz").write_bytes(gzip.compress(records, mtime=0))
    (folder / "framed.bin").write_bytes(b"head" + b"".join(struct.pack(">2hfxx", 2 * i, 2 * i + 1, i / 2) for i in range(3)) + b"end")


def json_files(folder):
    lines = [{"id": f"a{i}", "x": [[4 * i, 4 * i + 1], [4 * i + 2.0, 4 * i + 3]], "y": (2, 0, 1)[i], "name": ("c", "a", "b")[i],
              "target": [i / 2, -i], "other": {"x": [None, {"x": 7}]}, "flag": i == 1} for i in range(3)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "lines.jsonl").write_text(text, encoding="utf-8")
    (folder / "lines.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "records")
    folder.mkdir(parents=True, exist_ok=True)
    numpy_files(folder)
    tfrecord_files(folder)
    binary_files(folder)
    json_files(folder)


if __name__ == "__main__":
    main()
