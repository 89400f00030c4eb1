#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Makes images.h5, the vectors of tests/unit/data/image_test.cpp, and two of its files, rgb.png and rgb.jpg.

    python3 tests/vectors/make_image_vectors.py             # needs numpy, h5py and Pillow before 13

Four arrays of bytes, one item after the other: `files` and `pixels` (height x width x 3, as Pillow decodes the file), `before` and
`after` (Image.resize of it). The attribute `names` has a line per file: name, bytes, height, width of the pixels; `cases` one per
resized image: filter, height and width before, height and width after, channels.
Pillow 13 resizes columns before rows where an image gets wider and lower. The pixels of a JPEG file depend on the version of libjpeg-turbo, which Pillow brings with it: the test allows for that.
"""
import io
import pathlib
import struct
import zlib

import h5py
import numpy as np
import PIL
from PIL import Image, ImageOps

FILTERS = {"nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
# height x width before and after, channels
SIZES = (((13, 17), (8, 8), 3), ((5, 4), (11, 9), 3), ((20, 20), (20, 7), 1), ((9, 30), (4, 30), 3), ((31, 2), (3, 5), 1),
         ((1, 1), (3, 4), 3), ((7, 7), (6, 8), 1), ((24, 40), (5, 3), 3))


def picture(random, height, width):
    """Smooth colours with an edge and a little noise: JPEG keeps it well."""
    rows, columns = np.mgrid[:height, :width]
    channels = [120 + 100 * np.sin(rows / (3 + c) + c) * np.cos(columns / (4 + c)) for c in range(3)]
    pixels = np.stack(channels, -1) + random.normal(0, 3, (height, width, 3))
    pixels[height // 2:, width // 3:width // 2] = (230, 40, 90)
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


def encoded(image, form, **options):
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def with_orientation(value):
    exif = Image.Exif()
    exif[0x0112] = value
    return exif.tobytes()


def files(random):
    colour = Image.fromarray(picture(random, 21, 18))
    grey = colour.convert("L")
    found = {
        "rgb.png": encoded(colour, "PNG"),
        "grey.png": encoded(grey, "PNG"),
        "palette.png": encoded(colour.quantize(9), "PNG"),
        "two_colours.png": encoded(grey.convert("1"), "PNG"),
        "rgb.jpg": encoded(colour, "JPEG", quality=90),
        "rgb_444.jpg": encoded(colour, "JPEG", quality=90, subsampling=0),
        "grey.jpg": encoded(grey, "JPEG", quality=90),
        "progressive.jpg": encoded(colour, "JPEG", quality=90, progressive=True),
        "cmyk.jpg": encoded(colour.convert("CMYK"), "JPEG", quality=95),
    }
    alpha = colour.convert("RGBA")
    alpha.putalpha(grey)
    found["rgba.png"] = encoded(alpha, "PNG")
    found["grey_alpha.png"] = encoded(alpha.convert("LA"), "PNG")
    found["palette_alpha.png"] = encoded(colour.quantize(9), "PNG", transparency=2)
    for value in range(1, 9):
        found[f"turned{value}.jpg"] = encoded(grey.crop((0, 0, 16, 8)), "JPEG", quality=95, exif=with_orientation(value))
    found["turned.png"] = encoded(colour.crop((0, 0, 5, 3)), "PNG", exif=with_orientation(6))
    return found


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_by_hand(pixels, kind, depth, interlaced=False):
    """A PNG of a form that Pillow does not write."""
    height, width = pixels.shape[:2]
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)) if interlaced else ((0, 0, 1, 1),)
    lines = b""
    for x, y, dx, dy in passes:
        part = pixels[y::dy, x::dx]
        if part.size:
            lines += b"".join(b"\0" + row.astype(">u2" if depth == 16 else "u1").tobytes() for row in part)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(lines)) + png_chunk(b"IEND", b"")


def main():
    if int(PIL.__version__.split(".")[0]) >= 13:
        raise SystemExit(f"Pillow {PIL.__version__} resizes in another order: use one before 13")
    random = np.random.default_rng(5)
    path = pathlib.Path(__file__).parent / "images.h5"
    names, data, pixels, cases, before, after = [], [], [], [], [], []

    def put(name, file, decoded):
        names.append(f"{name} {len(file)} {decoded.shape[0]} {decoded.shape[1]}")
        data.append(np.frombuffer(file, np.uint8))
        pixels.append(decoded.ravel())

    for name, file in files(random).items():
        put(name, file, np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(file))).convert("RGB")))
    # 16 bits, which Pillow reads in other ways, and Adam7: pixels by the definition, round(v * 255 / 65535).
    wide = random.integers(0, 65536, (5, 6, 3)).astype(np.uint16)
    eight = np.rint(wide / 257).astype(np.uint8)
    put("rgb16.png", png_by_hand(wide, 2, 16), eight)
    put("grey16.png", png_by_hand(wide[..., 0], 0, 16), np.repeat(eight[..., :1], 3, 2))
    small = picture(random, 11, 9)
    put("interlaced.png", png_by_hand(small, 2, 8, True), small)
    for (old, new, channels) in SIZES:
        noise = random.integers(0, 256, (*old, channels)).astype(np.uint8)
        noise[0, 0], noise[-1, -1] = 0, 255  # bicubic overshoots
        source = Image.fromarray(noise if channels == 3 else noise[..., 0])
        for name, resample in FILTERS.items():
            cases.append(f"{name} {old[0]} {old[1]} {new[0]} {new[1]} {channels}")
            before.append(noise.ravel())
            after.append(np.asarray(source.resize((new[1], new[0]), resample)).ravel())
    for line, file in zip(names, data):  # for tests/fuzz/data_fuzz.py
        if line.startswith(("rgb.png", "rgb.jpg")):
            (path.parent / line.split()[0]).write_bytes(file.tobytes())
    with h5py.File(path, "w") as out:
        for name, values in (("files", data), ("pixels", pixels), ("before", before), ("after", after)):
            out.create_dataset(name, data=np.concatenate(values), compression="gzip", compression_opts=9)
        for name, lines in (("names", names), ("cases", cases)):
            out.attrs[name] = np.bytes_("\n".join(lines))
        out.attrs["generator"] = np.bytes_("tests/vectors/make_image_vectors.py")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
