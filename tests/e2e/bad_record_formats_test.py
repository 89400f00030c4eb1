# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""bad_records: skip with TFRecord, tar archives and NumPy arrays, when a run is killed, and in lockstep convert: the set without them."""
import csv
import gzip
import io
import json
import struct
import subprocess
import sys
import tarfile
import unittest

from lockstep_run import DIGITS_DATA, SOURCE, LockstepTest, main, python_with_h5py, records, wait_until

CONFIG = """
seed: 3
shards: 4
data:
  bad_records: skip
  max_bad_records: 0.2
  %s
model:
  layers: [flatten, {dense: {units: 16}}, relu, {dense: {units: 10}}]
  loss: softmax_cross_entropy
optimizer:
  adam: {learning_rate: 0.003}
train: {batch_size: 16, epochs: 1}
"""
MAKE_NPY = """
import gzip, sys, numpy
rows = numpy.loadtxt(gzip.open(sys.argv[1], "rt"), delimiter=",")[:200]
bad = [0, 7, 8, 199]
x = rows[:, :-1].astype("f4")
y = rows[:, -1].astype("i8")
numpy.save(sys.argv[2] + "/clean_x.npy", numpy.delete(x, bad, 0))
numpy.save(sys.argv[2] + "/clean_y.npy", numpy.delete(y, bad))
x[bad, 5] = numpy.nan
numpy.save(sys.argv[2] + "/dirty_x.npy", x)
numpy.save(sys.argv[2] + "/dirty_y.npy", y)
"""
TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(data):
    length = struct.pack("<Q", len(data))
    return length + masked_crc(length) + data + masked_crc(data)


def field(number, data):
    size = len(data)
    return bytes([number << 3 | 2]) + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + data


def example(pixels, label):
    """A tf.Example with raw bytes and an int64."""
    features = {b"image": field(1, field(1, pixels)), b"label": field(3, field(1, bytes([label])))}
    return field(1, b"".join(field(1, field(1, name) + field(2, value)) for name, value in features.items()))


def digits(count):
    with gzip.open(DIGITS_DATA, "rt", newline="") as file:
        return [[int(float(value)) for value in row] for row in list(csv.reader(file))[:count]]


