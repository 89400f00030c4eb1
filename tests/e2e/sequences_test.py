# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Sequences of different lengths: padding, lengths as an input, length buckets, on any ranks and threads, streamed and resumed."""
import csv
import json
import random
import re
import shutil
import subprocess

from lockstep_run import LockstepTest, main, python_with_h5py, records

CONFIG = """
seed: 3
shards: 4
data:
  format: jsonl
  path: walks.jsonl
  features: steps
  pad_to: 12
  inputs:
    steps: {labels: side, normalize: channels}
    length: {lengths: true}
  train: {rows: [0, 150], length_buckets: [3, 6, 9]}
  eval: {rows: [150, 200]}
model:
  layers:
    - lstm: {name: rnn, units: 6, inputs: [steps, length]}
    - dense: {units: 2, inputs: "rnn:1"}
  loss: softmax_cross_entropy
optimizer: {adam: {learning_rate: 0.02}}
train: {batch_size: 16, epochs: 2}
"""
TAGS = """
seed: 3
shards: 4
data:
  format: jsonl
  path: tags.jsonl
  features: ids
  pad_to: 12
  targets:
    tags: {features: tags, pad_value: -1}
  train: {length_buckets: [4, 8]}
model:
  layers:
    - sequence_length: {name: length}
    - embedding: {name: words, inputs: features, rows: 6, units: 4}
    - lstm: {name: rnn, units: 5, inputs: [words, length]}
    - dense: {name: tag, units: 3, inputs: "rnn:0"}
  heads:
    - {name: tag, output: tag, labels: tags, loss: {softmax_cross_entropy: {ignore_index: -1}}}
optimizer: {adam: {learning_rate: 0.02}}
train: {batch_size: 10, epochs: 1}
"""
SAVE_HDF5 = """
import json, sys, h5py, numpy
rows = [json.loads(line) for line in open(sys.argv[1])]
with h5py.File(sys.argv[2], "w") as file:
    steps = file.create_dataset("group/steps", (len(rows),), dtype=h5py.vlen_dtype(sys.argv[3]), chunks=(int(sys.argv[4]),))
    for i, row in enumerate(rows):
        steps[i] = numpy.array(row["steps"], "f4").ravel()
    file["side"] = numpy.array([row["side"] for row in rows], "i4")
    file["several"] = numpy.zeros((len(rows), 3), "f4")
"""
TEXTS = """
seed: 5
shards: 4
data:
%s
model:
  layers:
    - sequence_length: {name: length}
    - embedding: {name: words, inputs: features, rows: 6, units: 4}
    - gru: {name: rnn, units: 5, inputs: [words, length]}
    - dense: {units: 2, inputs: "rnn:1"}
optimizer: {adam: {learning_rate: 0.02}}
train: {batch_size: 8, steps: 12}
"""
LINES = """  format: text_tsv
  path: mail.tsv
  text_column: 1
  label_column: 0
  vocabulary: words.txt
  lower_case: true
  max_length: 5
  train: {length_buckets: [2]}"""
OBJECTS = """  format: jsonl
  path: mail.jsonl
  features: text
  labels: kind
  classes: [ham, spam]
  pad_to: 60
  transforms: [{tokenize: {vocabulary: words.txt, lower_case: true, max_length: 5}}]"""
STREAMED = ["data.memory_gb=0.00002", "data.block_samples=8"]


