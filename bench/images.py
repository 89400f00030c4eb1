#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The reader of images compared with libjpeg-turbo alone (image_bench) and Pillow, on the same JPEG files.

    bench/images.py [--build DIR] [--folder DIR] [--images N] [--rounds N]

Makes images of 500 x 375 pixels with the spectrum of photographs, JPEG of quality 90, about 80 kB each. One process at a time; the
files are in the page cache. Needs numpy and Pillow; measures PyTorch's DataLoader, too, where torch and torchvision are installed.
"""
import argparse
import pathlib
import subprocess
import tempfile
import time

import numpy
from PIL import Image

HEIGHT, WIDTH = 375, 500


def make(folder, count):
    """Random phases; amplitudes fall with the frequency, as in photographs."""
    random = numpy.random.default_rng(0)
    rows, columns = numpy.meshgrid(numpy.fft.fftfreq(HEIGHT), numpy.fft.rfftfreq(WIDTH), indexing="ij")
    amplitude = 1 / numpy.maximum(numpy.hypot(rows, columns), 1 / WIDTH) ** 1.1
    (folder / "a").mkdir()
    for i in range(count):
        planes = []
        for _ in range(3):
            plane = numpy.fft.irfft2(amplitude * numpy.exp(2j * numpy.pi * random.random(amplitude.shape)), (HEIGHT, WIDTH))
            planes.append(plane / plane.std())
        grey = planes[0]
        pixels = numpy.stack([128 + 50 * grey + 12 * plane for plane in planes], -1)
        Image.fromarray(numpy.clip(pixels, 0, 255).astype(numpy.uint8)).save(folder / "a" / f"{i:05}.jpg", quality=90)
    size = sum(path.stat().st_size for path in folder.glob("a/*"))
    print(f"{count} files of {size / count / 1e3:.0f} kB on the average")


def best(rounds, work):
    wall, processor = [], []
    for _ in range(rounds):
        before, begin = time.process_time(), time.monotonic()
        work()
        wall.append(time.monotonic() - begin)
        processor.append(time.process_time() - before)
    return min(wall), min(processor)


def pillow(folder, size):
    for path in sorted(folder.glob("a/*")):
        with Image.open(path) as image:
            image = image.convert("RGB")
            numpy.asarray(image.resize(size[::-1], Image.Resampling.BILINEAR) if size else image)


def data_loader(folder, workers):
    import torch  # noqa: E402 - an option of this script
    from torchvision import datasets, transforms
    torch.set_num_threads(1)
    images = datasets.ImageFolder(folder, transforms.PILToTensor())
    for _ in torch.utils.data.DataLoader(images, batch_size=32, num_workers=workers):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--folder", help="for the files; default: a temporary one")
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        make(folder, arguments.images)
        for size in (None, (224, 224)):
            print(f"to {size[0]} x {size[1]}, bilinear" if size else "at their size")
            for threads in (1, 2):
                more = ["--size", f"{size[0]},{size[1]}"] if size else []
                subprocess.run([arguments.build / "bench" / "image_bench", folder, "--threads", str(threads), "--rounds", str(arguments.rounds), *more],
                               check=True, timeout=600)
            wall, processor = best(arguments.rounds, lambda: pillow(folder, size))
            print(f"{'Pillow':<22} {arguments.images / wall:8.0f} images/s  {arguments.images / processor:8.0f} per processor second")
        try:
            for workers in (0, 2):
                wall, _ = best(max(1, arguments.rounds // 2), lambda: data_loader(folder, workers))
                print(f"{f'DataLoader, workers: {workers}':<22} {arguments.images / wall:8.0f} images/s")
        except ImportError:
            print("DataLoader: no torch and torchvision")


if __name__ == "__main__":
    main()
