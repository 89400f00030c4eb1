#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the digits that ship with Lockstep as image files, a folder per class: the data of digit_images.yaml.

    python3 examples/generate_digit_images.py      # examples/digit_images/{train,test}/{zero,...,nine}/0001.png: 1,797 files

Each image is one digit, grey, 8 x 8 pixels of the data enlarged to 16 x 16. The last 297 digits are the test set. Needs Python alone.
"""
import argparse
import gzip
import pathlib
import struct
import zlib

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TRAINING, FACTOR = 1500, 2


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def grey_png(rows):
    """A PNG file of rows of bytes."""
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    lines = b"".join(b"\0" + row for row in rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def digit_image(pixels):
    """8 x 8 values 0..16, enlarged; 255 is ink."""
    rows = []
    for y in range(8):
        row = bytes(min(255, value * 16) for value in pixels[8 * y:8 * y + 8] for _ in range(FACTOR))
        rows += [row] * FACTOR
    return grey_png(rows)


def main():
    here = pathlib.Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", nargs="?", type=pathlib.Path, default=here / "digit_images")
    parser.add_argument("--data", type=pathlib.Path, default=here.parent / "data" / "digits.csv.gz")
    parser.add_argument("--every", type=int, default=1, help="only every n-th digit")
    options = parser.parse_args()
    count = 0
    with gzip.open(options.data, "rt", encoding="ascii") as lines:
        for number, line in enumerate(lines):
            if number % options.every:
                continue
            *pixels, label = (int(float(value)) for value in line.split(","))
            folder = options.output / ("train" if number < TRAINING else "test") / NAMES[label]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number:04}.png").write_bytes(digit_image(pixels))
            count += 1
    print(f"{options.output}: {count} images")


if __name__ == "__main__":
    main()
