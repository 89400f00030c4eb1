# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Pooling with padding: padding is never the maximum and is not counted in a mean, and where the windows of "same"
padding begin."""
import torch
import torch.nn.functional as F
from common import (channels_last, channels_second, differentiate, flat_padding, output_gradient, reference_file,
                    same_padding, tensors, write_case)


def pool_case(file, name, kind, extents, window, stride, padding, channels=3, samples=3, microshards=(2, 1)):
    """padding: "same" or [[before, after], ...]."""
    rank = len(extents)
    (x,) = tensors(len(file), [(samples, *extents, channels)])
    sides = padding
    if padding == "same":
        sides = [same_padding(*axis) for axis in zip(extents, window, stride)]
    flat = flat_padding(sides)
    if kind == "max_pool":
        pool = [F.max_pool1d, F.max_pool2d, F.max_pool3d][rank - 1]
        y = pool(F.pad(channels_second(x), flat, value=-float("inf")), window, stride)
    else:
        pool = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][rank - 1]
        counted = F.pad(torch.ones_like(channels_second(x)), flat)
        y = pool(F.pad(channels_second(x), flat), window, stride) / pool(counted, window, stride)
    y = channels_last(y)
    dy = output_gradient(1000 + len(file), y)
    dx, _ = differentiate([y], [x], {}, [dy])
    written = padding if isinstance(padding, str) else [side for axis in padding for side in axis]
    write_case(file, name, f"{kind}: {{window: {window}, stride: {stride}, padding: {written}}}", [x], [y], [dy], dx,
               microshards=microshards)


if __name__ == "__main__":
    with reference_file(__file__) as file:
        for kind in ("max_pool", "avg_pool"):
            pool_case(file, f"{kind}_1d_same", kind, [17], [3], [2], "same", channels=1)
            pool_case(file, f"{kind}_1d_explicit", kind, [9], [4], [3], [[2, 3]])
            pool_case(file, f"{kind}_2d_same", kind, [5, 6], [3, 2], [2, 1], "same", microshards=(1, 0, 2))
            pool_case(file, f"{kind}_2d_explicit", kind, [4, 5], [3, 3], [2, 2], [[0, 2], [1, 0]])
            pool_case(file, f"{kind}_3d_same", kind, [3, 2, 4], [2, 3, 2], [1, 2, 2], "same", channels=5)
