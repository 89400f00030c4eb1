# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Reads event files with nothing but the description of their format: TFRecords around protobuf messages."""
import pathlib
import struct


def payloads(path):
    """The payload of each TFRecord."""
    data = pathlib.Path(path).read_bytes()
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        yield data[at + 12:at + 12 + length]
        at += 12 + length + 4
    assert at == len(data), f"{path} is truncated"


def fields(message):
    """(number, value) of each field: a whole number, 8 or 4 raw bytes, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        wire = key & 7
        if wire == 0:
            value = varint()
        else:
            length = {1: 8, 5: 4}.get(wire) or varint()
            value = message[at:at + length]
            at += length
        yield key >> 3, value


def doubles(raw):
    return list(struct.unpack(f"<{len(raw) // 8}d", raw))


def histogram_of(message):
    found = {"limits": [], "counts": []}
    for number, value in fields(message):
        if number <= 5:
            found[("min", "max", "num", "sum", "sum_squares")[number - 1]] = doubles(value)[0]
        else:
            found["limits" if number == 6 else "counts"] += doubles(value)
    for name in ("min", "max", "num", "sum", "sum_squares"):
        found.setdefault(name, 0.0)
    return found


def image_of(message):
    found = dict(fields(message))
    return {"height": found[1], "width": found[2], "channels": found[3], "png": found[4]}


def summaries(folder):
    """{(tag, step): [value, ...]} of all event files in a folder: numbers, histograms, pictures; else bytes."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("events.out.tfevents.*")):
        for payload in payloads(path):
            event = list(fields(payload))
            step = dict(event).get(2, 0)
            for number, summary in event:
                if number != 5:
                    continue
                for _, value in fields(summary):
                    parts = dict(fields(value))
                    tag = parts[1].decode()
                    if 2 in parts:
                        data = struct.unpack("<f", parts[2])[0]
                    elif 5 in parts:
                        data = histogram_of(parts[5])
                    elif 4 in parts:
                        data = image_of(parts[4])
                    else:
                        data = parts.get(8, b"")
                    found.setdefault((tag, step), []).append(data)
    return found
