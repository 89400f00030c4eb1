#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Lockstep's input compared with PyTorch's DataLoader and tf.data, in turn on the same files: samples per second.

    bench/loaders.py [--build DIR] [--folder DIR] [--torch PYTHON] [--tensorflow PYTHON] [--scale X] [--rounds N]

A folder of JPEG files, resized; bytes of 32 x 32 x 3 in HDF5 with pad-and-crop, flip and normalisation; a table in CSV; TFRecords of raw
bytes. Each program has one core, and then two: PyTorch has then two worker processes, tf.data two threads in each stage, Lockstep two
compute and two reader threads. Lockstep trains a net that computes almost nothing, which the others do not: its rate is the
difference of runs of two lengths. The table is read once into memory by Lockstep, and counted from the start of the program.
The files are in the page cache. Needs a Python with numpy, h5py and Pillow; one with torch and torchvision, one with tensorflow: who is
missing is left out.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

BATCH = 256
CONFIG = """
shards: 2
data: {%s}
model: {layers: [%s{dense: {units: 4}}], loss: softmax_cross_entropy}
optimizer: {gradient_descent: {learning_rate: 1.0e-9}}
train: {batch_size: %d, epochs: 1}
summary: {every_steps: 1000000}
checkpoint: {every_epochs: 0}
"""
# Name: the section data, the layers before the dense one.
LOCKSTEP = {
    "jpeg": ("format: images, path: jpeg, size: [128, 128], scale: 0.0039, memory_gb: 0.03, block_samples: 8", "global_avg_pool, "),
    "hdf5": ("format: hdf5, path: x.h5, features: x, labels: y, scale: 0.0039, mean: [0.49, 0.48, 0.45], std: [0.25, 0.24, 0.26], "
             "train: {transforms: [{random_crop: {padding: 4}}, random_flip]}", "global_avg_pool, "),
    "csv": ("format: csv, path: x.csv", ""),
    "tfrecord": ("format: tfrecord, path: x.tfrecord, features: x, labels: y, shape: [32, 32, 3], dtype: uint8, scale: 0.0039, memory_gb: 0.012, "
                 "block_samples: 64", "global_avg_pool, "),
}


def make_files(folder, scale):
    import h5py
    import numpy
    import PIL.Image
    rng = numpy.random.default_rng(0)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "vectors"))
    import make_record_vectors as records
    import readers
    records.crc32c = readers.fast_crc32c()
    counts = {"jpeg": int(1600 * scale), "hdf5": int(40000 * scale), "csv": int(60000 * scale), "tfrecord": int(40000 * scale)}
    for i in range(counts["jpeg"]):
        (folder / "jpeg" / f"class{i % 4}").mkdir(parents=True, exist_ok=True)
        small = rng.integers(0, 256, (12, 16, 3), dtype=numpy.uint8)
        PIL.Image.fromarray(small).resize((320, 240), PIL.Image.BICUBIC).save(folder / "jpeg" / f"class{i % 4}" / f"{i:05}.jpg", quality=90)
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", data=rng.integers(0, 256, (counts["hdf5"], 32, 32, 3), dtype=numpy.uint8), chunks=(64, 32, 32, 3))
        file["y"] = numpy.arange(counts["hdf5"]) % 4
    rows = "".join(",".join([f"{v:.5f}" for v in row] + [str(i % 4)]) + "\n" for i, row in enumerate(rng.normal(size=(2000, 64))))
    (folder / "x.csv").write_text(rows * (counts["csv"] // 2000))
    counts["csv"] = counts["csv"] // 2000 * 2000
    some = b"".join(records.framed(records.example(x=records.byte_list(rng.bytes(3072)), y=records.int64_list([i % 4]))) for i in range(500))
    (folder / "x.tfrecord").write_bytes(some * (counts["tfrecord"] // 500))
    counts["tfrecord"] = counts["tfrecord"] // 500 * 500
    return counts


def counted(batches, count):
    """Samples per second of a second pass: the first one warms up."""
    for _ in batches():
        pass
    begin, samples = time.monotonic(), 0
    for batch in batches():
        samples += len(batch[1])
    assert samples == count, (samples, count)
    return count / (time.monotonic() - begin)


def torch_rate(folder, what, cores):
    import numpy
    import torch
    from torch.utils.data import DataLoader, Dataset, TensorDataset
    from torchvision import datasets, transforms
    torch.set_num_threads(1)

    class Hdf5(Dataset):
        def __init__(self):
            import h5py
            with h5py.File(folder / "x.h5") as file:
                self.x = torch.from_numpy(file["x"][:]).permute(0, 3, 1, 2).contiguous()
                self.y = file["y"][:]
            self.change = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), transforms.ConvertImageDtype(torch.float32),
                                              transforms.Normalize((0.49, 0.48, 0.45), (0.25, 0.24, 0.26))])

        def __len__(self):
            return len(self.y)

        def __getitem__(self, i):
            return self.change(self.x[i]), self.y[i]
    if what == "tfrecord":
        return None
    begin = time.monotonic()
    if what == "csv":
        table = numpy.loadtxt(folder / "x.csv", delimiter=",", dtype=numpy.float32)
        data = TensorDataset(torch.from_numpy(table[:, :-1]), torch.from_numpy(table[:, -1]).long())
        count = sum(len(y) for _, y in DataLoader(data, batch_size=BATCH, shuffle=True))
        return count / (time.monotonic() - begin)
    data = Hdf5() if what == "hdf5" else datasets.ImageFolder(folder / "jpeg", transforms.Compose([transforms.Resize((128, 128)), transforms.ToTensor()]))
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=0 if cores == 1 else cores, persistent_workers=cores > 1)
    return counted(lambda: iter(loader), len(data))


