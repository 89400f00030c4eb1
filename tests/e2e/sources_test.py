# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""data.sources: a training set from several files with shares; data.split_key: parts that stay when samples are added."""
import csv
import gzip
import json

from lockstep_run import DIGITS_DATA, LockstepTest, main, records

CONFIG = """
seed: 3
shards: 4
data:
  %s
model:
  layers: [flatten, {dense: {units: 16}}, relu, {dense: {units: 10}}]
  loss: softmax_cross_entropy
optimizer:
  adam: {learning_rate: 0.003}
train: {batch_size: 64, epochs: 2}
"""
SOURCES = """format: jsonl
  features: x
  scale: 0.0625
  normalize: channels
  sources:
    lines: {path: left.jsonl, labels: y%s}
    table: {format: csv, path: right.csv%s}
  eval: {path: left.jsonl, labels: y}"""
# Samples of 64 float32, and blocks of 16 of them.
BLOCKS = "data.block_samples=16"
STREAMED = ("data.memory_gb=0.00006", BLOCKS)


def digits(first, last):
    with gzip.open(DIGITS_DATA, "rt", newline="") as file:
        return list(csv.reader(file))[first:last]


def line(row):
    return json.dumps({"x": [float(value) for value in row[:-1]], "y": int(row[-1])})


class SourcesTest(LockstepTest):
    def config(self, name, section):
        config = self.folder / f"{name}.yaml"
        config.write_text(CONFIG % section, encoding="utf-8")
        return config

    def write(self, name, rows):
        if name.endswith(".csv"):
            text = "".join(",".join(row) + "\n" for row in rows)
        else:
            text = "".join((row if isinstance(row, str) else line(row)) + "\n" for row in rows)
        (self.folder / name).write_text(text)

    def sources(self, shares=(3, 1)):
        self.write("left.jsonl", digits(0, 120))
        self.write("right.csv", digits(120, 420))
        return self.config("mixed", SOURCES % tuple(f", share: {share}" if share else "" for share in shares))

    def test_without_shares_it_is_all_files_one_after_the_other(self):
        mixed = self.sources(shares=(None, None))
        self.write("all.jsonl", digits(0, 420))
        section = "format: jsonl\n  features: x\n  labels: y\n  scale: 0.0625\n  normalize: channels\n  train: {path: all.jsonl}\n  eval: {path: left.jsonl}"
        self.train("all", config=self.config("all", section), sets=["eval.every_epochs=1"])
        for ranks, threads, sets in ((2, 2, ()), (3, 1, STREAMED)):
            self.train(f"mixed-{ranks}", config=mixed, ranks=ranks, threads=threads, sets=["eval.every_epochs=1", *sets])
            self.assert_same_run("all", f"mixed-{ranks}")
            self.assertEqual(records(self.folder / "all", "eval"), records(self.folder / f"mixed-{ranks}", "eval"))

    def test_shares_have_the_same_bits_on_any_ranks_streamed_killed_and_resumed(self):
        mixed = self.sources()
        self.train("one", config=mixed, sets=[BLOCKS])
        self.train("four", config=mixed, ranks=4, threads=1, sets=STREAMED)
        self.assert_same_run("one", "four")
        for steps, ranks in ((4, 2), (9, 3), (None, None)):
            self.train("parts", config=mixed, ranks=ranks, steps=steps, sets=STREAMED)
        self.assert_same_run("one", "parts")
        self.train("even", config=self.sources(shares=(1, 1)), sets=[BLOCKS])
        self.assertNotEqual(self.digest("one"), self.digest("even"))

    def test_the_shares_of_an_epoch_are_exact(self):
        out = self.lockstep("check", self.sources()).out
        self.assertRegex(out, r"in an epoch       lines: 315 of 120, table: 105 of 300 \(source: uses of samples\)")
        out = self.lockstep("check", self.sources(), "--set", "data.train={take: 200}").out
        self.assertRegex(out, r"in an epoch       lines: 150 of 120, table: 50 of 80 ")

    def test_bad_records_of_any_source_are_left_out(self):
        rows = digits(0, 120)
        mixed = self.sources()
        self.write("left.jsonl", rows[:50] + ["{}"] + rows[50:])
        self.write("right.csv", digits(120, 130) + [["bad"]] + digits(130, 420))
        config = self.folder / "bad.yaml"
        config.write_text(mixed.read_text().replace("  scale", "  bad_records: skip\n  scale", 1).replace("eval: {path: left.jsonl, ", "eval: {path: left.jsonl, rows: [0, 20], "))
        self.train("bad", config=config, ranks=2)
        with open(self.folder / "bad" / "bad_records.csv", newline="") as file:
            kept = [(row["set"], int(row["sample"]), row["record"].rsplit("/", 1)[1]) for row in csv.DictReader(file)]
        self.assertEqual(kept, [("train", 50, "left.jsonl, line 51"), ("train", 131, "right.csv, line 11")])
        self.sources()
        self.train("clean", config=mixed, sets=["data.eval.rows=[0,20]"])
        self.assert_same_run("clean", "bad")

    def test_mistakes(self):
        self.sources()
        self.write("wide.csv", [row + ["1"] for row in digits(0, 9)])
        for text, code, pattern in ((", share: 1|", 2, "some of data.sources have a share, and others have none"),
                                    (", share: 0|, share: 1", 2, "share"),
                                    (", scale: 2|", 2, "data.sources.lines: scale is the same for all sources"),
                                    ("|, path: wide.csv", 3, "its samples are 65"),
                                    ("|, columns: [0, 1]", 3, "its samples are 2")):
            with self.subTest(text):
                left, right = text.split("|")
                config = self.config("bad", (SOURCES % (left, right)).replace("path: right.csv, path", "path"))
                self.assert_one_error(self.start("train", config, "--run-dir", self.folder / "bad", ranks=2).wait(), code, pattern)
        config = self.sources()
        arguments = self.train_arguments("blocks", config=config, sets=["train.shuffle=blocks"])
        self.assert_one_error(self.start(*arguments).wait(), 2, "shares of data.sources are taken in a random order")


class SplitKeyTest(LockstepTest):
    def test_a_sample_stays_in_its_part_when_others_are_added(self):
        """The evaluation set of the first 400 rows is that of 500 in another order, less the new ones."""
        rows = [[f"id{i}", *row] for i, row in enumerate(digits(0, 500))]
        parts = {}
        for name, used in (("few", rows[:400]), ("more", rows[450:] + rows[::-1][50:])):
            (self.folder / f"{name}.csv").write_text("".join(",".join(row) + "\n" for row in used))
            config = self.folder / f"{name}.yaml"
            config.write_text(CONFIG % f"format: csv\n  path: {name}.csv\n  key_column: 0\n  holdout: 0.2\n  split_key: column\n  eval: {{}}")
            for part in ("train", "eval"):
                out = self.folder / f"{name}-{part}.csv"
                self.lockstep("convert", config, out, "--part", part)
                parts[name, part] = set(out.read_text().splitlines()[1:])
            self.assertEqual(parts[name, "train"] & parts[name, "eval"], set())
            self.assertEqual(len(parts[name, "train"] | parts[name, "eval"]), len(used))
        for part in ("train", "eval"):
            self.assertLess(parts["few", part], parts["more", part])
        self.assertTrue(50 < len(parts["few", "eval"]) < 115, len(parts["few", "eval"]))


if __name__ == "__main__":
    main()
