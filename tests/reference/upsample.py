# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Upsampling: where an element of the output lies in the input, with corners on corners and without."""
import torch.nn.functional as F
from common import (channels_last, channels_second, differentiate, output_gradient, reference_file, tensors,
                    write_case)


def upsample_case(file, name, extents, factor, method="nearest", align_corners=False, channels=3, samples=2):
    (x,) = tensors(len(file), [(samples, *extents, channels)])
    size = [extent * by for extent, by in zip(extents, factor)]
    corners = {"align_corners": align_corners} if method == "bilinear" else {}
    y = channels_last(F.interpolate(channels_second(x), size=size, mode=method, **corners))
    dy = output_gradient(1000 + len(file), y)
    dx, _ = differentiate([y], [x], {}, [dy])
    yaml = f"upsample: {{factor: {factor}, method: {method}, align_corners: {str(align_corners).lower()}}}"
    write_case(file, name, yaml, [x], [y], [dy], dx, microshards=[1] * samples)


if __name__ == "__main__":
    with reference_file(__file__) as file:
        upsample_case(file, "nearest_1d", [5], [3])
        upsample_case(file, "nearest_2d", [3, 4], [2, 3])
        upsample_case(file, "nearest_3d", [2, 1, 3], [2, 3, 1])
        for corners in (False, True):
            end = "_corners" if corners else ""
            upsample_case(file, "bilinear" + end, [3, 4], [2, 2], "bilinear", corners)
            upsample_case(file, "bilinear_odd" + end, [4, 3], [3, 5], "bilinear", corners, channels=1)
            upsample_case(file, "bilinear_of_one" + end, [1, 5], [4, 1], "bilinear", corners)
