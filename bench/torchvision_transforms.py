#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Speed of torchvision's transforms on one thread, image by image, for the lists that transform_bench measures.

    bench/torchvision_transforms.py [--repeats N]

Needs PyTorch and torchvision. Tensors of bytes, 3 x 32 x 32 or 3 x 256 x 256, become float32 in [0, 1] and are normalised
last. Values are images per second of processor time, the best of several repeats.
"""
import argparse
import time

import torch
from torchvision.transforms import v2

IMAGES = 256


def measure(size, name, transforms, repeats):
    images = list(torch.randint(0, 256, (IMAGES, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)))
    chain = v2.Compose([v2.ToDtype(torch.float32, scale=True), *transforms, v2.Normalize([0.49, 0.48, 0.45], [0.25, 0.24, 0.26])])
    best = float("inf")
    for _ in range(repeats):
        begin = time.process_time()
        for image in images:
            chain(image)
        best = min(best, time.process_time() - begin)
    print(f"  {size:3}x{size:<3} {name:60} {IMAGES / best:10.0f} images/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    crop, flip = v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip()
    for name, transforms in (("(conversion alone)", []), ("random_crop, random_flip", [crop, flip]),
                             ("random_affine: 15 degrees", [v2.RandomAffine(15, interpolation=v2.InterpolationMode.BILINEAR)]),
                             ("color_jitter: brightness, contrast, saturation", [v2.ColorJitter(0.4, 0.4, 0.4)]),
                             ("color_jitter: hue", [v2.ColorJitter(hue=0.1)]), ("random_erasing", [v2.RandomErasing()]),
                             ("random_resized_crop: 32", [v2.RandomResizedCrop(32)])):
        measure(32, name, transforms, repeats)
    measure(256, "random_resized_crop: 224, random_flip", [v2.RandomResizedCrop(224), flip], repeats)
    measure(256, "resize: 224", [v2.Resize((224, 224))], repeats)


if __name__ == "__main__":
    main()
