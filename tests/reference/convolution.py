# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions: which element the window begins with when padding and stride meet, and where the odd element of "same"
padding goes. "same" is TensorFlow's: out = ceil(in / stride), and of an odd number of padding elements the larger half
at the end. PyTorch's own padding is the same on both sides, so the padding is written out here."""
import torch.nn.functional as F
from common import (channels_last, channels_second, differentiate, flat_padding, output_gradient, reference_file,
                    same_padding, tensors, write_case)


AXES = ["depth", "height", "width"]


def to_torch_kernel(kernel):
    """Ours: window x in / groups x out; PyTorch's: out x in / groups x window."""
    return kernel.movedim(-1, 0).movedim(-1, 1)


def padded_input(x, padding, circular):
    """padding: [[before, after], ...] per axis; circular: the axes that F.pad wraps around, from 0."""
    x = channels_second(x)
    for axis, sides in enumerate(padding):
        one = [[0, 0]] * axis + [sides] + [[0, 0]] * (len(padding) - 1 - axis)
        x = F.pad(x, flat_padding(one), mode="circular" if axis in circular else "constant")
    return x


def convolve(x, kernel, bias, stride, padding, dilation, groups, circular=()):
    """padding: [[before, after], ...] per axis."""
    rank = x.dim() - 2
    padded = padded_input(x, padding, circular)
    y = [F.conv1d, F.conv2d, F.conv3d][rank - 1](padded, to_torch_kernel(kernel), bias, stride=stride,
                                                 dilation=dilation, groups=groups)
    return channels_last(y)


def convolution_case(file, name, layer, extents, window, stride, padding, dilation=None, groups=1, in_c=2, out_c=4,
                     samples=3, microshards=(2, 1), circular=()):
    """padding: "same", "valid" or [[before, after], ...]."""
    rank = len(extents)
    dilation = dilation or [1] * rank
    x, kernel, bias = tensors(len(file), [(samples, *extents, in_c), (*window, in_c // groups, out_c), (out_c,)])
    sides = padding
    if padding == "same":
        sides = [same_padding(*axis) for axis in zip(extents, window, stride, dilation)]
    elif padding == "valid":
        sides = [[0, 0]] * rank
    y = convolve(x, kernel, bias, stride, sides, dilation, groups, circular)
    dy = output_gradient(1000 + len(file), y)
    variables = {"kernel": kernel, "bias": bias}
    dx, gradients = differentiate([y], [x], variables, [dy])
    written = padding if isinstance(padding, str) else [side for axis in padding for side in axis]
    names = ["steps"] if rank == 1 else [AXES[axis - rank] for axis in circular]
    yaml = (f"{layer}: {{filters: {out_c}, kernel: {list(window)}, stride: {list(stride)}, padding: {written}, "
            f"dilation: {list(dilation)}, groups: {groups}"
            + (f", circular: [{', '.join(names)}]" if circular else "") + "}")
    write_case(file, name, yaml, [x], [y], [dy], dx, variables, gradients, microshards=microshards)


if __name__ == "__main__":
    with reference_file(__file__) as file:
        convolution_case(file, "conv2d_same", "conv2d", [5, 4], [3, 3], [1, 1], "same")
        convolution_case(file, "conv2d_same_stride_odd", "conv2d", [5, 7], [3, 3], [2, 2], "same")
        convolution_case(file, "conv2d_same_stride_even", "conv2d", [6, 4], [3, 3], [2, 2], "same")
        convolution_case(file, "conv2d_same_even_window", "conv2d", [5, 6], [2, 4], [1, 3], "same")
        convolution_case(file, "conv2d_valid_stride", "conv2d", [6, 7], [3, 2], [2, 3], "valid")
        convolution_case(file, "conv2d_explicit", "conv2d", [5, 4], [3, 2], [2, 1], [[2, 0], [1, 3]])
        convolution_case(file, "conv2d_same_dilation_stride", "conv2d", [7, 8], [3, 3], [2, 1], "same", [2, 3])
        convolution_case(file, "conv2d_groups", "conv2d", [5, 4], [3, 3], [2, 1], "same", groups=2, in_c=4)
        convolution_case(file, "conv2d_depthwise", "conv2d", [5, 4], [3, 3], [1, 2], "same", groups=4, in_c=4, out_c=8,
                         microshards=(1, 0, 2))
        convolution_case(file, "conv1d_same_stride", "conv1d", [8], [4], [3], "same")
        convolution_case(file, "conv1d_explicit_dilation", "conv1d", [9], [3], [1], [[4, 0]], [2])
        convolution_case(file, "conv3d_same_stride", "conv3d", [3, 4, 2], [3, 2, 1], [2, 2, 1], "same", samples=2,
                         microshards=(1, 1))
        convolution_case(file, "conv3d_explicit_groups", "conv3d", [2, 3, 2], [2, 2, 2], [1, 1, 1],
                         [[1, 0], [0, 1], [0, 0]], groups=2, samples=1, microshards=(1,))
        convolution_case(file, "conv2d_circular_width", "conv2d", [3, 4], [3, 3], [1, 2], "same", samples=2,
                         microshards=(1, 1), circular=[1])
        convolution_case(file, "conv1d_circular", "conv1d", [5], [3], [1], [[1, 1]], samples=2, microshards=(2,),
                         circular=[0])
