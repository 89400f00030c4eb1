# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The digits in formats of arrays and records: the same bits from each of them, in memory and read while they are used."""
import subprocess
import unittest

from lockstep_run import DIGITS_DATA, SOURCE, LockstepTest, main, python_with_h5py

PYTHON = python_with_h5py()

# Pixels as bytes, in parts with different numbers of rows.
MAKE_DIGITS = """
import gzip, json, sys, numpy
sys.path.insert(0, sys.argv[3])
from make_record_vectors import byte_list, example, framed, int64_list
rows = numpy.loadtxt(gzip.open(sys.argv[1], "rt"), delimiter=",")[:1500]
images, labels = rows[:, :-1].astype("u1").reshape(-1, 1, 8, 8), rows[:, -1].astype("i8")
for i, (first, last) in enumerate(((0, 600), (600, 1107), (1107, 1500))):
    numpy.save(f"{sys.argv[2]}/x{i}.npy", images[first:last])
    with open(f"{sys.argv[2]}/part{i}.tfrecord", "wb") as file:
        for row in range(first, last):
            file.write(framed(example(x=byte_list(images[row].tobytes()), y=int64_list([int(labels[row])]))))
    with open(f"{sys.argv[2]}/part{i}.bin", "wb") as file:
        for row in range(first, last):
            file.write(bytes([labels[row], *images[row].ravel()]))
    numpy.savez_compressed(f"{sys.argv[2]}/part{i}.npz", x=images[first:last], y=labels[first:last])
numpy.save(f"{sys.argv[2]}/y.npy", labels)
with open(f"{sys.argv[2]}/all.jsonl", "w") as file:
    for image, label in zip(images.reshape(-1, 8, 8, 1), labels):
        print(json.dumps({"x": image.tolist(), "y": int(label)}), file=file)
"""

CONFIG = """
seed: 3
shards: 4
data: {scale: 0.0625, block_samples: 16, %s}
model:
  layers: [flatten, {dense: {units: 32}}, batch_norm, relu, {dense: {units: 10}}]
  loss: softmax_cross_entropy
optimizer:
  adam: {learning_rate: 0.003}
train: {batch_size: 64, epochs: 1, shuffle: blocks, shuffle_window: 3}
"""
NPY = 'format: npy, features: "x*.npy", labels: y.npy, layout: channels_first'
NPZ = 'format: npy, path: "part*.npz", features: x, labels: y, layout: channels_first'
TFRECORD = 'format: tfrecord, path: "part*.tfrecord", features: x, labels: y, shape: [1, 8, 8], layout: channels_first'
BINARY = 'format: binary, path: "part*.bin", shape: [1, 8, 8], layout: channels_first, features_offset: 1, labels_offset: 0'
JSONL = 'format: jsonl, path: all.jsonl, features: x, labels: y'
# The set has 97 kB of pixels and labels; a block has 1,088 bytes.
SMALL = "data.memory_gb=0.0000125"


@unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
class RecordsTest(LockstepTest):
    def setUp(self):
        super().setUp()
        subprocess.run([PYTHON, "-c", MAKE_DIGITS, DIGITS_DATA, self.folder, SOURCE / "tests/vectors"], check=True, timeout=60)

    def run_it(self, name, data, ranks=None, sets=()):
        config = self.folder / f"{name}.yaml"
        config.write_text(CONFIG % data, encoding="utf-8")
        return self.train(name, ranks=ranks, threads=1, config=config, sets=sets)

    def test_each_format_has_the_same_bits_in_memory_and_streamed(self):
        """On 1 to 4 ranks; blocks are the same everywhere. JSON's numbers are float32, which take four times the memory."""
        self.run_it("memory", NPY)
        for name, data, ranks, sets in (("npy", NPY, 4, [SMALL]), ("npz", NPZ, 2, []), ("tfrecord", TFRECORD, 3, [SMALL]),
                                        ("binary", BINARY, 2, [SMALL])):
            with self.subTest(name):
                result = self.run_it(name, data, ranks, sets)
                if sets:
                    self.assertRegex(result.err, "training data: 1500 samples, read while they are used")
                self.assertEqual(self.digest("memory"), self.digest(name))

    def test_json_lines(self):
        self.run_it("memory", JSONL)
        self.run_it("stream", JSONL, 3, ["data.memory_gb=0.00005"])
        self.assert_same_run("memory", "stream")


if __name__ == "__main__":
    main()
