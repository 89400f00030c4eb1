# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Reference vectors: what another framework computes for one layer, as HDF5 that
tests/unit/model/reference_vectors_test.cpp reads.

A family is a script <family>.py here, which makes <family>.h5 next to it:

    from common import reference_file, write_case
    with reference_file(__file__) as file:
        write_case(file, "same_stride", "conv2d: {filters: 4, kernel: 3, stride: 2}", inputs=[x], outputs=[y],
                   dy=[dy], dx=[dx], variables={"kernel": w, "bias": b}, gradients={"kernel": dw, "bias": db})

    python tests/reference/<family>.py        # needs PyTorch, numpy, h5py; the tests need none of them

All arrays are float32 in Lockstep's layouts: the whole batch along the first axis, channels last, kernels
height x width x in x out, dense kernels in x out. The file keeps the versions that made it.
"""
import pathlib
import platform

import h5py
import numpy as np
import torch


def reference_file(script):
    """The open file <script>.h5, new, with the versions of what makes it. Use it in a `with`."""
    path = pathlib.Path(script).resolve()
    torch.set_num_threads(1)  # so that the same script gives the same file
    file = h5py.File(path.with_suffix(".h5"), "w", libver=("v108", "v110"))  # compact groups; old HDF5 reads them
    file.attrs["made_by"] = f"tests/reference/{path.name}"
    for name, version in {"python": platform.python_version(), "torch": torch.__version__,
                          "numpy": np.__version__, "h5py": h5py.__version__}.items():
        file.attrs[name] = str(version)
    return file


def seeded(seed):
    """A generator of numbers: `seeded(1).standard_normal((2, 3))`."""
    return np.random.default_rng(seed)


def to_numpy(array):
    if isinstance(array, torch.Tensor):
        array = array.detach().cpu().numpy()
    return np.ascontiguousarray(array, dtype=np.float32)


def write_case(file, name, yaml, inputs, outputs, dy=None, dx=None, variables=None, gradients=None, state=None,
               microshards=None, tolerance=None, relu=False):
    """Adds a case, a group of the file.

    yaml         the layer as one line of a configuration: "conv2d: {filters: 4, kernel: 3}"
    inputs       a list, one array per input, the whole batch along the first axis
    outputs      a list, one array per output
    dy           the gradient of each output; none: forward alone, in inference
    dx           the gradient of each input; None in the place of one that nobody differentiates
    variables    values before forward, by the name behind the layer's name ("kernel", or "forward/kernel"): every
                 trainable variable, and those others that do not begin with their initial values
    gradients    by the same names: every trainable variable
    state        variables that are not trained, as forward leaves them
    microshards  how the batch is cut, a list of sizes; all in one by default
    tolerance    of every comparison, relative to the largest number of the array; 1e-5 by default
    relu         the layer with the relu behind it fused into it
    """
    samples = len(inputs[0])
    microshards = list(microshards or [samples])
    assert sum(microshards) == samples, f"{name}: microshards {microshards} of {samples} samples"
    assert all(len(array) == samples for array in [*inputs, *outputs]), f"{name}: the first axis is the samples"
    assert (dy is None) == (dx is None), f"{name}: dy and dx belong together"
    if dy is None:
        assert not gradients, f"{name}: gradients need dy"
    else:
        assert len(dy) == len(outputs) and len(dx) == len(inputs), f"{name}: one dy per output, one dx per input"
        assert all(len(a) == samples for a in [*dy, *dx] if a is not None), f"{name}: the first axis is the samples"

    group = file.create_group(name)
    group.attrs["yaml"] = np.bytes_(yaml.encode())
    group.attrs["microshards"] = np.asarray(microshards, dtype=np.int64)
    if tolerance is not None:
        group.attrs["tolerance"] = np.float64(tolerance)
    if relu:
        group.attrs["relu"] = np.int64(1)
    for kind, arrays in {"inputs": inputs, "outputs": outputs, "dy": dy, "dx": dx}.items():
        for i, array in enumerate(arrays or []):
            if array is not None:
                group.create_dataset(f"{kind}/{i}", data=to_numpy(array))
    for kind, arrays in {"variables": variables, "gradients": gradients, "state": state}.items():
        for variable, array in (arrays or {}).items():
            group.create_dataset(f"{kind}/{variable}", data=to_numpy(array))


def differentiate(outputs, inputs, variables, dy):
    """Runs torch's backward: gradients of sum(dy * outputs). Lists and dicts of tensors; gives (dx, gradients)."""
    leaves = [*inputs, *variables.values()]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    found = dict(zip(map(id, wanted), torch.autograd.grad(outputs, wanted, dy)))
    return ([found.get(id(leaf)) for leaf in inputs],
            {name: found[id(leaf)] for name, leaf in variables.items() if id(leaf) in found})


def channels_second(x):
    """PyTorch's order of axes."""
    return x.movedim(-1, 1)


def channels_last(x):
    """Ours."""
    return x.movedim(1, -1)


def tensors(seed, shapes):
    """Leaves in double whose values are exact in float32, so that what is written is what was computed with."""
    random = seeded(seed)
    return [torch.tensor(random.standard_normal(shape, dtype="float32")).double().requires_grad_() for shape in shapes]


def output_gradient(seed, y):
    """Random, for an output."""
    return torch.tensor(seeded(seed).standard_normal(tuple(y.shape), dtype="float32")).double()


def same_padding(extent, window, stride, dilation=1):
    """[before, after] of one axis: TensorFlow's "same"."""
    total = max(0, (-(-extent // stride) - 1) * stride + dilation * (window - 1) + 1 - extent)
    return [total // 2, total - total // 2]


def flat_padding(padding):
    """[[before, after], ...] per axis as F.pad takes it, which begins with the last axis."""
    return [side for axis in reversed(padding) for side in axis]