class SequencesTest(LockstepTest):
    def setUp(self):
        super().setUp()
        numbers = random.Random(4)
        self.rows = []
        for _ in range(200):
            steps = [[round(numbers.gauss(0, 1), 3), round(numbers.gauss(5, 2), 3)] for _ in range(numbers.randint(1, 12))]
            self.rows.append({"steps": steps, "side": int(sum(step[0] for step in steps) > 0)})
        self.write("walks.jsonl", self.rows)
        self.config = self.folder / "walks.yaml"
        self.config.write_text(CONFIG, encoding="utf-8")

    def write(self, name, rows):
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def test_same_bits_on_any_ranks_and_threads_in_memory_and_streamed(self):
        self.train("one", config=self.config)
        for ranks, threads, sets in ((2, 1, []), (3, 2, STREAMED), (4, 1, []), (None, 2, STREAMED)):
            with self.subTest(ranks=ranks, threads=threads, sets=sets):
                run = f"run-{ranks}-{threads}"
                self.train(run, config=self.config, ranks=ranks, threads=threads, sets=sets)
                self.assert_same_run("one", run)
                self.assertEqual(records(self.folder / run, "eval"), records(self.folder / "one", "eval"))

    def test_a_stopped_run_goes_on_inside_the_epoch_on_other_ranks(self):
        self.train("whole", config=self.config)
        self.train("stopped", config=self.config, ranks=3, steps=4)
        self.lockstep("train", self.folder / "stopped", "--steps", "13", "--threads", 2, ranks=2)
        self.lockstep("train", self.folder / "stopped", "--set", "train.steps=null", "--set", "train.epochs=2", "--threads", 1)
        self.assertEqual(self.digest("whole"), self.digest("stopped"))

    def test_with_lengths_padding_has_no_influence(self):
        self.train("one", config=self.config)
        self.train("other", config=self.config, sets=["data.inputs.steps.pad_value=77"], ranks=2)
        self.assert_same_run("one", "other")
        self.train("longer", config=self.config, sets=["data.pad_to=19"])
        for one, longer in zip(records(self.folder / "one"), records(self.folder / "longer")):
            self.assertAlmostEqual(one["loss"], longer["loss"], places=5)  # sums over more steps are rounded in another order
        # Without lengths it has.
        plain = CONFIG.replace("inputs: [steps, length]", "inputs: steps").replace("\n    length: {lengths: true}", "")
        (self.folder / "plain.yaml").write_text(plain, encoding="utf-8")
        self.train("zero", config=self.folder / "plain.yaml", steps=3)
        self.train("seen", config=self.folder / "plain.yaml", steps=3, sets=["data.inputs.steps.pad_value=77"])
        self.assertNotEqual(self.digest("zero"), self.digest("seen"))

    def test_normalisation_counts_no_padding(self):
        self.train("one", config=self.config, steps=1)
        lines = (self.folder / "one" / "normalization-steps.txt").read_text().splitlines()
        for channel, line in enumerate(lines):
            values = [step[channel] for row in self.rows[:150] for step in row["steps"]]
            mean = sum(values) / len(values)
            std = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
            for kept, expected in zip(map(float, line.split("\t")), (mean, std)):
                self.assertAlmostEqual(kept, expected, places=5)

    def test_predictions_of_new_sequences(self):
        self.train("one", config=self.config)
        self.write("new.jsonl", self.rows[150:])
        out = self.folder / "out.csv"
        new = self.folder / "new.jsonl"
        self.lockstep("predict", self.folder / "one", "--input", f"steps={new}", "--input", f"length={new}", "--output", out)
        with open(out, newline="", encoding="utf-8") as file:
            classes = [int(row["class"]) for row in csv.DictReader(file)]
        right = sum(found == row["side"] for found, row in zip(classes, self.rows[150:]))
        accuracy = json.loads(self.lockstep("evaluate", self.folder / "one").out)["accuracy"]
        self.assertAlmostEqual(right / 50, accuracy, places=5)

    def save_hdf5(self, name, dtype="f4", chunk=16, rows="walks.jsonl"):
        python = python_with_h5py()
        if python is None:
            self.skipTest("no Python has h5py")
        subprocess.run([python, "-c", SAVE_HDF5, self.folder / rows, self.folder / name, dtype, str(chunk)], check=True, timeout=60)

    def test_variable_length_datasets_of_h5py_have_the_bits_of_json_lines(self):
        self.save_hdf5("walks.h5")
        text = CONFIG.replace("jsonl", "hdf5").replace("walks.hdf5", "walks.h5").replace("features: steps", "features: group/steps\n  step_shape: [2]")
        config = self.folder / "hdf5.yaml"
        config.write_text(text, encoding="utf-8")
        self.train("lines", config=self.config)
        for ranks, sets in ((None, []), (3, STREAMED)):
            self.train(f"hdf5-{ranks}", config=config, ranks=ranks, sets=sets)
            self.assert_same_run("lines", f"hdf5-{ranks}")
        for sets, message in (
                (["data.features=several"], r"its records all have one length, but pad_to is for a variable-length type(.|\n)*Leave out pad_to"),
                (["data.step_shape=[5]"], r"which are no whole steps of 5")):
            self.assert_one_error(self.start(*self.train_arguments("bad", config=config, sets=sets), ranks=2).wait(), 3, message)
        plain = self.folder / "plain.yaml"
        plain.write_text(re.sub(r"  pad_to.*\n  inputs:(.|\n)*?  train: .*\n", "  train: {rows: [0, 150]}\n", text.replace("\n  step_shape: [2]", "")), encoding="utf-8")
        self.assert_one_error(self.start("data", plain).wait(), 3, r"its records are sequences of different lengths(.|\n)*Give pad_to")
        whole = (self.folder / "walks.h5").read_bytes()
        (self.folder / "walks.h5").write_bytes(whole[:len(whole) * 2 // 3])
        self.assert_one_error(self.start(*self.train_arguments("bad", config=config), ranks=2).wait(), 3, r"walks.h5")

    def test_whole_numbers_of_any_width(self):
        rows = [{"steps": [[(i * j) % 100, j] for j in range(1 + i % 5)], "side": i % 2} for i in range(200)]
        self.write("walks.jsonl", rows)
        self.train("lines", config=self.config, steps=2)
        for dtype in ("i1", "u2", "i8", "f8"):
            self.save_hdf5(f"{dtype}.h5", dtype, chunk=200)
            config = self.folder / f"{dtype}.yaml"
            config.write_text(CONFIG.replace("jsonl", "hdf5").replace("walks.hdf5", f"{dtype}.h5").replace("features: steps", "features: group/steps\n  step_shape: [2]"), encoding="utf-8")
            self.train(dtype, config=config, steps=2)
            self.assertEqual(self.digest("lines"), self.digest(dtype), dtype)

    def test_tokenized_texts_have_the_bits_of_the_reader_of_texts(self):
        texts = [("ham", "See you soon"), ("ham", "you see, \u00fcber all that I can see"), ("spam", "Buy now"), ("spam", "!")] * 10
        (self.folder / "words.txt").write_text("see\nyou\nbuy\n\u00fcber\n", encoding="utf-8")
        (self.folder / "mail.tsv").write_text("".join(f"{kind}\t{text}\n" for kind, text in texts), encoding="utf-8")
        self.write("mail.jsonl", [{"kind": kind, "text": text} for kind, text in texts])
        for name, section in (("lines", LINES.replace("\n  train: {length_buckets: [2]}", "")), ("objects", OBJECTS)):
            (self.folder / f"{name}.yaml").write_text(TEXTS % section, encoding="utf-8")
            self.train(name, config=self.folder / f"{name}.yaml", ranks=2 if name == "objects" else None)
        self.assert_same_run("lines", "objects")
        self.assertEqual(*((self.folder / name / "vocabulary.txt").read_text() for name in ("lines", "objects")))
        self.assertRegex(self.lockstep("data", self.folder / "objects.yaml").out, r"mail.jsonl, line 1: see you <unk>")
        (self.folder / "words.txt").write_text("see\nbuy\nyou\n\u00fcber\n", encoding="utf-8")
        self.assert_one_error(self.start("train", self.folder / "objects", "--steps", "14").wait(), 2, r"the training data changed since the run began")
        # Buckets of the ids that the reader has made.
        (self.folder / "words.txt").write_text("see\nyou\nbuy\n\u00fcber\n", encoding="utf-8")
        (self.folder / "buckets.yaml").write_text(TEXTS % LINES, encoding="utf-8")
        for ranks in (None, 3):
            self.train(f"buckets-{ranks}", config=self.folder / "buckets.yaml", ranks=ranks)
        self.assert_same_run("buckets-None", "buckets-3")
        self.assertNotEqual(self.digest("buckets-3"), self.digest("lines"))

    def test_labels_of_steps_are_padded_with_what_the_loss_ignores(self):
        numbers = random.Random(8)
        rows = [[numbers.randint(1, 5) for _ in range(numbers.randint(1, 12))] for _ in range(100)]
        self.write("tags.jsonl", [{"ids": ids, "tags": [i % 3 for i in ids]} for ids in rows])
        config = self.folder / "tags.yaml"
        config.write_text(TAGS, encoding="utf-8")
        self.train("one", config=config)
        self.train("three", config=config, ranks=3)
        self.assert_same_run("one", "three")
        self.train("longer", config=config, sets=["data.pad_to=17"])
        for one, longer in zip(records(self.folder / "one"), records(self.folder / "longer")):
            self.assertAlmostEqual(one["loss"], longer["loss"], places=5)
        counted = self.start(*self.train_arguments("bad", config=config, sets=["data.targets.tags.pad_value=7"])).wait()
        self.assert_one_error(counted, 3, r"tags.jsonl, line 1: value \d+ [(]from 0[)] of target tags is 7, which is not one of 3 classes")

    def test_lengths_and_padding_are_shown(self):
        out = self.lockstep("data", self.config).out
        lengths = [len(row["steps"]) for row in self.rows[:150]]
        self.assertRegex(out, rf"lengths +{min(lengths)} to {max(lengths)} steps, mean {sum(lengths) / 150:.4g}; {100 - 100 * sum(lengths) / 1800:.0f} % of 12 steps are padding")
        self.assertRegex(out, r"channel 1     [-0-9.]+ to [-0-9.]+, mean -?[0-9.]+(e-[0-9]+)?, standard deviation 1\n")
        self.assertRegex(out, rf"\n +7 +{lengths.count(7)} +\d+\.\d %  #+")
        out = self.lockstep("check", self.config).out
        found = re.search(r"length buckets +(\d+) of 1 to 3, (\d+) of 4 to 6, (\d+) of 7 to 9, (\d+) of 10 to 12 steps; up to the longest of a microshard (\d+) % are padding, without buckets (\d+) %", out)
        self.assertIsNotNone(found, out)
        self.assertEqual([int(n) for n in found.groups()[:4]], [sum(low < n <= low + 3 for n in lengths) for low in (0, 3, 6, 9)])
        self.assertLess(int(found[5]) * 2, int(found[6]))

    def test_errors_name_file_and_line(self):
        good = [{"steps": [[1, 2]], "side": 0}] * 4
        for bad, message in (
                ({"steps": [[1, 2]] * 13, "side": 0}, r"'steps' has 13 steps, more than pad_to \(12\)(.|\n)*truncate: back or front"),
                ({"steps": [], "side": 0}, r"'steps' is an empty sequence(.|\n)*min_length: 0"),
                ({"steps": [[1, 2, 3]], "side": 0}, r"field 'steps' has steps of the shape \[3\], but \[2\]"),
                ({"steps": "abc", "side": 0}, r"field 'steps' is a text"),
                ({"steps": 3, "side": 0}, r"field 'steps' is one number, no sequence"),
                ({"side": 0}, r"has no field 'steps'")):
            with self.subTest(bad):
                self.write("bad.jsonl", [*good, bad])
                arguments = self.train_arguments("bad", config=self.config, sets=["data.path=bad.jsonl", "data.train={rows: [0, 5]}", "data.eval=null"])
                result = self.start(*arguments, ranks=2).wait()
                self.assert_one_error(result, 3, message)
                self.assertIn("bad.jsonl, line 5", result.err)
        for sets, message in (
                (["data.pad_to=null"], r"inputs.length.*lengths: is about sequences of different lengths"),
                (["data.inputs.length.normalize=all"], r"normalize: is given with lengths: true"),
                (["train.shuffle=blocks"], r"length_buckets: takes the samples of a bucket in a random order"),
                (["data.train.length_buckets=[6, 3]"], r"must be lengths in ascending order"),
                (["data.eval.length_buckets=[3, 6]"], r"is not for an evaluation"),
                (["data.train.balance=classes"], r"is given beside balance")):
            with self.subTest(sets):
                result = self.train("bad", config=self.config, sets=sets, code=2)
                self.assertRegex(result.err, message)


if __name__ == "__main__":
    main()
