# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""h5py reads the expected contents of a checkpoint: h5py_test.py INTEROP_PROGRAM."""
import os
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PROGRAM = sys.argv[1]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


def tensors_of(file):
    found = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    return found


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.h5")
    result = run("checkpoint", path)
    assert result.returncode == 0, result.stderr
    with h5py.File(path, "r") as file:
        expected = {"format": b"lockstep checkpoint", "version": 1, "global_step": 200, "epoch": 3,
                    "samples_consumed": 640, "shards": 4, "seed": 0xFEDCBA9876543210,
                    "config": 'name: "café"\n'.encode(), "lockstep_version": b"0.1.0"}
        for name, value in expected.items():
            assert file.attrs[name] == value, (name, file.attrs[name])
        assert set(file.attrs) == set(expected) | {"created", "digest", "header_checksum"}, set(file.attrs)
        assert len(file.attrs["digest"]) == 32

        tensors = tensors_of(file)
        assert set(tensors) == {"variables/conv1/kernel", "variables/conv1/half", "variables/empty",
                                "state/loss_scale", "state/counts"}, set(tensors)
        kernel = tensors["variables/conv1/kernel"]
        assert kernel.dtype == np.float32 and kernel.chunks is None
        assert np.array_equal(kernel[...], np.arange(105, dtype=np.float32).reshape(3, 1, 5, 7) + 0.5)
        assert kernel.attrs["dtype"] == b"f32" or kernel.attrs["dtype"] == b"float32", kernel.attrs["dtype"]
        assert kernel.attrs["checksum"].dtype == np.uint64
        half = tensors["variables/conv1/half"]
        assert half.dtype == np.uint16 and half.attrs["dtype"] in (b"bf16", b"bfloat16"), half.attrs["dtype"]
        assert half[...].tolist() == [0x3FC0, 0xC000]
        assert tensors["variables/empty"].shape == (2, 0)
        assert tensors["state/loss_scale"].shape == () and tensors["state/loss_scale"][()] == 1024.0
        assert tensors["state/counts"].dtype == np.int64
        assert tensors["state/counts"][...].tolist() == [-1, 1 << 40]

    assert run("verify", path).returncode == 0
    with h5py.File(path, "r+") as file:  # an edit by hand, with everything but the checksum in order
        file["state/counts"][0] = 7
    result = run("verify", path)
    assert result.returncode == 4 and "state/counts" in result.stderr, (result.returncode, result.stderr)
print("ok")
