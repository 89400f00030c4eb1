# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The digits that ship with Lockstep as coloured pictures of 32 x 32 pixels, a folder per class."""
import gzip
import pathlib
import random
import struct
import zlib

DIGITS_DATA = pathlib.Path(__file__).resolve().parents[2] / "data" / "digits.csv.gz"
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
EXTENT, FACTOR = 32, 4
TRAINING, TEST = range(0, 150), range(1500, 1700)


def digits(numbers):
    """(number, 64 values from 0 to 16, label)"""
    with gzip.open(DIGITS_DATA, "rt", encoding="ascii") as lines:
        for number, line in enumerate(lines):
            if number in numbers:
                *values, label = (int(float(value)) for value in line.split(","))
                yield number, values, label


def picture(number, values, colours=True):
    """Rows of red, green and blue bytes: ink and paper have colours of their own in each picture, or are white and black."""
    draw = random.Random(number)
    paper = [draw.randrange(0, 100) if colours else 0 for _ in range(3)]
    ink = [draw.randrange(140, 256) if colours else 255 for _ in range(3)]
    rows = []
    for y in range(8):
        line = (bytes(p + (i - p) * value // 16 for p, i in zip(paper, ink)) * FACTOR for value in values[8 * y:8 * y + 8])
        rows += [b"".join(line)] * FACTOR
    return rows


def png(rows):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    header = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b"")


def write_pictures(folder, numbers):
    for number, values, label in digits(numbers):
        path = folder / NAMES[label] / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(picture(number, values)))
