# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Samples with several inputs (data.inputs): layers read them by name, each with its own reader and transforms."""
import csv
import gzip
import json
import pathlib

from lockstep_run import DIGITS_DATA, LockstepTest, main

BESIDE = """
seed: 3
shards: 4
optimizer:
  adam: {learning_rate: 0.003}
train: {batch_size: 64, epochs: 2}
eval: {every_epochs: 1}
"""
HEAD = """
    - concat: {inputs: [low, high]}
    - relu
    - dense: {name: logits, units: 10}
  loss: softmax_cross_entropy
"""
# The upper half of a digit, and its lower half in another format, where the samples have no labels.
TWO = """
data:
  format: csv
  path: %s
  label_column: -1               # jsonl does not have this option
  scale: 0.0625
  train: {rows: [0, 400]}
  eval: {rows: [1500, 1600]}
  inputs:
    top: {shape: [8, 8, 1], transforms: [%s {crop: {size: [4, 8], offset: [0, 0]}}]}
    bottom: {format: jsonl, path: bottom.jsonl, features: pixels}
model:
  layers:
    - flatten: {name: upper, inputs: top}
    - dense: {name: low, units: 8}
    - dense: {name: high, units: 8, inputs: bottom}
""" + HEAD + BESIDE
# The same from whole digits.
ONE = """
data:
  format: csv
  path: %s
  shape: [64]
  scale: 0.0625
  train: {rows: [0, 400]}
  eval: {rows: [1500, 1600]}
model:
  layers:
    - split: {name: halves, parts: 2}
    - dense: {name: low, units: 8, inputs: halves}
    - dense: {name: high, units: 8, inputs: "halves:1"}
""" + HEAD + BESIDE


class InputsTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.one, self.two = self.folder / "one.yaml", self.folder / "two.yaml"
        self.one.write_text(ONE % DIGITS_DATA, encoding="utf-8")
        self.two.write_text(TWO % (DIGITS_DATA, ""), encoding="utf-8")
        with gzip.open(DIGITS_DATA, "rt") as lines, open(self.folder / "bottom.jsonl", "w", encoding="utf-8") as out:
            for row in csv.reader(lines):
                print(json.dumps({"pixels": [float(v) for v in row[32:64]]}), file=out)

    def run_two(self, name, ranks=None, threads=1, steps=None, sets=(), **more):
        return self.train(name, ranks=ranks, threads=threads, steps=steps, config=self.two, sets=sets, **more)

    def test_two_inputs_give_the_bits_of_one_that_is_split(self):
        self.train("one", config=self.one)
        self.run_two("two")
        self.assertEqual(self.digest("one"), self.digest("two"))

    def test_same_bits_on_any_ranks_and_threads_and_after_a_stop_inside_an_epoch(self):
        plain = self.folder / "digits.csv"  # a file that is compressed as a whole cannot be read while it is used
        plain.write_bytes(gzip.decompress(pathlib.Path(DIGITS_DATA).read_bytes()))
        self.two.write_text(TWO % (plain, "random_flip, {random_noise: {stddev: 0.1}},"), encoding="utf-8")
        sets = ["data.mix={mixup: 0.4, classes: 10}", "data.memory_gb=0.00006", "train.shuffle=blocks", "data.block_samples=16"]
        self.run_two("one", sets=sets)
        for ranks, threads in ((2, 1), (3, 1), (4, 1), (1, 2), (2, 2)):
            name = f"r{ranks}t{threads}"
            self.run_two(name, ranks=ranks, threads=threads, sets=sets)
            self.assert_same_run("one", name)
        self.run_two("staged", ranks=2, sets=[*sets, f"data.stage_to={self.folder}"])
        self.assert_same_run("one", "staged")
        self.run_two("stopped", ranks=3, steps=4, sets=sets)
        self.run_two("stopped", ranks=2, steps=9, sets=sets)
        self.run_two("stopped", threads=2, sets=sets)
        self.assert_same_run("one", "stopped")

    def test_predict_takes_a_file_for_each_input(self):
        self.run_two("run")
        self.train("one", config=self.one)
        inputs = ("--input", f"top={DIGITS_DATA}", "--input", "bottom=bottom.jsonl")
        for name, run, arguments in (("two", "run", inputs), ("one", "one", ("--input", DIGITS_DATA))):
            self.lockstep("predict", self.folder / run, *arguments, "--output", self.folder / f"{name}.csv", cwd=self.folder)
        self.assertEqual((self.folder / "one.csv").read_bytes(), (self.folder / "two.csv").read_bytes())
        for arguments, message in ((inputs[:2], "input bottom has no file"), ((*inputs, "--input", "x.csv"), "does not say which input")):
            result = self.lockstep("predict", self.folder / "run", *arguments, "--output", self.folder / "no.csv", code=2, cwd=self.folder)
            self.assert_one_error(result, 2, message)

    def test_look_at_each_input(self):
        self.assertIn("400 samples of top 4x8x1 float32, bottom 32 float32", self.lockstep("check", self.two).out)
        out = self.lockstep("data", self.two).out
        for text in ("training set, input top: 400 samples of 8x8x1 float32, transformed to 4x8x1", "training set, input bottom: 400 samples of 32",
                     "evaluation set, input bottom: 100 samples of 32"):
            self.assertIn(text, out)
        self.assertEqual(out.count("10 classes"), 2)

    def test_mistakes(self):
        for sets, message in ((["data.inputs.top.holdout=0.1"], "holdout chooses samples, which all inputs have in common"),
                              (["data.inputs.top.labl_column=3"], "unknown key 'labl_column'"),
                              (["data.inputs.bottom.format=josnl"], "unknown data format 'josnl'"),
                              (["model.layers.low.inputs=botom"], "Did you mean 'bottom'?"),
                              (["model.layers.upper.inputs=null"], "the first layer reads none of them"),
                              (["model.layers.high.inputs=upper"], "no layer reads the data's input bottom"),
                              (["model.layers.low.inputs=features"], "there is no layer 'features'"),
                              (["model.layers.low.name=top"], "that is an input of the data"),
                              (["data.inputs=[top]"], "data.inputs must be a map of names"),
                              (["data.mix={cutmix: 1, classes: 10}"], "CutMix takes images")):
            result = self.lockstep("check", self.two, *[x for s in sets for x in ("--set", s)], code=2)
            self.assert_one_error(result, 2, message)

    def test_inputs_that_do_not_belong_together_are_refused(self):
        result = self.lockstep("check", self.two, "--set", "data.inputs.bottom.train={rows: [0, 399]}", code=3)
        self.assert_one_error(result, 3, "input bottom has 399 samples, but input top has 400")
        other = "data.inputs.bottom={format: csv, train: {rows: [1, 401]}}"
        result = self.lockstep("check", self.two, "--set", other, code=3)
        self.assert_one_error(result, 3, "the labels of input bottom are not those of input top")

    def test_another_input_is_a_change_of_the_run_and_another_place_is_none(self):
        self.run_two("run", steps=3)
        result = self.run_two("run", sets=["data.inputs.top.transforms=[crop: {size: [4, 8], offset: [4, 0]}]"], code=2)
        self.assertIn("data.inputs.top", result.err)
        (self.folder / "bottom.jsonl").rename(self.folder / "elsewhere.jsonl")
        result = self.run_two("run", sets=["data.inputs.bottom.path=elsewhere.jsonl"])
        self.assertIn("the data are elsewhere", result.err)


if __name__ == "__main__":
    main()
