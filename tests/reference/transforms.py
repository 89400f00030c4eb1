# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Reference values of the transforms, as transforms.json next to this script: what NumPy, SciPy, Pillow and
torchvision compute.

    python tests/reference/transforms.py        # needs numpy, scipy, Pillow, PyTorch, torchvision
"""
import json
import pathlib

import numpy as np
import PIL
import PIL.Image
import scipy
import scipy.ndimage
import torch
import torchvision
import torchvision.transforms.functional as F

generator = np.random.default_rng(1)
cases = []


def image(height, width, channels):
    return np.float32(np.round(generator.random((height, width, channels)), 3))


def numbers(array):
    """Enough digits for float32."""
    return [float(f"{v:.9g}") for v in np.asarray(array, np.float32).ravel()]


def case(source, yaml, x, y, tolerance=0.0):
    """`tolerance`: absolute; 0: equal."""
    cases.append({"source": source, "yaml": yaml, "shape": x.shape, "x": numbers(x),
                  "result": y.shape, "y": numbers(y),
                  "tolerance": tolerance})


def pillow_resize(x, height, width, method, box=None):
    planes = [PIL.Image.fromarray(x[..., c]).resize((width, height), method, box) for c in range(x.shape[2])]
    return np.stack([np.asarray(p) for p in planes], -1)


def rotated(x, degrees, scale, shift, order):
    """Counter-clockwise as seen, about the centre; SciPy counts rows and columns."""
    angle = np.deg2rad(degrees)
    forward = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * scale  # rows, columns
    back = np.linalg.inv(forward)
    centre = (np.array(x.shape[:2]) - 1) / 2
    offset = centre - back @ (centre + np.array(shift))
    return np.stack([scipy.ndimage.affine_transform(x[..., c].astype(np.float64), back, offset, order=order,
                                                    mode="grid-constant", cval=0.25) for c in range(x.shape[2])], -1)


def torch_image(x):
    return torch.from_numpy(x).permute(2, 0, 1)


def from_torch(x):
    return x.permute(1, 2, 0).numpy()


x = image(5, 4, 3)
mean, std = np.float32([0.4, 0.5, 0.6]), np.float32([0.2, 0.3, 0.25])
case("NumPy", "normalize: {mean: [0.4, 0.5, 0.6], std: [0.2, 0.3, 0.25]}", x, (x - mean) / std)
case("NumPy", "scale: {factor: 3, offset: -1}", x, x * np.float32(3) - np.float32(1))
case("NumPy", "clip: {min: 0.25, max: 0.75}", x, np.clip(x, np.float32(0.25), np.float32(0.75)))
case("NumPy", "log: {offset: 0.5}", x - np.float32(0.5), np.log(np.maximum(x - np.float32(0.5), 0) + np.float32(0.5)), 2e-7)
case("NumPy", "standardize", x, (x - x.mean(dtype=np.float64)) / x.std(dtype=np.float64), 1e-6)
case("NumPy", "crop: {size: [3, 2]}", x, x[1:4, 1:3])
case("NumPy", "crop: {size: 2, offset: [3, 1]}", x, x[3:5, 1:3])
volume = np.float32(np.round(generator.random((2, 3, 4, 2)), 3))
case("NumPy", "crop: {size: [1, 2, 3], offset: [1, 0, 1]}", volume, volume[1:2, 0:2, 1:4])
for mode, options in (("constant", {"constant_values": 0.5}), ("edge", {}), ("reflect", {})):
    y = np.pad(x, ((2, 2), (3, 3), (0, 0)), mode, **options)
    case("NumPy", f"pad: {{amount: [2, 3], padding_mode: {mode}, fill: 0.5}}", x, y)
case("NumPy", "pad: {amount: 1, padding_mode: reflect}", volume, np.pad(volume, ((1, 1),) * 3 + ((0, 0),), "reflect"))

for name, method in (("bilinear", PIL.Image.BILINEAR), ("bicubic", PIL.Image.BICUBIC), ("nearest", PIL.Image.NEAREST)):
    for height, width in ((7, 9), (3, 2), (5, 11)):
        x = image(6, 8, 1)
        case("Pillow", f"resize: {{size: [{height}, {width}], method: {name}}}", x, pillow_resize(x, height, width, method),
             1e-6)
x = image(8, 12, 3)
case("Pillow", "random_resized_crop: {size: 5}", x, pillow_resize(x, 5, 5, PIL.Image.BILINEAR, (2.5, 0.5, 9.5, 7.5)), 1e-6)

x = image(7, 9, 3)
for degrees, scale in ((37, 1), (-90, 1), (200, 0.7), (0, 1.7)):
    for order, name in ((1, "bilinear"), (0, "nearest")):
        case("SciPy", f"random_affine: {{degrees: [{degrees}, {degrees}], scale: [{scale}, {scale}], "
                      f"interpolation: {name}, fill: 0.25}}", x, rotated(x, degrees, scale, (0, 0), order), 2e-6)

x = image(4, 5, 3)
case("torchvision", "grayscale", x, from_torch(F.rgb_to_grayscale(torch_image(x))), 1e-6)
case("torchvision", "random_grayscale: {probability: 1}", x, from_torch(F.rgb_to_grayscale(torch_image(x), 3)), 1e-6)
for name, change in (("brightness", F.adjust_brightness), ("contrast", F.adjust_contrast),
                     ("saturation", F.adjust_saturation), ("hue", F.adjust_hue)):
    for factor in (0.3, 1.4) if name != "hue" else (-0.5, 0.1, 0.35):
        case("torchvision", f"{name}: {factor}", x, from_torch(change(torch_image(x), factor)), 2e-6)

for name, change, amounts in (("sharpness", F.adjust_sharpness, (0.2, 1.7)), ("solarize", F.solarize, (0.4,)),
                              ("auto_contrast", lambda x, _: F.autocontrast(x), (0,))):
    for amount in amounts:
        case("torchvision", f"{name}: {amount}", x, from_torch(change(torch_image(x), amount)), 2e-6)
small = generator.integers(0, 256, (4, 3, 3)).astype(np.uint8)
even = np.minimum(generator.integers(0, 256, (16, 18, 1)), 90).astype(np.uint8)  # a histogram of 256 levels needs pixels
for name, change, levels in (("posterize: 1", lambda x: F.posterize(x, 1), small), ("posterize: 4", lambda x: F.posterize(x, 4), small),
                             ("posterize: 7", lambda x: F.posterize(x, 7), small), ("equalize: 0", F.equalize, even),
                             ("equalize: 0", F.equalize, small)):
    y = from_torch(change(torch_image(levels)))
    case("torchvision", name, np.float32(levels / 255), np.float32(y / 255), 1e-7)

generator = np.random.default_rng(2)
x = image(6, 7, 3)
for yaml, radius, sigma in (("blur: {sigma: 0.8}", 3, 0.8), ("blur: {sigma: 2, kernel: 5}", 2, 2.0), ("blur: {sigma: 5}", 15, 5.0),
                            ("random_blur: {sigma: [1, 1], kernel: 9, probability: 1}", 4, 1.0)):
    case("SciPy", yaml, x, scipy.ndimage.gaussian_filter(x, (sigma, sigma, 0), mode="mirror", radius=radius), 2e-6)
x = image(4, 5, 6)[..., None].repeat(2, -1)  # a volume
case("SciPy", "blur: {sigma: 0.9}", x, scipy.ndimage.gaussian_filter(x, (0.9, 0.9, 0.9, 0), mode="mirror", radius=3), 2e-6)

if __name__ == "__main__":
    versions = {"NumPy": np.__version__, "SciPy": scipy.__version__, "Pillow": PIL.__version__,
                "PyTorch": torch.__version__, "torchvision": torchvision.__version__}
    lines = ",\n  ".join(json.dumps(c) for c in cases)
    text = f'{{"made_by": "tests/reference/transforms.py", "versions": {json.dumps(versions)}, "cases": [\n  {lines}\n]}}\n'
    pathlib.Path(__file__).with_suffix(".json").write_text(text)
