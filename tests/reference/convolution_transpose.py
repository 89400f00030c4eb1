# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions: the size of the output, where it is cut, and the layout of the kernel (window x filters /
groups x in). PyTorch cuts both sides alike, so the whole output is made and cut here; "same" is the gradient of a
convolution with that padding: stride x input, of an odd number of elements the larger half cut at the end."""
import torch.nn.functional as F
from common import (channels_last, channels_second, differentiate, output_gradient, reference_file, same_padding,
                    tensors, write_case)
from convolution import to_torch_kernel


def transposed_case(file, name, layer, extents, window, stride, padding, output_padding=None, dilation=None, groups=1,
                    in_c=3, filters=2, samples=2, microshards=(1, 1)):
    """padding: "same", "valid" or [[before, after], ...]: what is cut off."""
    rank = len(extents)
    dilation = dilation or [1] * rank
    output_padding = output_padding or [0] * rank
    x, kernel, bias = tensors(len(file), [(samples, *extents, in_c), (*window, filters // groups, in_c), (filters,)])
    more, sides = output_padding, padding
    if padding == "same":
        sides = [same_padding(e * s, w, s, d) for e, w, s, d in zip(extents, window, stride, dilation)]
        more = [max(0, s - d * (w - 1) - 1) for w, s, d in zip(window, stride, dilation)]
    elif padding == "valid":
        sides = [[0, 0]] * rank
    whole = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][rank - 1](
        channels_second(x), to_torch_kernel(kernel), bias, stride=stride, output_padding=more, groups=groups,
        dilation=dilation)
    for axis, (before, after) in enumerate(sides):
        whole = whole.narrow(2 + axis, before, whole.shape[2 + axis] - before - after)
    y = channels_last(whole)
    dy = output_gradient(1000 + len(file), y)
    variables = {"kernel": kernel, "bias": bias}
    dx, gradients = differentiate([y], [x], variables, [dy])
    written = padding if isinstance(padding, str) else [side for axis in padding for side in axis]
    yaml = (f"{layer}: {{filters: {filters}, kernel: {list(window)}, stride: {list(stride)}, padding: {written}, "
            f"output_padding: {list(output_padding)}, dilation: {list(dilation)}, groups: {groups}}}")
    write_case(file, name, yaml, [x], [y], [dy], dx, variables, gradients, microshards=microshards)


if __name__ == "__main__":
    with reference_file(__file__) as file:
        transposed_case(file, "conv2d_same", "conv2d_transpose", [3, 2], [3, 3], [2, 2], "same")
        transposed_case(file, "conv2d_same_even_window", "conv2d_transpose", [3, 2], [2, 4], [2, 2], "same")
        transposed_case(file, "conv2d_same_window_below_stride", "conv2d_transpose", [2, 3], [2, 1], [3, 2], "same")
        transposed_case(file, "conv2d_valid", "conv2d_transpose", [3, 2], [3, 2], [2, 3], "valid")
        transposed_case(file, "conv2d_output_padding", "conv2d_transpose", [3, 2], [3, 3], [2, 3], [[1, 1], [1, 1]],
                        [1, 2])
        transposed_case(file, "conv2d_explicit_dilation", "conv2d_transpose", [3, 4], [3, 2], [1, 2],
                        [[2, 1], [0, 1]], dilation=[2, 1])
        transposed_case(file, "conv2d_groups", "conv2d_transpose", [2, 3], [3, 3], [2, 1], "same", groups=2, in_c=4,
                        filters=6)
        transposed_case(file, "conv3d_same", "conv3d_transpose", [2, 1, 2], [2, 3, 2], [2, 2, 1], "same")
        transposed_case(file, "conv3d_output_padding", "conv3d_transpose", [1, 2, 2], [2, 2, 1], [2, 2, 2],
                        [[0, 1], [1, 0], [0, 0]], [1, 0, 1])
