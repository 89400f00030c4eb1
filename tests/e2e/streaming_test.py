# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets that are larger than data.memory_gb: the bits of the same set in memory, bounded memory, clear errors."""
import gzip
import os
import pathlib
import re
import subprocess
import unittest

from lockstep_run import DIGITS_DATA, LockstepTest, checkpoints, main, newest_step, python_with_h5py, records, wait_until

PYTHON = python_with_h5py()

# The digits in three files with different numbers of rows, compressed chunks of 16 samples, pixels as bytes.
MAKE_DIGITS = """
import gzip, sys, h5py, numpy
rows = numpy.loadtxt(gzip.open(sys.argv[1], "rt"), delimiter=",")
cuts = [0, 600, 1107, 1500, len(rows)]
for i, (first, last) in enumerate(zip(cuts, cuts[1:])):
    with h5py.File(f"{sys.argv[2]}/part{i}.h5", "w") as file:
        images = rows[first:last, :-1].astype(numpy.uint8).reshape(-1, 1, 8, 8)
        file.create_dataset("x", data=images, chunks=(16, 1, 8, 8), compression="gzip", shuffle=True, fletcher32=True)
        file.create_dataset("y", data=rows[first:last, -1].astype(numpy.int32), chunks=(64,))
"""

MAKE_LARGE = """
import sys, h5py, numpy
random = numpy.random.default_rng(1)
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("x", data=random.integers(0, 255, (16384, 64, 64, 1), dtype=numpy.uint8), chunks=(8, 64, 64, 1))
    file.create_dataset("y", data=random.choice(3, 16384, p=(0.7, 0.25, 0.05)).astype(numpy.int32))
"""

LARGE = """
seed: 5
shards: 4
data:
  format: hdf5
  path: large.h5
  features: x
  labels: y
  scale: 0.0039
  block_samples: 8
  train:
    transforms: [{random_crop: {padding: 4}}, random_flip, {random_noise: {stddev: 0.1}}]
    mix: {mixup: 0.4, classes: 3}
%s
model:
  layers: [{max_pool: {window: 4, stride: 4}}, flatten, {dense: {units: 3}}]
  loss: softmax_cross_entropy
optimizer: {adam: {learning_rate: 0.001}}
train: {batch_size: 256, epochs: 1, shuffle: %s}
checkpoint: {every_steps: 6}
"""

CONFIG = """
seed: 3
shards: 4
data:
  format: hdf5
  path: ["part[0-2].h5"]
  features: x
  labels: y
  layout: channels_first
  scale: 0.0625
  block_samples: 16
  eval: {path: part3.h5}
model:
  layers: [flatten, {dense: {units: 32}}, batch_norm, relu, {dense: {units: 10}}]
  loss: softmax_cross_entropy
optimizer:
  adam: {learning_rate: 0.003}
train: {batch_size: 64, epochs: 2, %s}
"""
# The set has 97 kB of pixels and labels; a block has 1,088 bytes.
SMALL = "data.memory_gb=0.0000125"


@unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
class StreamingTest(LockstepTest):
    def setUp(self):
        super().setUp()
        subprocess.run([PYTHON, "-c", MAKE_DIGITS, DIGITS_DATA, self.folder], check=True, timeout=60)
        self.config = self.folder / "digits.yaml"
        self.write_config("shuffle: blocks, shuffle_window: 3")

    def write_config(self, order):
        self.config.write_text(CONFIG % order, encoding="utf-8")

    def run_it(self, name, ranks=None, threads=1, steps=None, sets=(), **more):
        return self.train(name, ranks=ranks, threads=threads, steps=steps, config=self.config, sets=["eval.every_epochs=1", *sets], **more)

    def test_a_stream_has_the_bits_of_the_set_in_memory(self):
        """Each order, on several ranks and threads, with memory for an eighth of the set."""
        for shuffle in ("blocks", "true", "false"):
            if shuffle != "blocks":
                self.write_config(f"shuffle: {shuffle}")
            self.run_it(f"memory-{shuffle}")
            for ranks, threads in ((1, 2), (2, 1), (3, 1), (4, 1)) if shuffle == "blocks" else ((2, 2),):
                with self.subTest(shuffle=shuffle, ranks=ranks, threads=threads):
                    run = f"stream-{shuffle}-{ranks}-{threads}"
                    result = self.run_it(run, ranks=ranks, threads=threads, sets=[SMALL])
                    self.assertRegex(result.err, "training data: 1500 samples, read while they are used")
                    self.assertRegex((self.folder / run / "metrics.jsonl").read_text(), r'"input/wait_seconds": ?[0-9.e-]+.*"input/blocks_ready": ?[0-9]')
                    self.assert_same_run(f"memory-{shuffle}", run)
                    self.assertEqual(records(self.folder / run, "eval"), records(self.folder / f"memory-{shuffle}", "eval"))

    def test_a_table_is_a_stream_too(self):
        """CSV: the digits unpacked, with memory for an eighth; killed and continued on other ranks."""
        with gzip.open(DIGITS_DATA, "rt") as packed:
            text = packed.read() + ("#" * 999 + "\n") * 1100  # an index is kept of 1 MiB and more
        (self.folder / "digits.csv").write_text(text, encoding="utf-8")
        self.config.write_text(re.sub(r"data:(.|\n)*model:", """data:
  format: csv
  path: digits.csv
  comment: "#"
  shape: [8, 8, 1]
  scale: 0.0625
  block_samples: 16
  train: {rows: [0, 1500]}
  eval: {rows: [1500, 1797]}
model:""", CONFIG % "shuffle: blocks, shuffle_window: 3"), encoding="utf-8")
        small = "data.memory_gb=0.00005"  # the features have 384 kB
        self.run_it("memory")
        result = self.run_it("stream", ranks=3, sets=[small])
        self.assertRegex(result.err, "training data: 1500 samples, read while they are used")
        self.assert_same_run("memory", "stream")
        for steps, ranks, sets in ((9, 2, [small]), (31, 4, []), (None, 3, [small])):
            if steps is None:
                os.utime(self.folder / "digits.csv", ns=(0, 0))
            result = self.run_it("parts", ranks=ranks, steps=steps, sets=sets)
            self.assertEqual(len(re.findall("digits.csv has changed since the run kept what it found in it", result.err)), 2 if steps is None else 0, result.err)
            self.assertEqual(len(list((self.folder / "parts" / "index").glob("csv-*.index"))), 2)  # of both sets
        self.assertEqual(self.digest("memory"), self.digest("parts"))

    def test_a_killed_stream_goes_on_inside_the_epoch_on_other_ranks(self):
        self.run_it("whole")
        for steps, ranks, sets in ((9, 3, [SMALL]), (31, 2, [SMALL]), (None, 4, [])):
            self.run_it("parts", ranks=ranks, steps=steps, sets=sets)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_a_set_of_eight_times_the_memory(self):
        """64 MiB through 8 MiB of each rank: shuffled, with balanced classes, augmentation and mixup; killed inside the epoch and
        continued on other ranks. The bits are those of a run that keeps the set in memory and is left alone. Peak memory is measured."""
        subprocess.run([PYTHON, "-c", MAKE_LARGE, self.folder / "large.h5"], check=True, timeout=60)
        small = ["data.memory_gb=0.008388608"]
        for name, order, balance, ranks in (("balanced", "true", "    balance: classes\n    class_shares: {1: 2}", (3, 2, 4)), ("blocks", "blocks, shuffle_window: 4", "", (4, 1))):
            with self.subTest(name):
                self.config.write_text(LARGE % (balance, order), encoding="utf-8")
                arguments = lambda run, sets: ["train", self.config, "--run-dir", self.folder / run, "--threads", 1, "--set", "summary.every_steps=1", *sets]  # noqa: E731
                stream = ["--set", *small]
                peak = {kind: self.peak_memory(self.start(*arguments(f"{name}-{kind}", sets))) for kind, sets in (("memory", []), ("stream", stream))}
                self.assert_same_run(f"{name}-memory", f"{name}-stream")
                self.assertLess(peak["stream"], peak["memory"] - 48e6, peak)
                run = self.folder / f"{name}-killed"
                for i, number in enumerate(ranks[:-1]):
                    job = self.start(*arguments(run.name, stream), ranks=number)
                    wait_until(lambda: (checkpoints(run) and newest_step(run) >= 18 * (i + 1)) or not job.running(), 120, "a checkpoint inside the epoch")
                    own = max(self.peak_of(pid) for pid in job.ranks().values())
                    job.kill()
                    self.assertLess(newest_step(run), 60)
                    self.assertLess(own, peak["memory"] - 32e6, (own, peak))  # MPI of several ranks takes 15 MB
                result = self.lockstep(*arguments(run.name, stream), ranks=ranks[-1] if ranks[-1] > 1 else None)
                self.assertRegex(result.err, "training data: 16384 samples, read while they are used")
                self.assertEqual(self.digest(f"{name}-memory"), self.digest(run.name))
        self.assertNotEqual(self.digest("balanced-memory"), self.digest("blocks-memory"))

    @staticmethod
    def peak_of(pid):
        return int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))[1]) * 1024

    def test_bad_values_are_named_when_they_are_read(self):
        for what, change, pattern in (
                ("label", "f['y'][303] = 17", r"part1.h5, record 303: label 17 is not one of 10 classes"),
                ("nan", "x = f['x'][:].astype('f4'); del f['x']; x[303, 0, 1, 1] = float('nan'); f.create_dataset('x', data=x, chunks=(16, 1, 8, 8))",
                 r"part1.h5, record 303: pixel \[1, 1\] of the features is not a finite number")):
            with self.subTest(what):
                files = range(3) if what == "nan" else [1]
                for i in files:
                    code = change if i == 1 else change.replace("float('nan')", "0")
                    subprocess.run([PYTHON, "-c", f"import h5py\nwith h5py.File('{self.folder}/part{i}.h5', 'a') as f:\n  {code}"], check=True, timeout=60)
                memory = "data.memory_gb=0.00005" if what == "nan" else SMALL
                result = self.start(*self.train_arguments("bad", config=self.config, sets=["data.eval=null", memory]), ranks=2).wait()
                self.assert_one_error(result, 3, pattern)
                self.setUp()

    def test_a_chunk_that_is_damaged_ends_the_run(self):
        path = self.folder / "part1.h5"
        where = subprocess.run([PYTHON, "-c", f"import h5py\nwith h5py.File('{path}') as f: c = f['x'].id.get_chunk_info(20); print(c.byte_offset)"],
                               check=True, capture_output=True, text=True, timeout=60).stdout
        with open(path, "r+b") as file:
            file.seek(int(where) + 12)
            file.write(b"\xff\x00\xff\x00")
        result = self.start(*self.train_arguments("bad", config=self.config, sets=[SMALL]), ranks=2).wait()
        self.assert_one_error(result, 3, r"part1.h5, dataset x, record 320: a chunk is damaged: (gzip cannot decompress it|its checksum is wrong)")

    def test_too_little_memory(self):
        arguments = self.train_arguments("bad", config=self.config, sets=["data.memory_gb=0.000001"])
        self.assert_one_error(self.start(*arguments, ranks=2).wait(), 2, r"blocks of 16 samples take .* GB, and 3 of them are needed(.|\n)*Set memory_gb higher")

    def test_check_says_what_is_in_memory(self):
        self.assertRegex(self.lockstep("check", self.config).out, r"data in memory    0\.12 MB on every rank\n")
        self.assertRegex(self.lockstep("check", self.config, "--set", SMALL).out,
                         r"data in memory    0\.02 MB on every rank of 0\.12 MB; the rest is read while it is used\n")

    def test_lockstep_data_measures_the_unpacking(self):
        """gzip is slower than all else, here as everywhere."""
        self.config.write_text("data: {format: hdf5, path: packed.h5, features: x, block_samples: 16}", encoding="utf-8")
        make = "import h5py, numpy, sys\nx = numpy.random.default_rng(1).integers(0, 8, (2000, 4096), dtype='u1')\nwith h5py.File(sys.argv[1], 'w') as f: "
        write = lambda options: subprocess.run([PYTHON, "-c", f"{make}f.create_dataset('x', data=x, {options})", self.folder / "packed.h5"], check=True, timeout=60)  # noqa: E731
        write("chunks=(16, 4096), compression='gzip'")
        out = self.lockstep("data", self.config, "--set", "data.memory_gb=0.002").out
        self.assertRegex(out, r"look at this: \S*packed.h5, dataset x: one core unpacks [\d.e+]+ samples/s \(\d+ MB/s\), and makes [\d.e+]+ samples/s of unpacked ones ready")
        self.assertRegex(out, r"\d+ samples/s \(\d+ MB/s\) unpacked\n")
        self.assertNotIn("one core unpacks", self.lockstep("data", self.config).out, "unpacked once, into memory")
        write("chunks=(16, 4096)")
        self.assertNotIn("unpack", self.lockstep("data", self.config, "--set", "data.memory_gb=0.002").out)
        write("chunks=(1, 2048), compression='gzip'")
        self.assertRegex(self.lockstep("data", self.config).out, r"look at this: \S*packed.h5, dataset x: compressed chunks have parts of samples")

    def test_a_run_is_continued_from_its_own_folder_with_more_memory(self):
        self.run_it("whole")
        self.run_it("parts", steps=9, sets=[SMALL])
        self.lockstep("train", self.folder / "parts", "--set", "data.memory_gb=1", "--set", "train.steps=null", "--set", "train.epochs=2", "--threads", 1)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_bad_options(self):
        for sets, pattern in (
                (["data.memory_gb=0"], r"memory_gb: must be \(0, 1e9\] GB"),
                (["train.shuffle=chunks"], r"shuffle: 'chunks' is not one of true, false, blocks"),
                (["train.shuffle=true"], "shuffle is true, which has no windows")):
            self.assert_one_error(self.start(*self.train_arguments("bad", config=self.config, sets=sets)).wait(), 2, pattern)


if __name__ == "__main__":
    main()
