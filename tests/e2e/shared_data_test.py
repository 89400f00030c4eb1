# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Sets in memory are there once per host: the bits of a run whose ranks keep copies, less memory, errors said once."""
import gzip
import json
import pathlib
import random
import re
import resource
import struct

from lockstep_run import LockstepTest, main, records, wait_until

MODEL = """
seed: 5
shards: 4
model: {layers: [%s{dense: {units: 5}}], loss: softmax_cross_entropy}
optimizer: {momentum: {learning_rate: 0.001}}
train: {batch_size: 64, epochs: 1}
data:
"""
# 50.3 MB of features.
SYNTHETIC = "  {format: synthetic, samples: %d, shape: [32, 32, 3], classes: 4, labels: linear}\n"
ROWS, VALUES = 5000, 64
IN_MEMORY = r"([0-9.]+) MB of data are in memory once per host, for its %d ranks"


def proportional_bytes(pids):
    """The memory of processes; pages that they share are counted once."""
    total = 0
    for pid in pids:
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            continue
        total += sum(int(kb) for kb in re.findall(r"^Pss: +(\d+) kB", text, re.MULTILINE)) * 1024
    return total


class SharedDataTest(LockstepTest):
    def write(self, data, layers="flatten, "):
        self.config = self.folder / "config.yaml"
        self.config.write_text(MODEL % layers + data, encoding="utf-8")

    def run_it(self, name, ranks=None, **more):
        return self.train(name, ranks=ranks, config=self.config, steps=12, **more)

    def memory_of(self, name, ranks, samples):
        """The memory of all ranks together while they train."""
        self.write(SYNTHETIC % samples)
        job = self.start(*self.train_arguments(name, config=self.config, sets=["train.epochs=100000"]), ranks=ranks)
        wait_until(lambda: len(records(self.folder / name)) > 2 or not job.running(), 60, "a step")
        memory = proportional_bytes(job.ranks().values())
        self.assertTrue(job.running())
        job.kill()
        return memory

    def test_one_copy_for_all_ranks_of_a_host(self):
        bytes_of_set = 4096 * 32 * 32 * 3 * 4
        self.write(SYNTHETIC % 4096)
        self.assertNotIn("once per host", self.run_it("alone").err)
        for ranks in (2, 3, 4):
            with self.subTest(ranks=ranks):
                result = self.run_it(f"ranks-{ranks}", ranks=ranks)
                self.assertRegex(result.err, IN_MEMORY % ranks)
                self.assert_same_run("alone", f"ranks-{ranks}")
        without = self.memory_of("few", 4, 256)
        more = self.memory_of("many", 4, 4096) - without
        self.assertLess(more, 1.6 * bytes_of_set, f"{more} bytes more on four ranks for a set of {bytes_of_set}")

    def test_without_room_each_rank_has_a_copy(self):
        self.write(SYNTHETIC % 1024)
        self.run_it("alone")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000_000, before[1]))  # 12.6 MB of features
        job = self.start(*self.train_arguments("copies", config=self.config, steps=12), ranks=2)
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        result = job.wait()
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(len(re.findall("no room for the data in memory that the 2 ranks of a host share: rank 0 can't get [0-9]+ bytes of shared memory: File too large", result.err)), 1, result.err)
        self.assert_same_run("alone", "copies")

    def rows(self):
        random.seed(4)
        return [[random.randrange(256) for _ in range(VALUES)] for _ in range(ROWS)]

    def make_files(self):
        rows = self.rows()
        table = "".join(",".join(map(str, row)) + f",{row[0] % 4}\n" for row in rows)
        (self.folder / "x.csv").write_text(table, encoding="utf-8")
        with gzip.open(self.folder / "x.csv.gz", "wt", compresslevel=1) as file:
            file.write(table)
        with gzip.open(self.folder / "x.jsonl.gz", "wt", compresslevel=1) as file:
            for row in rows:
                file.write(json.dumps({"x": row, "y": row[0] % 4}) + "\n")
        header = struct.pack(">HBBIII", 0, 13, 3, ROWS, 8, VALUES // 8)
        (self.folder / "x.idx").write_bytes(header + b"".join(struct.pack(f">{VALUES}f", *row) for row in rows))
        (self.folder / "y.idx").write_bytes(struct.pack(">HBBI", 0, 8, 1, ROWS) + bytes(row[0] % 4 for row in rows))

    def test_every_kind_of_reader(self):
        """Values that the reader keeps, files that any rank can read in parts, and packed ones that one rank reads."""
        self.make_files()
        (self.folder / "words.txt").write_text(" ".join(random.choice(("so", "it", "is", "then")) for _ in range(1200000)), encoding="utf-8")
        inputs = "{first: {format: csv, path: x.csv}, second: {format: idx, images: x.idx}}"
        for name, data, layers in (
                ("csv", "format: csv, path: x.csv", ""),
                ("csv.gz", "format: csv, path: x.csv.gz", ""),
                ("jsonl.gz", "format: jsonl, path: x.jsonl.gz, features: x, labels: y", ""),
                ("idx", "format: idx, images: x.idx, labels: y.idx", "flatten, "),
                ("text", "format: text_windows, path: words.txt, length: 16, stride: 1, tokens: words", "{embedding: {rows: 5, units: 4}}, "),
                ("inputs", f"inputs: {inputs}", "flatten: {name: flat, inputs: second}}, {concat: {inputs: [first, flat]}}, ")):
            with self.subTest(data=name):
                self.write(f"  {{{data}, scale: 0.0039}}\n" if name != "text" else f"  {{{data}}}\n", layers if name != "inputs" else "{" + layers)
                self.run_it(f"{name}-1")
                for ranks in (2, 3):
                    self.assertRegex(self.run_it(f"{name}-{ranks}", ranks=ranks).err, IN_MEMORY % ranks)
                    self.assert_same_run(f"{name}-1", f"{name}-{ranks}")

    def test_an_error_of_one_rank_is_said_once(self):
        self.make_files()
        path = self.folder / "x.idx"
        content = bytearray(path.read_bytes())
        content[-40:-36] = struct.pack(">f", float("nan"))
        path.write_bytes(content)
        self.write("  {format: idx, images: x.idx, labels: y.idx}\n")
        result = self.run_it("nan", ranks=2, code=3)
        self.assert_one_error(result, 3, rf"x.idx, record {ROWS - 1}: pixel \[\d+, \d+\] of the features is not a finite number")
        # Only the rank that reads the last part can see this one.
        with open(self.folder / "lines.jsonl", "w", encoding="utf-8") as file:
            for row in self.rows():
                file.write(json.dumps({"x": row, "y": row[0] % 4}) + "\n")
            file.write('{"x": [1, 2, "three"], "y": 0}\n')
        self.write("  {format: jsonl, path: lines.jsonl, features: x, labels: y}\n", "")
        result = self.run_it("line", ranks=2, code=3)
        self.assert_one_error(result, 3, rf"lines.jsonl, line {ROWS + 1}")


if __name__ == "__main__":
    main()
