# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions: which element the window begins with when padding and stride meet, and where the odd element of "same"
padding goes. "same" is TensorFlow's: out = ceil(in / stride), and of an odd number of padding elements the larger half
at the end. PyTorch's own padding is the same on both sides, so the padding is written out here."""
import torch
import torch.nn.functional as F
from common import differentiate, reference_file, seeded, write_case


def same_padding(extent, window, stride, dilation):
    """[before, after] of one axis."""
    total = max(0, (-(-extent // stride) - 1) * stride + dilation * (window - 1) + 1 - extent)
    return [total // 2, total - total // 2]


def channels_second(x):
    return x.movedim(-1, 1)


def channels_last(x):
    return x.movedim(1, -1)


def to_torch_kernel(kernel):
    """Ours: window x in / groups x out; PyTorch's: out x in / groups x window."""
    return kernel.movedim(-1, 0).movedim(-1, 1)


def convolve(x, kernel, bias, stride, padding, dilation, groups):
    """padding: [[before, after], ...] per axis."""
    rank = x.dim() - 2
    flat = [side for axis in reversed(padding) for side in axis]  # F.pad begins with the last axis
    y = [F.conv1d, F.conv2d, F.conv3d][rank - 1](F.pad(channels_second(x), flat), to_torch_kernel(kernel), bias,
                                                 stride=stride, dilation=dilation, groups=groups)
    return channels_last(y)


def tensors(seed, shapes):
    """Leaves in double whose values are exact in float32, so that what is written is what was computed with."""
    random = seeded(seed)
    return [torch.tensor(random.standard_normal(shape, dtype="float32")).double().requires_grad_() for shape in shapes]


def convolution_case(file, name, layer, extents, window, stride, padding, dilation=None, groups=1, in_c=2, out_c=4,
                     samples=3, microshards=(2, 1)):
    """padding: "same", "valid" or [[before, after], ...]."""
    rank = len(extents)
    dilation = dilation or [1] * rank
    x, kernel, bias = tensors(len(file), [(samples, *extents, in_c), (*window, in_c // groups, out_c), (out_c,)])
    sides = padding
    if padding == "same":
        sides = [same_padding(*axis) for axis in zip(extents, window, stride, dilation)]
    elif padding == "valid":
        sides = [[0, 0]] * rank
    y = convolve(x, kernel, bias, stride, sides, dilation, groups)
    dy = torch.tensor(seeded(1000 + len(file)).standard_normal(y.shape, dtype="float32")).double()
    variables = {"kernel": kernel, "bias": bias}
    dx, gradients = differentiate([y], [x], variables, [dy])
    written = padding if isinstance(padding, str) else [side for axis in padding for side in axis]
    yaml = (f"{layer}: {{filters: {out_c}, kernel: {list(window)}, stride: {list(stride)}, padding: {written}, "
            f"dilation: {list(dilation)}, groups: {groups}}}")
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
