# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Files as torch.save writes them, without PyTorch, and the names and shapes of torchvision's ResNets."""
import collections
import io
import pickle
import random
import struct
import sys
import types
import zipfile

RESNET_WIDTH, RESNET_CLASSES = 8, 5  # of the nets in tests/reference/torchvision_resnets.json


class Storage:
    def __init__(self, key, kind, numbers):
        self.key, self.kind, self.numbers = key, kind, numbers


class Tensor:
    def __init__(self, storage, offset, size, stride):
        self.made = (storage, offset, size, stride, False, collections.OrderedDict())

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.made


def rebuild(*_):
    raise AssertionError("a pickle was executed")


class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        if isinstance(obj, Storage):
            return "storage", getattr(sys.modules["torch"], obj.kind), obj.key, "cpu", obj.numbers
        return None


def pickled(value):
    """A pickle as torch.save writes it."""
    names = {name: type(name, (), {"__module__": "torch"}) for name in ("FloatStorage", "LongStorage", "BoolStorage")}
    rebuild.__module__, rebuild.__qualname__, rebuild.__name__ = "torch._utils", "_rebuild_tensor_v2", "_rebuild_tensor_v2"
    modules = {"torch": types.ModuleType("torch"), "torch._utils": types.ModuleType("torch._utils")}
    for name, kind in names.items():
        setattr(modules["torch"], name, kind)
    modules["torch._utils"]._rebuild_tensor_v2 = rebuild
    sys.modules.update(modules)
    try:
        file = io.BytesIO()
        Pickler(file, protocol=2).dump(value)
        return file.getvalue()
    finally:
        for name in modules:
            del sys.modules[name]


def write_archive(path, data, storages):
    """A file of PyTorch with the pickle `data` and {key: bytes}."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        for key, values in storages.items():
            archive.writestr(f"archive/data/{key}", values)


def state_of(shapes, seed=1):
    """(state dict, storages) of {name: shape} with random numbers; a name ending in num_batches_tracked is an integer."""
    generator, state, storages = random.Random(seed), collections.OrderedDict(), {}
    for key, (name, shape) in enumerate(shapes.items()):
        count = 1
        for extent in shape:
            count *= extent
        strides = [1] * len(shape)
        for axis in reversed(range(len(shape) - 1)):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
        whole = name.endswith("num_batches_tracked")
        state[name] = Tensor(Storage(str(key), "LongStorage" if whole else "FloatStorage", count), 0, tuple(shape), tuple(strides))
        # Variances and scales near 1 and kernels by their inputs, so that a net with these numbers has outputs of the order of 1.
        scale = name.endswith("running_var") or (name.endswith("weight") and len(shape) == 1)
        centre, width = (1, 0.3) if scale else (0, (6 * shape[0] / count) ** 0.5 if len(shape) > 1 else 0.3)
        values = [100] if whole else [centre + width * generator.uniform(-1, 1) for _ in range(count)]
        storages[str(key)] = struct.pack("<q", *values) if whole else struct.pack(f"<{count}f", *values)
    return state, storages


def samples(count=4, extent=40):
    """(shape, values) of images, channels last."""
    generator = random.Random(2)
    shape = (count, extent, extent, 3)
    return shape, [generator.uniform(-1, 1) for _ in range(count * extent * extent * 3)]


def resnet_shapes(depth=18, width=64, classes=1000):
    """{name: shape} of the state dict of torchvision.models.resnet18, 34 or 50, in its order. torchvision has a width of 64."""
    blocks = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}[depth]
    bottleneck = depth >= 50
    shapes = {}

    def norm(name, channels):
        for own in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}.{own}"] = (channels,)
        shapes[f"{name}.num_batches_tracked"] = ()

    shapes["conv1.weight"] = (width, 3, 7, 7)
    norm("bn1", width)
    channels = width
    for stage, count in enumerate(blocks):
        inner = width * 2 ** stage
        out = inner * (4 if bottleneck else 1)
        for block in range(count):
            name = f"layer{stage + 1}.{block}"
            kernels = ((channels, inner, 1), (inner, inner, 3), (inner, out, 1)) if bottleneck else ((channels, inner, 3), (inner, inner, 3))
            for number, (ins, outs, extent) in enumerate(kernels):
                shapes[f"{name}.conv{number + 1}.weight"] = (outs, ins, extent, extent)
                norm(f"{name}.bn{number + 1}", outs)
            if block == 0 and (stage > 0 or bottleneck):
                shapes[f"{name}.downsample.0.weight"] = (out, channels, 1, 1)
                norm(f"{name}.downsample.1", out)
            channels = out
    shapes["fc.weight"], shapes["fc.bias"] = (classes, channels), (classes,)
    return shapes
