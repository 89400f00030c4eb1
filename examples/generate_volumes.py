#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Generates volumes of matter, each from four numbers: the data of cosmo_conv3d.yaml.

    python3 examples/generate_volumes.py            # examples/volumes.h5: 640 volumes of 32 x 32 x 32, 21 MB, in seconds

A volume is a lognormal field, as is usual for the distribution of galaxies (Coles and Jones 1991): white noise is
filtered to the power spectrum k^tilt exp(-(k radius)^2), scaled to a deviation, and exponentiated to a density of mean
one, from which counts are drawn (Poisson). The four numbers, uniform and scaled to [-1, 1]:

    0  deviation of the logarithm of the density   0.5 to 1.5
    1  tilt of the power spectrum                  -2 to 0
    2  radius of the smoothing, in cells           0.5 to 1.5
    3  stretch along the first axis                0.6 to 1.6 (logarithmic)

The file has features (uint8, samples x depth x height x width x 1: 32 ln(1 + count)) and labels (float32, samples x 4). The
same options give the same numbers with the same version of numpy. Needs numpy and h5py.
"""
import argparse
import pathlib

import h5py
import numpy as np

MEAN_COUNT = 8.0
SCALE = 32.0  # the configuration divides by it


def field(random, size, deviation, tilt, radius, stretch):
    """Counts in size^3 cells; periodic."""
    along = np.fft.fftfreq(size) * 2 * np.pi
    half = np.fft.rfftfreq(size) * 2 * np.pi
    k = np.sqrt((along[:, None, None] * stretch) ** 2 + along[None, :, None] ** 2 + half[None, None, :] ** 2)
    k[0, 0, 0] = 1.0
    amplitude = np.sqrt(k**tilt * np.exp(-((k * radius) ** 2)))
    amplitude[0, 0, 0] = 0.0
    noise = np.fft.rfftn(random.standard_normal((size, size, size)))
    smooth = np.fft.irfftn(noise * amplitude, s=(size, size, size), axes=(0, 1, 2))
    density = np.exp(smooth * (deviation / smooth.std()))
    return random.poisson(MEAN_COUNT * density / density.mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).parent / "volumes.h5")
    parser.add_argument("--samples", type=int, default=640)
    parser.add_argument("--size", type=int, default=32, help="cells along each axis")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    labels = random.uniform(-1, 1, (options.samples, 4)).astype(np.float32)
    with h5py.File(options.output, "w") as file:
        file.attrs["generator"] = "examples/generate_volumes.py"
        file.attrs["seed"] = options.seed
        features = file.create_dataset("features", (options.samples,) + (options.size,) * 3 + (1,), np.uint8)
        for i, (deviation, tilt, radius, stretch) in enumerate(labels.astype(np.float64)):
            counts = field(random, options.size, 1.0 + 0.5 * deviation, -1.0 + tilt, 1.0 + 0.5 * radius,
                           (1.6 / 0.6) ** (stretch / 2) * (1.6 * 0.6) ** 0.5)
            features[i, ..., 0] = np.minimum(np.rint(SCALE * np.log1p(counts)), 255).astype(np.uint8)
        file.create_dataset("labels", data=labels)
    print(f"{options.output}: {options.samples} volumes of {options.size} x {options.size} x {options.size}")


if __name__ == "__main__":
    main()
