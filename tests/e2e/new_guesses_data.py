# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the data sets of new_guesses_test.py: `python new_guesses_data.py FOLDER`. Prints a line "NAME reason" for each that a missing
module prevents."""
import gzip
import io
import json
import pathlib
import struct
import sys
import tarfile
import zlib

import numpy

MAKERS = []
N = 120
random = numpy.random.default_rng(11)
KIND = numpy.arange(N) * 7 % 3  # three classes, in no order that a counter has
BINARY = numpy.arange(N) * 5 % 7 % 2
NAMES = numpy.array(["rose", "lily", "tulip"])[KIND]
ROWS = random.normal(size=(N, 4)).round(3) + KIND[:, None]
MEASURED = (ROWS @ [1, -2, 0.5, 3] + 0.1).round(4)
PICTURES = random.integers(0, 255, (N, 12, 10, 3)).astype("u1")


def maker(function):
    MAKERS.append(function)
    return function


def table(path, header, columns, delimiter=","):
    lines = [delimiter.join(str(value) for value in row) for row in zip(*columns)]
    text = "\n".join(([header] if header else []) + lines) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")


def png(pixels):
    height, width, channels = pixels.shape
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def tfrecords(path, examples):
    def field(number, data):
        length, size = b"", len(data)
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + data

    with open(path, "wb") as file:
        for example in examples:
            features = b""
            for name, value in example.items():
                if isinstance(value, bytes):
                    feature = field(1, field(1, value))
                elif isinstance(value, (int, numpy.integer)):
                    feature = field(3, field(1, bytes([int(value)])))  # below 128
                else:
                    feature = field(2, field(1, numpy.asarray(value, "<f4").tobytes()))
                features += field(1, field(1, name.encode()) + field(2, feature))
            data = field(1, features)
            head = struct.pack("<Q", len(data))
            file.write(head + struct.pack("<I", crc32c(head)) + data + struct.pack("<I", crc32c(data)))


def hdf5(path, **datasets):
    import h5py
    with h5py.File(path, "w") as file:
        for name, data in datasets.items():
            data = numpy.asarray(data)
            file[name.replace("__", "/")] = data.astype(h5py.string_dtype()) if data.dtype.kind == "U" else data


@maker
def tables(to):
    columns = list(ROWS.T)
    table(to / "named.csv", "a,b,c,d,species", [*columns, NAMES])
    table(to / "plain.csv", "", [*columns, NAMES])
    table(to / "unique.csv", "", [*[numpy.append(9.5, c) for c in columns], numpy.append("orchid", NAMES)])
    table(to / "wine.data", "", [KIND + 1, *columns, numpy.arange(N) * 37 % 101 + 300])
    table(to / "pandas.csv", "0,1,2,3,4", [*columns, BINARY])
    table(to / "years.csv", "2019,2020,kind", [*columns[:2], NAMES])
    table(to / "year_kinds.csv", "2019,2020,2021", [NAMES, *columns[:2]])
    table(to / "prices.csv", "area,rooms,price", [columns[0], KIND + 1, (MEASURED * 1000).round(1)])
    table(to / "quality.csv", '"acid";"sugar";"quality"', [*columns[:2], KIND + 4], ";")
    table(to / "index.csv", ",a,b,target", [numpy.arange(N), *columns[:2], MEASURED])
    table(to / "tabs.tsv", "a\tb\tclass", [*columns[:2], BINARY], "\t")
    table(to / "packed.csv.gz", "a,b,y", [*columns[:2], KIND])
    table(to / "id_last.csv", "a,b,label,id", [*columns[:2], NAMES, numpy.arange(N) + 1000])
    table(to / "churn.csv", "date,calls,minutes,churn", [[f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(N)], *columns[:2],
                                                        numpy.array(["False", "True"])[BINARY]])
    table(to / "spectra.csv", "400.0,400.5,401.0,401.5,class", [*columns, NAMES])
    table(to / "missing.csv", "", [numpy.append("NA", columns[0]), *[numpy.append(0.25, c) for c in columns[1:]], numpy.append("rose", NAMES)])
    pixels = PICTURES[:, :8, :8, 0].reshape(N, 64)
    table(to / "pixels.csv", ",".join(["label", *(f"pixel{i}" for i in range(64))]), [KIND, *pixels.T])
    table(to / "pixels_plain.csv", "", [KIND, *pixels.T])
    table(to / "split.csv", "a,b,split,target", [*columns[:2], ["train"] * 90 + ["test"] * 30, MEASURED])
    table(to / "blanks.txt", "", [*columns, KIND], " ")
    table(to / "apart" / "train.csv", "a,b,y", [c[:40] for c in (*columns[:2], MEASURED)])
    table(to / "apart" / "test.csv", "a,b,y", [c[40:] for c in (*columns[:2], MEASURED)])
    table(to / "kaggle" / "train.csv", "id,a,b,target", [c[:80] for c in (numpy.arange(N), *columns[:2], BINARY)])
    table(to / "kaggle" / "test.csv", "id,a,b", [c[80:] for c in (numpy.arange(N), *columns[:2])])
    table(to / "patients.csv", "patient_id,a,b,sick", [numpy.arange(N) // 10 + 500, *columns[:2], BINARY])
    table(to / "two_labels.csv", "a,b,target,class", [*columns[:2], MEASURED, NAMES])
    table(to / "excel.csv", "sep=;\na;b;label", [*columns[:2], NAMES], ";")
    table(to / "comments.csv", "# made by a program, on a day, by people\n#\na,b,label", [*columns[:2], NAMES])
    table(to / "numpy.csv", "# a,b,label", [*columns[:2], KIND])
    table(to / "few.csv", "colour,size,kind", [NAMES[:9], numpy.array(["small", "large"])[BINARY[:9]], NAMES[[0, 3, 6, 1, 4, 7, 2, 5, 8]]])
    table(to / "many_classes.csv", "a,b,class", [numpy.tile(columns[0], 10), numpy.tile(columns[1], 10), numpy.arange(10 * N) * 7 % 150])
    table(to / "unusual.csv", "relapse,age,ward", [BINARY, columns[0], NAMES])
    table(to / "titanic.csv", "PassengerId,Survived,Age,Port", [numpy.arange(N) + 1, BINARY, columns[0], NAMES])


@maker
def categories(to):
    """One column for each value of a category, as pandas.get_dummies writes them."""
    columns = list(ROWS.T)
    hot = list(numpy.eye(3, dtype=int)[KIND].T)
    truth = [numpy.array(["False", "True"])[column] for column in hot]
    table(to / "dummies.csv", "a,b,kind_lily,kind_rose,kind_tulip", [*columns[:2], *hot])
    table(to / "first_dummies.csv", "class_0,class_1,class_2,a,b", [*hot, *columns[:2]])
    table(to / "truth.csv", "a,b,kind_lily,kind_rose,kind_tulip", [*columns[:2], *truth])
    table(to / "unnamed_dummies.csv", "a,b,lily,rose,tulip", [*columns[:2], *hot])
    table(to / "encoded.csv", "a,b,price,sex_f,sex_m,port_C,port_Q,port_S", [*columns[:2], MEASURED, BINARY, 1 - BINARY, *hot])
    table(to / "encoded_inside.csv", "a,port_C,port_Q,port_S,price", [columns[0], *hot, MEASURED])
    table(to / "several.csv", "a,b,label_new,label_old,label_red", [*columns[:2], (KIND == 0).astype(int), BINARY, (KIND != 1).astype(int)])
    table(to / "dropped.csv", "a,b,species_rose,species_tulip", [*columns[:2], *hot[1:]])
    bits = list((PICTURES[:, :8, :8, 0].reshape(N, 64) > 127).astype(int).T)
    table(to / "bits.data", "", [*bits, *hot], " ")
    table(to / "plain_sets" / "train.txt", "", [c[:80] for c in (*columns, KIND)], "  ")
    table(to / "plain_sets" / "test.txt", "", [c[80:] for c in (*columns, KIND)], "  ")


@maker
def texts(to):
    words = {0: "money winner prize free", 1: "lunch meeting friend report"}
    sentence = [" ".join(random.choice((words[b] + " the a of and to in").split(), 9)) for b in BINARY]
    table(to / "prose.tsv", "id\ttext\tlabel", [numpy.arange(N) + 5, sentence, numpy.array(["spam", "ham"])[BINARY]], "\t")
    table(to / "sms.tsv", "", [numpy.array(["spam", "ham"])[BINARY], sentence], "\t")
    table(to / "topics.tsv", "", [["train"] * 90 + ["test"] * 30, [("a,b", "b", "a")[k] for k in KIND], sentence], "\t")
    (to / "poem.txt").write_text("\n".join(sentence * 3), encoding="utf-8")
    for i, text in enumerate(sentence):
        path = to / "mails" / ("spam", "ham")[BINARY[i]] / f"{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (to / "mails" / ".ipynb_checkpoints").mkdir()
    (to / "mails" / ".ipynb_checkpoints" / "1.txt").write_text("x", encoding="utf-8")
    for i, text in enumerate(sentence):
        part, kind = ("train", "test")[i % 4 == 0], ("spam", "ham")[BINARY[i]]
        for folder in (kind, "unsup") if part == "train" else (kind,):
            path = to / "imdb" / part / folder / f"{i}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    lines = lambda name, rows: (to / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    lines("reviews.jsonl", [{"id": i, "text": t, "label": ("bad", "good")[b]} for i, (t, b) in enumerate(zip(sentence, BINARY))])
    lines("fields.jsonl", [{"id": i, "width": a, "height": b, "class": int(k)} for i, (a, b, k) in enumerate(zip(*ROWS.T[:2], KIND))])
    lines("targets.jsonl", [{"x": list(x), "y": float(y)} for x, y in zip(ROWS, MEASURED)])
    lines("counts.jsonl", [{"x": list(x), "target": int(y * 100) + 5000} for x, y in zip(ROWS, MEASURED)])


@maker
def hdf5_files(to):
    ids, times = numpy.arange(N) + 1, numpy.arange(N) * 3.0
    hdf5(to / "ids.h5", id=ids, images=PICTURES, label=KIND.astype("i8"), time=times)
    hdf5(to / "species.h5", spectra=ROWS, species=NAMES, sample_id=ids)
    hdf5(to / "booleans.h5", x=ROWS, is_sick=BINARY.astype(bool))
    hdf5(to / "one_hot.h5", x=ROWS, y=numpy.eye(3, dtype="u1")[KIND])
    hdf5(to / "many.h5", features=ROWS, labels=numpy.stack([KIND == 0, BINARY == 1, KIND != 1], 1).astype("u1"))
    hdf5(to / "groups.h5", train__image=PICTURES[:30], train__label=KIND[:30], test__image=PICTURES[30:], test__label=KIND[30:])
    hdf5(to / "three_sets.h5", train__x=ROWS[:30], train__y=MEASURED[:30], val__x=ROWS[30:60], val__y=MEASURED[30:60], test__x=ROWS[60:],
         test__y=MEASURED[60:])
    (to / "cats").mkdir()
    for part, rows in (("train", slice(0, 50)), ("test", slice(50, N))):
        hdf5(to / "cats" / f"{part}_cats.h5", list_classes=numpy.array([b"cat", b"no cat"]), **{f"{part}_set_x": PICTURES[rows], f"{part}_set_y": BINARY[rows]})
    hdf5(to / "measured.h5", event=ids, x=ROWS, energy=MEASURED)
    hdf5(to / "volumes.h5", scans=random.normal(size=(N, 8, 9, 10)).astype("f4"), y=BINARY, key=ids)
    record = numpy.zeros(N, [("id", "i4"), ("p", "f4", 3), ("kind", "S5"), ("label", "i2")])
    record["id"], record["p"], record["kind"], record["label"] = ids, ROWS[:, :3], NAMES.astype("S"), BINARY
    hdf5(to / "records.h5", events=record)
    with open(to / "channels.mat", "wb") as file:  # as MATLAB has it: samples are the last axis there
        import h5py
        buffer = io.BytesIO()
        with h5py.File(buffer, "w", userblock_size=512) as data:
            data["X"] = numpy.moveaxis(PICTURES, 3, 1)
            data["y"] = KIND.astype("f8").reshape(N, 1) + 1
        file.write(b"MATLAB 7.3 MAT-file".ljust(512, b" ") + buffer.getvalue()[512:])


@maker
def netcdf_files(to):
    import netCDF4
    with netCDF4.Dataset(to / "flowers.nc", "w") as file:
        for name, size in (("time", N), ("row", 12), ("column", 10), ("sample", None)):
            file.createDimension(name, size)
        file.createVariable("time", "f8", ("time",))[:] = numpy.arange(N) * 6
        file.createVariable("image", "f4", ("time", "row", "column"))[:] = PICTURES[..., 0]
        file.createVariable("species", str, ("time",))[:] = NAMES.astype(object)


@maker
def xarray_files(to):
    import xarray
    xarray.Dataset({"x": (("sample", "feature"), ROWS), "healthy": (("sample",), BINARY.astype(bool)), "age": (("sample",), MEASURED)},
                   {"sample": numpy.arange(N) + 7}).to_netcdf(to / "patients.nc", engine="netcdf4")


@maker
def numpy_files(to):
    numpy.savez(to / "pair.npz", x=ROWS, y=KIND)
    numpy.savez_compressed(to / "mnist.npz", x_train=PICTURES[:40, :10, :10, 0], y_train=KIND[:40].astype("u1"), x_test=PICTURES[40:, :10, :10, 0],
                           y_test=KIND[40:].astype("u1"))
    numpy.savez(to / "floats.npz", data=ROWS, target=KIND.astype("f8"))
    numpy.savez(to / "sick.npz", features=ROWS, is_sick=BINARY.astype(bool), names=NAMES.astype(object))
    numpy.savez(to / "torch.npz", images=numpy.moveaxis(PICTURES, 3, 1), labels=KIND)
    numpy.savez(to / "ages.npz", x=numpy.tile(ROWS, (10, 1)), y=numpy.arange(10 * N) * 7 % 90)
    numpy.savez(to / "soft.npz", x=ROWS, labels=numpy.eye(3, dtype="f4")[KIND])
    numpy.savez(to / "positions.npz", images=PICTURES, positions=ROWS[:, :2], index=numpy.arange(N))
    (to / "arrays").mkdir()
    numpy.save(to / "arrays" / "X.npy", ROWS)
    numpy.save(to / "arrays" / "y.npy", BINARY)
    (to / "four").mkdir()
    for part, rows in (("train", slice(0, 50)), ("val", slice(50, N))):
        numpy.save(to / "four" / f"x_{part}.npy", ROWS[rows])
        numpy.save(to / "four" / f"y_{part}.npy", KIND[rows])


@maker
def images(to):
    def write(folder, pictures, kinds):
        for i, (picture, kind) in enumerate(zip(pictures, kinds)):
            path = to / folder / str(kind) / f"{i:04}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(picture))

    write("flowers", PICTURES, NAMES)
    for name in (".ipynb_checkpoints", "__MACOSX"):
        (to / "flowers" / name).mkdir()
        (to / "flowers" / name / "._0000.png").write_bytes(b"no image")
    write("archive/pets", PICTURES[:40], NAMES[:40])
    (to / "archive" / "__MACOSX").mkdir()
    for name in ("._0000.png", "Thumbs.db", ".DS_Store"):
        (to / "flowers" / "rose" / name).write_bytes(b"no image")
    for part, rows in (("train", slice(0, 40)), ("val", slice(40, 70)), ("test", slice(70, N))):
        write(f"sets/{part}", PICTURES[rows], NAMES[rows])
    (to / "sets" / ".DS_Store").write_bytes(b"x")
    with tarfile.open(to / "shard.tar", "w") as archive:
        for i in range(N):
            for name, data in ((f"._{i:04}.png", b"no image"), (f"{i:04}.png", png(PICTURES[i])), (f"{i:04}.cls", str(KIND[i]).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    with tarfile.open(to / "names.tar", "w") as archive:
        for i in range(N):
            for name, data in ((f"{i:04}.png", png(PICTURES[i])), (f"{i:04}.cls", NAMES[i].encode())):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    (to / "idx").mkdir()
    grey = PICTURES[..., 0]
    for begin, rows in (("train", slice(0, 80)), ("t10k", slice(80, N))):
        (to / "idx" / f"{begin}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, len(grey[rows]), 12, 10) + grey[rows].tobytes())
        (to / "idx" / f"{begin}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, len(grey[rows])) + KIND[rows].astype("u1").tobytes())
    tfrecords(to / "examples.tfrecord", [{"id": i, "x": row, "label": k} for i, (row, k) in enumerate(zip(ROWS, KIND))])
    tfrecords(to / "photos.tfrecord", [{"image/encoded": png(p), "image/class/label": k, "image/class/text": n.encode(), "image/height": 12}
                                       for p, k, n in zip(PICTURES, KIND, NAMES)])
    tfrecords(to / "raw.tfrecord", [{"image_raw": p.tobytes(), "label": k, "height": 12, "width": 10, "depth": 3} for p, k in zip(PICTURES, KIND)])


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for make in MAKERS:
        try:
            make(folder)
        except ImportError as error:
            print(make.__name__, error)
