# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Files that ask for more memory than there is: a small compressed one that unpacks to gigabytes, and large ones. The message names the
file and what to do; a smaller batch, which could not help, is no advice."""
import gzip
import json
import pathlib
import re
import struct
import unittest

from lockstep_run import PROGRAM, Job, LockstepTest, main

DATA = 3
ADDRESSES = 700_000  # kB, ulimit -v


class Memory(LockstepTest):
    def limited(self, *arguments, code=DATA, limit=ADDRESSES):
        """Lockstep with `limit` kB of memory."""
        job = Job(["bash", "-c", f'ulimit -v {limit} && exec "$@"', "bash", PROGRAM, *arguments], self.folder, self.folder)
        self.jobs.append(job)
        result = job.wait()
        self.assertEqual(result.code, code, str(result))
        return result

    def refused(self, path, pattern, *arguments):
        result = self.limited(*arguments)
        self.assert_one_error(result, DATA, rf"{re.escape(path)}[\s\S]*{pattern}")
        self.assertNotIn("batch", result.err)
        return result

    def many_lines(self, name, line, count):
        """A gzip file of a few kilobytes: members that are all alike."""
        piece = 1 << 20
        member = gzip.compress(line * piece)
        (self.folder / name).write_bytes(member * (count // piece))
        self.assertLess((self.folder / name).stat().st_size, 1 << 20)

    def config(self, name, **data):
        text = json.dumps({"data": data, "model": {"layers": [{"dense": {"name": "d", "units": 2}}], "loss": "softmax_cross_entropy"},
                           "optimizer": {"gradient_descent": {"learning_rate": 0.1}}, "train": {"batch_size": 4, "steps": 2}})
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def test_a_small_table_that_unpacks_to_many_lines(self):
        """The advice is true: the unpacked table is read while it is used."""
        self.many_lines("t.csv.gz", b"1,0\n2,1\n", 8 << 20)
        config = self.config("t.yaml", format="csv", path="t.csv.gz")
        pattern = r"line \d+: what was read up to here takes more than [\d.]+ MB, a quarter of the memory that this process may use\n" \
                  r"  A compressed file is unpacked into memory: unpack it \(gzip -d\)"
        for arguments in (("data", config), ("train", config, "--run-dir", "run"), ("convert", config, "t.npy"),
                          ("new", "t.csv.gz", "--output", "new.yaml")):
            with self.subTest(arguments[0]):
                self.refused("t.csv.gz", pattern, *arguments)
        with open(self.folder / "t.csv", "wb") as plain, gzip.open(self.folder / "t.csv.gz") as packed:
            while block := packed.read(1 << 24):
                plain.write(block)
        self.limited("train", self.config("plain.yaml", format="csv", path="t.csv"), "--run-dir", "run", "--quiet", code=0)

    def test_small_json_lines_that_unpack_to_many_lines(self):
        self.many_lines("t.jsonl.gz", b"{}\n{}\n", 24 << 20)
        self.refused("t.jsonl.gz", "(takes more than|needs more memory to be read)", "data", self.config("t.yaml", format="jsonl", path="t.jsonl.gz", features="x", labels="y"))

    def test_a_line_that_is_longer_than_the_memory(self):
        """Of a table, as `new` reads it: memory that is not there is no matter of a batch."""
        (self.folder / "long.csv").write_bytes(b"1," * (60 << 20) + b"1\n")
        for arguments in (("new", "long.csv", "--output", "new.yaml"), ("data", self.config("t.yaml", format="csv", path="long.csv"))):
            with self.subTest(arguments[0]):
                self.refused("long.csv", "needs more memory to be read than there is", *arguments)

    def test_weights_that_are_larger_than_the_memory(self):
        count = 300_000_000
        header = json.dumps({"w": {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}}).encode()
        with open(self.folder / "w.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(8 + len(header) + 4 * count)  # zeros that take no disk
        self.refused("w.safetensors", "needs more memory to be read than there is", "import", "w.safetensors", "--output", "w.h5")

    def test_an_array_that_is_larger_than_the_memory(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3000000, 100), }".ljust(117) + b"\n"
        with open(self.folder / "x.npy", "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
            file.truncate(10 + len(header) + 1_200_000_000)
        # It is read while it is used, and needs no such memory.
        result = self.limited("data", self.config("t.yaml", format="npy", features="x.npy"), code=0)
        self.assertIn("3000000 samples", result.out)


if __name__ == "__main__":
    main()
