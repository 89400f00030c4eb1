# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Mutated data files: each one either trains or ends with exit code 3 and one clear message that names a file, in time.

CTest runs it for some seconds with a fixed seed. By hand, with the environment that `ctest -V -R data_fuzz` prints:

    data_fuzz.py --seconds 3600 --seed 7 --keep /tmp/found     # longer; keeps what failed
    data_fuzz.py --only hdf5 --first 1234 --count 1            # one file again: the seed and its number make it
"""
import argparse
import concurrent.futures
import gzip
import io
import itertools
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

# For programs that are built with sanitizers: a report ends the program, and memory that there is not is no report.
os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1")

PROGRAM = os.environ["LOCKSTEP_PROGRAM"]
SEEDS_PROGRAM = os.environ["LOCKSTEP_HDF5_SEEDS"]
TIME_LIMIT = 100  # seconds; the trial of an HDF5 file may compute for 60

MODEL = """
model:
  layers: [flatten, {dense: {name: logits, units: 3}}]
  loss: softmax_cross_entropy
optimizer: {gradient_descent: {learning_rate: 0.001}}
train: {batch_size: 8, steps: 2}
checkpoint: {every_epochs: 0}
"""
TEXT_MODEL = """
model:
  layers:
    - embedding: {name: words, rows: 100, units: 4}
    - flatten
    - dense: {name: logits, units: 3}
  loss: softmax_cross_entropy
