#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Makes webdataset.h5, the vectors of tests/unit/data/webdataset_test.cpp.

    python3 tests/vectors/make_webdataset_vectors.py             # needs numpy and h5py

Tar archives as Python's tarfile writes them, one dataset of bytes each: in the formats ustar, pax and gnu, with WebDataset's layout
(https://github.com/webdataset/webdataset): members of a sample have the same key. The attribute `members` has a line per regular file:
archive, offset of its contents, bytes, name. Images are those of images.h5.
"""
import io
import json
import pathlib
import tarfile

import h5py
import numpy as np

HERE = pathlib.Path(__file__).parent
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "pax": tarfile.PAX_FORMAT, "gnu": tarfile.GNU_FORMAT}
LONG = "a-folder-with-a-long-name-" * 4 + "/deep"


def images():
    with h5py.File(HERE / "images.h5") as file:
        data, start, found = file["files"][()].tobytes(), 0, {}
        for line in file.attrs["names"].decode().split("\n"):
            name, size = line.split()[:2]
            found[name] = data[start:start + int(size)]
            start += int(size)
    return found


def archive(kind, members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=FORMATS[kind]) as out:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.mtime = 1.5e9
            if data is None:
                info.type = tarfile.DIRTYPE
                out.addfile(info)
            else:
                info.size = len(data)
                out.addfile(info, io.BytesIO(data))
    return file.getvalue()


def main():
    pictures = images()
    samples = (("s/0001", "rgb.png", 2, "cat"), ("s/0002", "grey.png", 0, "dog"), (f"{LONG}/0003", "rgb.jpg", 7, "cat"),
               ("s/0004", "palette.png", 1, "emu"))
    members = [("s", None)]
    for key, picture, label, name in samples:
        members += [(f"{key}.{picture.split('.')[1]}", pictures[picture]), (f"{key}.cls", b"%d\n" % label),
                    (f"{key}.json", json.dumps({"kind": name, "number": label, "text": "x" * 700}).encode())]
    members += [("__meta__", b"no sample"), ("s/readme", b"")]
    lines = []
    with h5py.File(HERE / "webdataset.h5", "w") as out:
        for kind in FORMATS:
            data = archive(kind, members)
            out.create_dataset(kind, data=np.frombuffer(data, np.uint8), compression="gzip", compression_opts=9)
            with tarfile.open(fileobj=io.BytesIO(data)) as file:
                lines += [f"{kind} {member.offset_data} {member.size} {member.name}" for member in file if member.isreg()]
        out.attrs["members"] = np.bytes_("\n".join(lines))
        out.attrs["generator"] = np.bytes_("tests/vectors/make_webdataset_vectors.py")
    print(f"{HERE / 'webdataset.h5'}: {(HERE / 'webdataset.h5').stat().st_size} bytes")


if __name__ == "__main__":
    main()