def tensorflow_rate(folder, what, cores):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf.config.threading.set_inter_op_parallelism_threads(cores)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    many = dict(num_parallel_calls=cores)
    if what == "jpeg":
        files = sorted((folder / "jpeg").glob("*/*.jpg"))
        data = tf.data.Dataset.from_tensor_slices(([str(f) for f in files], [int(f.parent.name[5:]) for f in files])).shuffle(len(files))
        data = data.map(lambda f, y: (tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(f)), (128, 128), antialias=True) / 255, y), **many).batch(BATCH)
        count = len(files)
    elif what == "hdf5":
        import h5py
        with h5py.File(folder / "x.h5") as file:
            x, y = file["x"][:], file["y"][:]
        count = len(y)

        def change(x, y):
            x = tf.image.random_crop(tf.pad(x, [[4, 4], [4, 4], [0, 0]]), (32, 32, 3))
            x = tf.cast(tf.image.random_flip_left_right(x), tf.float32) / 255
            return (x - (0.49, 0.48, 0.45)) / (0.25, 0.24, 0.26), y
        data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(10000).map(change, **many).batch(BATCH)
    elif what == "csv":
        count = (folder / "x.csv").read_bytes().count(b"\n")
        data = tf.data.TextLineDataset(str(folder / "x.csv")).batch(BATCH)

        def parse(lines):
            columns = tf.io.decode_csv(lines, [0.0] * 65)
            return tf.stack(columns[:-1], 1), tf.cast(columns[-1], tf.int32)
        data = data.map(parse, **many)
    else:
        count = COUNTS["tfrecord"]

        def parse(records):
            values = tf.io.parse_example(records, {"x": tf.io.FixedLenFeature([], tf.string), "y": tf.io.FixedLenFeature([], tf.int64)})
            return tf.cast(tf.reshape(tf.io.decode_raw(values["x"], tf.uint8), (-1, 32, 32, 3)), tf.float32) / 255, values["y"]
        data = tf.data.TFRecordDataset(str(folder / "x.tfrecord")).batch(BATCH).map(parse, **many)
    data = data.prefetch(2)
    return counted(lambda: iter(data), count)


COUNTS = {}


def lockstep_rate(program, folder, what, cores):
    section, before = LOCKSTEP[what]
    (folder / "c.yaml").write_text(CONFIG % (section, before, BATCH))

    def seconds(epochs):
        shutil.rmtree(folder / "run", ignore_errors=True)
        command = [program, "train", folder / "c.yaml", "--run-dir", folder / "run", "--threads", str(cores), "--set", f"train.epochs={epochs}"]
        if what != "csv":
            command += ["--set", f"data.reader_threads={cores}"]
        if what in ("jpeg", "tfrecord"):
            command += ["--set", "train.shuffle=blocks", "--set", "train.shuffle_window=2"]
        begin = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600)
        return time.monotonic() - begin
    if what == "csv":
        return COUNTS[what] / seconds(1)
    return 2 * COUNTS[what] / (seconds(3) - seconds(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--folder", help="for the files; default: a temporary one")
    parser.add_argument("--torch", help="a Python with torch and torchvision")
    parser.add_argument("--tensorflow", help="a Python with tensorflow")
    parser.add_argument("--scale", type=float, default=1, help="of the number of samples")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(LOCKSTEP), help="one of the sets")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        who, folder, what, counts = arguments.measure
        COUNTS.update(json.loads(counts))
        cores = len(os.sched_getaffinity(0))
        print(json.dumps((torch_rate if who == "torch" else tensorflow_rate)(pathlib.Path(folder), what, cores)))
        return
    program = next(arguments.build.rglob("bin/lockstep")).resolve()
    others = {"torch": arguments.torch, "tensorflow": arguments.tensorflow}
    allowed = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        COUNTS.update(make_files(folder, arguments.scale))
        print(f"load before: {os.getloadavg()[0]:.1f}; samples per second, the best of {arguments.rounds} rounds, on 1 and on 2 cores", flush=True)
        for what in LOCKSTEP if not arguments.only else [arguments.only]:
            best = {}
            for cores in (1, 2):
                os.sched_setaffinity(0, allowed[:cores])
                for _ in range(arguments.rounds):
                    rates = {"Lockstep": lockstep_rate(program, folder, what, cores)}
                    for who, python in others.items():
                        if python:
                            done = subprocess.run([python, __file__, "--measure", who, folder, what, json.dumps(COUNTS)], capture_output=True, text=True, timeout=900)
                            rates[who] = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else print(done.stderr[-800:])
                    for who, rate in rates.items():
                        if rate:
                            best[who, cores] = max(best.get((who, cores), 0), rate)
                os.sched_setaffinity(0, allowed)
            for who in ("Lockstep", *others):
                print(f"{what:<10}{who:<12}" + "".join(f"{best[who, c]:10.0f}" if (who, c) in best else "         -" for c in (1, 2)), flush=True)


if __name__ == "__main__":
    main()