optimizer: {gradient_descent: {learning_rate: 0.001}}
train: {batch_size: 8, steps: 2}
checkpoint: {every_epochs: 0}
"""
# Small enough for every float32: a mutated number must not become an infinite loss.
SCALE = "  scale: 1e-38\n"


class Kind:
    """A configuration, its files, and which of them are mutated."""

    def __init__(self, name, data, files, mutated, model=MODEL):
        self.name, self.files, self.mutated = name, files, mutated
        self.config = f"seed: 1\nshards: 2\nthreads: 1\ndata:\n{data}{model}"


def idx(values, extents, code=8):
    return bytes([0, 0, code, len(extents)]) + b"".join(n.to_bytes(4, "big") for n in extents) + bytes(values)


def kinds(folder):
    rows = [[(i * 7 + j) % 16 for j in range(6)] + [i % 3] for i in range(32)]
    csv = "".join(",".join(map(str, row)) + "\n" for row in rows).encode()
    half = len(csv) // 2
    cut = csv.index(b"\n", half) + 1
    images = idx([value for row in rows for value in row[:6]], (32, 2, 3))
    labels = idx([row[6] for row in rows], (32,))
    text = "".join(f"{'abc'[i % 3]}\tthe word{i % 5} and \u00e4nother{i % 7}\n" for i in range(32)).encode()
    csv_data = f"  format: csv\n  path: data.csv\n{SCALE}"
    table = "id,colour,size,y\n" + "".join(f'{i},"{("red", "dark, ""blue""", "green")[i % 3]}",{i % 7 if i % 5 else "NA"},{"abc"[i % 3]}\n' for i in range(32))
    table_data = ("  format: csv\n  path: data.csv\n  header: true\n  columns: [colour, \"s*\"]\n  labels: y\n  classes: auto\n"
                  f"  categories: {{colour: auto}}\n  missing: {{size: 0}}\n{SCALE}")
    idx_data = f"  format: idx\n  images: images\n  labels: labels\n{SCALE}"
    text_data = "  format: text_tsv\n  path: data.tsv\n  label_column: 0\n  text_column: 1\n  max_length: 6\n  max_vocabulary: 90\n"
    found = [
        Kind("csv", csv_data, {"data.csv": csv}, ["data.csv"]),
        Kind("csv_table", table_data, {"data.csv": table.encode()}, ["data.csv"]),
        Kind("csv_gzip", csv_data, {"data.csv": gzip.compress(csv, mtime=0)}, ["data.csv"]),
        Kind("csv_parts", f"  format: csv\n  path: data*.csv\n{SCALE}", {"data1.csv": csv[:cut], "data2.csv": csv[cut:]},
             ["data1.csv", "data2.csv"]),
        Kind("idx", idx_data, {"images": images, "labels": labels}, ["images", "labels"]),
        Kind("idx_gzip", idx_data, {"images": gzip.compress(images, mtime=0), "labels": labels}, ["images"]),
        Kind("text", text_data, {"data.tsv": text}, ["data.tsv"], TEXT_MODEL),
    ]
    vectors = pathlib.Path(__file__).parents[1] / "vectors/records"
    npy_data = f"  format: npy\n  features: x.npy\n  labels: y.npy\n{SCALE}"
    found.append(Kind("npy", npy_data, {"x.npy": (vectors / "version1.npy").read_bytes(), "y.npy": (vectors / "labels.npy").read_bytes()},
                      ["x.npy", "y.npy"]))
    for name in ("stored.npz", "deflated.npz"):
        npz_data = f"  format: npy\n  path: {name}\n  features: x\n  labels: y\n{SCALE}"
        found.append(Kind(name[:-4] + "_npz", npz_data, {name: (vectors / name).read_bytes()}, [name]))
    for name in ("plain.tfrecord", "gzip.tfrecord"):
        tfrecord_data = f"  format: tfrecord\n  path: {name}\n  features: floats\n  labels: label\n{SCALE}"
        found.append(Kind(name.replace(".", "_"), tfrecord_data, {name: (vectors / name).read_bytes()}, [name]))
    binary_data = (f"  format: binary\n  path: cifar.bin\n  shape: [3, 2, 2]\n  layout: channels_first\n  features_offset: 1\n"
                   f"  labels_offset: 0\n{SCALE}")
    for name in ("cifar.bin", "cifar.bin.gz"):
        found.append(Kind("binary", binary_data, {"cifar.bin": (vectors / name).read_bytes()}, ["cifar.bin"]))
    jsonl_data = f"  format: jsonl\n  path: lines.jsonl\n  features: x\n  labels: y\n{SCALE}"
    found.append(Kind("jsonl", jsonl_data, {"lines.jsonl": (vectors / "lines.jsonl").read_bytes()}, ["lines.jsonl"]))
    vectors = vectors.parent
    pictures = {name: (vectors / name).read_bytes() for name in ("rgb.png", "rgb.jpg")}
    form = f"  size: [6, 5]\n{SCALE}"
    for name, picture in pictures.items():
        files = {f"set/{folder}/{i}{name[3:]}": picture for folder in "abc" for i in range(4)}
        found.append(Kind(name.replace(".", "_"), f"  format: images\n  path: set\n{form}", files, [f"set/a/0{name[3:]}"]))
    for kind in (tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        shard = io.BytesIO()
        with tarfile.open(fileobj=shard, mode="w", format=kind) as out:
            for i in range(12):
                for name, content in (("jpg", pictures["rgb.jpg"]), ("cls", b"%d" % (i % 3))):
                    info = tarfile.TarInfo(f"{'long/' * (30 * (i % 2))}{i}.{name}")
                    info.size = len(content)
                    out.addfile(info, io.BytesIO(content))
        webdataset = f"  format: webdataset\n  path: a.tar\n{form}"
        found.append(Kind(f"webdataset_{kind}", webdataset, {"a.tar": shard.getvalue()}, ["a.tar"]))
    seeds = {path.name: path.read_bytes() for path in sorted(folder.glob("*.h5"))}
    for name, content in seeds.items():
        files = dict(seeds) if name == "virtual.h5" else {name: content}
        mutated = [name, "old_chunked.h5"] if name == "virtual.h5" else [name]
        data = f"  format: hdf5\n  path: {name}\n  features: train/x\n  labels: train/label\n{SCALE}"
        found.append(Kind(f"hdf5_{name[:-3]}", data, files, mutated))
    return found


INTERESTING = [0, 1, 0x7F, 0x80, 0xFE, 0xFF]


def mutate(content, rng):
    """One to eight changes: bits, bytes, numbers of 2 to 8 bytes, cut, repeated or removed pieces."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        if not data:
            break
        at = rng.randrange(len(data))
        if len(data) > 600 and rng.random() < 0.3:
            at = rng.randrange(600)  # headers are at the start
        size = rng.choice([1, 2, 4, 8])
        action = rng.randrange(9)
        if action == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif action == 1:
            data[at] = rng.randrange(256)
        elif action == 2:
            data[at] = rng.choice(INTERESTING)
        elif action == 3:
            data[at:at + size] = bytes([rng.choice(INTERESTING)]) * size
        elif action == 4:
            number = (int.from_bytes(data[at:at + size], "little") + rng.choice([-16, -1, 1, 16])) % (1 << 8 * size)
            data[at:at + size] = number.to_bytes(size, "little")
        elif action == 5:
            other = rng.randrange(len(data))
            data[at:at + 4 * size] = data[other:other + 4 * size]
        elif action == 6:
            data[at:at] = data[at:at + rng.randrange(1, 40)]
        elif action == 7:
            del data[at:at + rng.randrange(1, 40)]
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def fault(code, err, files):
    """What is wrong with how the program ended; empty: nothing."""
    if code == 0:
        return ""
    if code != 3:
        return f"exit code {code}"
    errors = re.findall(r"^error: .*", err, re.MULTILINE)
    if len(errors) != 1:
        return f"{len(errors)} messages"
    if "ends the process (exit code" in errors[0]:
        return "the trial of the file exits: a sanitizer's report in the child?"
    if not any(name in errors[0] for name in files):
        return "the message names no file"
    if re.search(r"terminate called|Sanitizer: |runtime error: |HDF5-DIAG|invariant|std::|\n *#\d", err):
        return "no clear message"
    return ""


def run(folder):
    command = [PROGRAM, "train", folder / "config.yaml", "--run-dir", folder / "run", "--quiet"]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT, stdin=subprocess.DEVNULL)
        return ended.returncode, ended.stderr.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        return "none: it did not end in time", ""


class Fuzzer:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        seeds = folder / "seeds"
        seeds.mkdir()
        subprocess.run([SEEDS_PROGRAM, seeds], check=True, timeout=60)
        self.kinds = [kind for kind in kinds(seeds) if kind.name.startswith(options.only)]

    def case(self, number, mutated=True):
        """Runs file `number`; returns (kind, exit code, fault)."""
        rng = random.Random(f"{self.options.seed}/{number}")
        kind = self.kinds[number % len(self.kinds)]
        folder = self.folder / str(number)
        folder.mkdir()
        chosen = rng.choice(kind.mutated)
        for name, content in kind.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(mutate(content, rng) if mutated and name == chosen else content)
        (folder / "config.yaml").write_text(kind.config, encoding="ascii")
        begin = time.monotonic()
        code, err = run(folder)
        wrong = fault(code, err, kind.files)
        if wrong and self.options.keep:
            (folder / "stderr").write_text(err, encoding="utf-8")
            shutil.copytree(folder, pathlib.Path(self.options.keep) / f"{kind.name}-{self.options.seed}-{number}", dirs_exist_ok=True)
        shutil.rmtree(folder)
        crashed = re.search(r"the library that reads", err) is not None
        return number, kind.name, code, wrong, err, crashed, time.monotonic() - begin

    def good_files_train(self):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            cases = list(pool.map(lambda i: self.case(i, mutated=False), range(len(self.kinds))))
        for _, name, code, _, err, _, _ in cases:
            if code != 0:
                sys.exit(f"the unchanged files of {name} do not train: exit code {code}\n{err}")

    def mutated_files(self):
        end = time.monotonic() + self.options.seconds
        numbers = itertools.count(self.options.first)
        if self.options.count:
            numbers = iter(range(self.options.first, self.options.first + self.options.count))
        trained = refused = crashes = wrongs = 0
        slowest = 0.0
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            running = set()
            while True:
                while len(running) < 2 * self.options.jobs and (self.options.count or time.monotonic() < end):
                    number = next(numbers, None)
                    if number is None:
                        break
                    running.add(pool.submit(self.case, number))
                if not running:
                    break
                ended, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in ended:
                    number, name, code, wrong, err, crashed, seconds = future.result()
                    slowest = max(slowest, seconds)
                    trained += code == 0
                    refused += code == 3
                    crashes += crashed
                    wrongs += bool(wrong)
                    if wrong or self.options.verbose:
                        print(f"{name}, file {number}: {wrong or code}\n{err}", flush=True)
        print(f"{trained + refused + wrongs} mutated files, seed {self.options.seed}: {trained} trained, {refused} refused, "
              f"{crashes} of them because the library crashes; {wrongs} ended otherwise; the slowest took {slowest:.1f} s")
        return wrongs == 0 and trained > 0 and refused > 0 or bool(self.options.count and not wrongs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=12, help="how long new files are begun (default: 12)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--count", type=int, default=0, help="this many files instead of --seconds")
    parser.add_argument("--only", default="", help="kinds that begin with this: csv, idx, text, hdf5, hdf5_virtual, ...")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time (default: 2)")
    parser.add_argument("--keep", help="folder for the files at which the program failed")
    parser.add_argument("--verbose", action="store_true", help="print every message")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-fuzz-"))
    try:
        fuzzer = Fuzzer(options, folder)
        fuzzer.good_files_train()
        sys.exit(0 if fuzzer.mutated_files() else 1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
