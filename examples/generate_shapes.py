#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Generates images of shapes and the class of every pixel: the data of unet.yaml.

    python3 examples/generate_shapes.py             # examples/shapes.h5: 600 images of 64 x 64 x 3, 10 MB, in seconds

An image has one to four overlapping shapes of random size and colour on a background that fades from one colour to another, with
noise. Colours carry no information: the class of a pixel is that of the shape around it.

    0  background    1  disc    2  square, upright    3  triangle, pointing up

The file has features (uint8, samples x height x width x 3) and labels (uint8, samples x height x width x 1: the classes).
The same options give the same numbers with the same version of numpy. Needs numpy and h5py.
"""
import argparse
import pathlib

import h5py
import numpy as np

NOISE = 12.0  # its deviation, of 255


def shape_mask(kind, size, x, y, radius):
    """Which pixels a shape around (x, y) covers."""
    rows, columns = np.mgrid[:size, :size]
    right, down = columns - x, rows - y
    if kind == 1:
        return right**2 + down**2 <= radius**2
    if kind == 2:
        return np.maximum(np.abs(right), np.abs(down)) <= 0.85 * radius
    # Upright: as wide at the bottom as high.
    return (down <= radius) & (np.abs(right) <= (down + radius) / 2)


def image(random, size):
    """size x size x 3 of 0..255 and size x size classes."""
    fade = np.linspace(0, 1, size)[:, None, None]
    first, last = random.uniform(0, 255, (2, 3))
    pixels = np.broadcast_to(first * (1 - fade) + last * fade, (size, size, 3)).copy()
    classes = np.zeros((size, size), np.int32)
    for _ in range(random.integers(1, 5)):
        kind = int(random.integers(1, 4))
        x, y = random.uniform(0.15 * size, 0.85 * size, 2)
        mask = shape_mask(kind, size, x, y, random.uniform(0.09, 0.22) * size)
        pixels[mask] = random.uniform(0, 255, 3)
        classes[mask] = kind
    pixels += random.normal(0, NOISE, pixels.shape)
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8), classes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).parent / "shapes.h5")
    parser.add_argument("--samples", type=int, default=600)
    parser.add_argument("--size", type=int, default=64, help="pixels along each axis")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    with h5py.File(options.output, "w") as file:
        file.attrs["generator"] = "examples/generate_shapes.py"
        file.attrs["seed"] = options.seed
        features = file.create_dataset("features", (options.samples, options.size, options.size, 3), np.uint8)
        labels = file.create_dataset("labels", (options.samples, options.size, options.size, 1), np.uint8)
        for i in range(options.samples):
            features[i], classes = image(random, options.size)
            labels[i] = classes.reshape(options.size, options.size, 1)
        counts = np.bincount(labels[()].ravel(), minlength=4)
    shares = ", ".join(f"{name} {count / counts.sum():.1%}"
                       for name, count in zip(("background", "discs", "squares", "triangles"), counts))
    print(f"{options.output}: {options.samples} images of {options.size} x {options.size}; pixels: {shares}")


if __name__ == "__main__":
    main()