class BadRecordFormatsTest(LockstepTest):
    def config(self, name, section):
        config = self.folder / f"{name}.yaml"
        config.write_text(CONFIG % section.replace("SET", name), encoding="utf-8")
        return config

    def kept(self, run):
        with open(self.folder / run / "bad_records.csv", newline="") as file:
            return list(csv.DictReader(file))

    def jsonl(self, count=200, every=20):
        """clean.jsonl, and dirty.jsonl with a bad line before every 20th."""
        clean = [json.dumps({"x": row[:-1], "y": row[-1]}) for row in digits(count)]
        dirty = []
        for i, line in enumerate(clean):
            dirty += (["no object"] if i % every == 0 else []) + [line]
        for name, lines in (("clean", clean), ("dirty", dirty)):
            (self.folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        return [self.config(name, "format: jsonl\n  path: SET.jsonl\n  features: x\n  labels: y") for name in ("clean", "dirty")]

    def check_skipped(self, section, bad, streamed, reason):
        """A set with bad records is the clean one, in memory on two ranks and streamed on three; the list names them."""
        self.train("clean-run", config=self.config("clean", section))
        for ranks, sets in ((2, ()), (3, streamed)):
            run = f"dirty-{ranks}"
            self.train(run, config=self.config("dirty", section), ranks=ranks, sets=sets)
            self.assert_same_run("clean-run", run)
            self.assertEqual([int(row["sample"]) for row in self.kept(run)], bad)
            self.assertRegex(self.kept(run)[0]["reason"], reason)

    def test_tfrecord(self):
        """Wrong checksums of the data, and an example without the feature; a wrong checksum of a length ends the run."""
        rows, bad = digits(200), {3: "checksum", 50: "feature", 199: "checksum"}
        clean = dirty = b""
        for i, row in enumerate(rows):
            record = framed(example(bytes(row[:-1]), row[-1]))
            if i not in bad:
                clean += record
            elif bad[i] == "feature":
                record = framed(field(1, b""))
            else:
                record = record[:40] + bytes([record[40] ^ 1]) + record[41:]
            dirty += record
        (self.folder / "clean.tfrecord").write_bytes(clean)
        (self.folder / "dirty.tfrecord").write_bytes(dirty)
        section = "format: tfrecord\n  path: SET.tfrecord\n  features: image\n  labels: label\n  shape: [64]\n  scale: 0.0625"
        self.check_skipped(section, sorted(bad), ("data.memory_gb=0.00001", "data.block_samples=8"), "checksum")
        (self.folder / "dirty.tfrecord").write_bytes(dirty[:8] + bytes([dirty[8] ^ 1]) + dirty[9:])
        self.assert_one_error(self.start(*self.train_arguments("length", config=self.config("dirty", section)), ranks=2).wait(), 3, "dirty.tfrecord")

    def test_images_in_tar_archives(self):
        make = SOURCE / "examples" / "generate_digit_images.py"
        subprocess.run([sys.executable, make, self.folder / "digits", "--every", "6"], check=True, capture_output=True, timeout=60)
        files = sorted((self.folder / "digits" / "train").glob("*/*.png"))
        names = sorted({path.parent.name for path in files})
        bad = {0: b"no image", 17: files[17].read_bytes()[:60], len(files) - 1: b""}
        for name in ("clean", "dirty"):
            with tarfile.open(self.folder / f"{name}.tar", "w") as out:
                for i, path in enumerate(files):
                    if name == "clean" and i in bad:
                        continue
                    for extension, data in (("png", bad.get(i, path.read_bytes())), ("cls", b"%d" % names.index(path.parent.name))):
                        info = tarfile.TarInfo(f"{i:05}.{extension}")
                        info.size = len(data)
                        out.addfile(info, io.BytesIO(data))
        section = "format: webdataset\n  path: SET.tar\n  size: [8, 8]\n  channels: 1\n  scale: 0.004"
        self.check_skipped(section, sorted(bad), ("data.memory_gb=0.000002", "data.block_samples=3"), "image|PNG|bytes")

    @unittest.skipUnless(python_with_h5py(), "no Python with numpy and h5py")
    def test_values_of_arrays_that_are_not_finite(self):
        subprocess.run([python_with_h5py(), "-c", MAKE_NPY, DIGITS_DATA, self.folder], check=True, timeout=60)
        section = "format: npy\n  features: SET_x.npy\n  labels: SET_y.npy"
        self.check_skipped(section, [0, 7, 8, 199], ("data.memory_gb=0.00002", "data.block_samples=8"), "not a finite number")

    def test_a_run_that_is_killed_inside_an_epoch_goes_on(self):
        clean, dirty = self.jsonl()
        steps, sets = 120, ["train.epochs=10", "checkpoint.every_steps=5", "checkpoint.background=false"]  # 13 steps an epoch
        self.train("whole", config=clean, steps=steps, sets=sets)
        job = self.start(*self.train_arguments("parts", config=dirty, steps=steps, sets=sets), ranks=2)
        path = self.folder / "parts" / "checkpoints" / "step-00000010.h5"
        wait_until(lambda: not job.running() or path.exists(), 60, path)
        self.assertTrue(job.running(), "it ended before the kill")
        job.kill()
        self.assertLess(records(self.folder / "parts")[-1]["step"], steps, "the kill came too late to show anything")
        result = self.train("parts", config=dirty, ranks=3, steps=steps, sets=sets)
        self.assertRegex(result.err, "continuing at step")
        self.assertNotIn("found in", result.err, "the list of the run is taken")
        self.assert_same_run("whole", "parts")

    @unittest.skipUnless(python_with_h5py(), "no Python with numpy and h5py")
    def test_convert_leaves_them_out_on_any_ranks(self):
        clean, dirty = self.jsonl()
        for name, config, ranks in (("clean", clean, None), ("one", dirty, None), ("three", dirty, 3)):
            result = self.lockstep("convert", config, self.folder / f"{name}.h5", "--shards", 2, ranks=ranks)
            self.assertEqual("training set: 10 of 210 records are bad and left out" in result.err, name != "clean", result.err)
        for shard in ("00000-of-00002", "00001-of-00002"):
            clean, one, three = (self.folder / f"{name}-{shard}.h5" for name in ("clean", "one", "three"))
            self.assertEqual(one.read_bytes(), three.read_bytes())
            compare = "import h5py, sys; a, b = (h5py.File(p) for p in sys.argv[1:]); assert all((a[k][:] == b[k][:]).all() for k in ('features', 'labels'))"
            subprocess.run([python_with_h5py(), "-c", compare, clean, one], check=True, timeout=60)


if __name__ == "__main__":
    main()
