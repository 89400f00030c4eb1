# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Labels by name (data.targets) for several heads, and weights of samples in the loss."""
import csv
import gzip
import json
import shutil

from lockstep_run import DIGITS_DATA, LockstepTest, main, records

BESIDE = """
seed: 3
shards: 4
optimizer:
  adam: {learning_rate: 0.003}
train: {batch_size: 64, epochs: 2}
eval: {every_epochs: 1}
"""
DATA = """
data:
  format: jsonl
  path: digits.jsonl
  features: pixels
  scale: 0.0625
  train: {rows: [0, 400]}
  eval: {rows: [400, 500]}
"""
TARGETS = """  targets:
    digit: {features: digit, scale: 1}
    even: {features: even, scale: 1}
    trust: {features: trust, scale: 1}
"""
HEADS = """
model:
  layers:
    - dense: {name: trunk, units: 16}
    - relu
    - dense: {name: digit, units: 10}
    - dense: {name: even, units: 1, inputs: relu1}
  heads:
    - {name: digit, output: digit, labels: digit, sample_weights: trust}
    - {name: even, output: even, labels: even, loss: sigmoid_cross_entropy}
"""
ONE_HEAD = """
model:
  layers: [{dense: {name: trunk, units: 16}}, relu, {dense: {name: digit, units: 10}}]
"""


class TargetsTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.rows = []
        with gzip.open(DIGITS_DATA, "rt") as lines:
            for i, row in zip(range(500), csv.reader(lines)):
                digit = int(row[-1])
                self.rows.append({"pixels": [float(v) for v in row[:-1]], "digit": digit, "even": 1 - digit % 2,
                                  "trust": (0, 0.5, 1, 2)[i % 4], "digit and even": [digit, 1 - digit % 2]})
        self.write("digits.jsonl", self.rows)

    def write(self, name, rows):
        with open(self.folder / name, "w", encoding="utf-8") as out:
            for row in rows:
                print(json.dumps(row), file=out)

    def config(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def test_same_bits_on_any_ranks_and_threads_and_after_a_stop_inside_an_epoch(self):
        config = self.config("heads.yaml", DATA + TARGETS + HEADS + BESIDE)
        streamed = ["data.memory_gb=0.0002", "train.shuffle=blocks", "data.block_samples=16"]
        for kind, sets in (("memory", []), ("streamed", streamed)):
            self.train(f"one {kind}", config=config, sets=sets)
            for ranks, threads in ((2, 1), (3, 1), (4, 1), (1, 2)):
                self.train("other", ranks=ranks, threads=threads, config=config, sets=sets)
                self.assert_same_run(f"one {kind}", "other")
                shutil.rmtree(self.folder / "other")
        self.train("stopped", ranks=3, steps=4, config=config)
        self.train("stopped", ranks=2, steps=9, config=config)
        self.train("stopped", threads=2, config=config)
        self.assert_same_run("one memory", "stopped")

    def test_targets_give_the_bits_of_label_columns(self):
        heads = HEADS.replace(", sample_weights: trust", "")
        self.train("named", config=self.config("named.yaml", DATA + TARGETS + heads + BESIDE))
        columns = heads.replace("labels: digit", "labels: [0, 1]").replace("labels: even", "labels: [1, 2]")
        data = DATA.replace("features: pixels", "features: pixels\n  labels: digit and even")
        self.train("columns", config=self.config("columns.yaml", data + columns + BESIDE))
        self.assertEqual(self.digest("named"), self.digest("columns"))

    def test_weights_count_as_repeated_samples(self):
        """One step over whole batches: weights 0, 1 and 2 give the gradient of a set in which samples stand so often."""
        for row in self.rows:
            row["trust"] = row["digit"] % 3
        self.write("weighted.jsonl", self.rows)
        self.write("repeated.jsonl", [row for row in self.rows for _ in range(row["trust"])])
        targets = "  targets:\n    digit: {features: digit, scale: 1}\n"
        weights = targets + "    trust: {features: trust, scale: 1}\n"
        more = BESIDE.replace("adam: {learning_rate: 0.003}", "gradient_descent: {learning_rate: 1}").replace("shards: 4", "shards: 1")
        data = DATA.replace("  train: {rows: [0, 400]}\n  eval: {rows: [400, 500]}\n", "  eval: {}\n")
        losses = {}
        for name, model, its_targets in (("weighted", ONE_HEAD + "  loss: softmax_cross_entropy\n  sample_weights: trust\n", weights),
                                         ("repeated", ONE_HEAD + "  loss: softmax_cross_entropy\n", targets)):
            config = self.config(f"{name}.yaml", data.replace("digits.jsonl", f"{name}.jsonl") + its_targets + model + more)
            self.train(name, config=config, sets=["train.batch_size=1000", "train.epochs=3", "train.shuffle=false", "eval.every_epochs=1"])
            losses[name] = [r["loss"] for split in ("train", "eval") for r in records(self.folder / name, split)]
        self.assertEqual((len(losses["weighted"]), len(losses["repeated"])), (6, 6))
        for a, b in zip(losses["weighted"], losses["repeated"]):
            self.assertAlmostEqual(a, b, delta=2e-5 * max(1, abs(b)))
        # So does each metric, and `accuracy` means the same whether it is listed or not.
        weights = self.folder / "weighted"
        shutil.rmtree(self.folder / "repeated" / "checkpoints")
        shutil.copytree(weights / "checkpoints", self.folder / "repeated" / "checkpoints")
        shutil.copy(weights / "checkpoint", self.folder / "repeated" / "checkpoint")
        found = {}
        for name in ("weighted", "repeated"):
            for metrics in ("null", "[accuracy, mean_iou, {top_k: {k: 3}}, {accuracy: {name: named}}]"):
                out = self.lockstep("evaluate", self.folder / f"{name}.yaml", "--run-dir", self.folder / name, "--set", f"eval.metrics={metrics}").out
                found[name, metrics] = json.loads(out)
        (plain, listed), (same, same_listed) = [[numbers for key, numbers in found.items() if key[0] == name] for name in ("weighted", "repeated")]
        self.assertEqual(plain["accuracy"], listed["accuracy"])
        self.assertEqual(plain["accuracy"], listed["named"])
        self.assertEqual(plain["accuracy"], records(weights, "eval")[-1]["accuracy"])
        self.assertEqual(plain["accuracy"], same["accuracy"])
        for metric in ("accuracy", "mean_iou", "top_k"):
            self.assertAlmostEqual(listed[metric], same_listed[metric], delta=1e-12)

    def test_predict_reads_targets_if_their_files_are_named(self):
        config = self.config("heads.yaml", DATA + TARGETS + HEADS + BESIDE)
        self.train("run", config=config, steps=3)
        names = ("digit", "even", "trust")
        for output, more, labels in (("plain.h5", (), False), ("named.h5", [x for n in names for x in ("--input", f"{n}=digits.jsonl")], True)):
            self.lockstep("predict", self.folder / "run", "--input", "digits.jsonl", *more, "--output", self.folder / output, cwd=self.folder)
            found = self.read_by_h5py("import h5py, sys\nwith h5py.File(sys.argv[1]) as file:\n"
                                      "  print({k: file[k + '/labels'][:].flatten().tolist() for k in ('digit', 'even') if 'labels' in file[k]})",
                                      self.folder / output)
            self.assertEqual(found, {k: [row[k] for row in self.rows] for k in ("digit", "even")} if labels else {})
        result = self.lockstep("predict", self.folder / "run", "--input", "digits.jsonl", "--input", "even=digits.jsonl", "--output", "no.csv",
                               code=2, cwd=self.folder)
        self.assert_one_error(result, 2, "target digit has no file")

    def test_a_mask_is_transformed_like_its_image(self):
        """The mask is the image itself, so a net that copies its input has loss 0 exactly if both are flipped and cropped alike."""
        data = """
data:
  format: jsonl
  path: digits.jsonl
  features: pixels
  shape: [8, 8, 1]
  scale: 0.0625
  transforms: [random_flip, {random_crop: {padding: 2}}, {random_affine: {degrees: [-20, 20]}}]
  targets:
    mask: {transforms: %s}
model:
  layers: [{conv2d: {name: copy, filters: 1, kernel: 1, kernel_initializer: ones, bias: false}}]
  loss: mean_squared_error
"""
        same = "[random_flip, {random_crop: {padding: 2}}, {random_affine: {degrees: [-20, 20]}}]"
        beside = BESIDE.replace("eval: {every_epochs: 1}\n", "")
        for name, transforms in (("same", same), ("other", "[]")):
            config = self.config(f"{name}.yaml", data % transforms + beside)
            self.train(name, config=config, steps=2)
            loss = [r["loss"] for r in records(self.folder / name) if "loss" in r][0]
            self.assertEqual(loss == 0, name == "same", loss)

    def test_a_target_may_be_normalised_by_the_training_set(self):
        """The numbers are those of its 400 samples, also in an evaluation by another command."""
        model = "model:\n  layers: [{dense: {units: 1}}]\n  loss: mean_squared_error\n"
        texts = ("{features: trust, scale: 1, normalize: channels}", "{features: trust, scale: 1, mean: 0.875, std: 0.73950997}")
        evaluations = []
        for name, ranks, target in (("computed", None, texts[0]), ("ranks", 2, texts[0]), ("given", None, texts[1])):
            config = self.config(f"{name}.yaml", DATA + f"  targets:\n    trust: {target}\n" + model + BESIDE)
            self.train(name, ranks=ranks, config=config, sets=["eval.every_epochs=1"])
            evaluations.append([r["loss"] for r in records(self.folder / name, "eval")])
            self.assertEqual(json.loads(self.lockstep("evaluate", self.folder / name).out)["loss"], evaluations[-1][-1])
        self.assertEqual(self.digest("computed"), self.digest("ranks"))
        self.assertEqual(*evaluations[:2])
        for a, b in zip(evaluations[0], evaluations[2]):
            self.assertAlmostEqual(a, b, delta=1e-5 * b)

    def test_look_at_each_target(self):
        config = self.config("heads.yaml", DATA + TARGETS + HEADS + BESIDE)
        self.assertIn("400 samples of 64 float32; targets: digit 1 float32, even 1 float32, trust 1 float32", self.lockstep("check", config).out)
        out = self.lockstep("data", config).out
        for text in ("training set, target digit: 400 samples", "10 classes", "evaluation set, target trust: 100 samples"):
            self.assertIn(text, out)

    def test_mistakes(self):
        config = self.config("heads.yaml", DATA + TARGETS + HEADS + BESIDE)
        for sets, code, message in ((["model.heads.even.labels=evn"], 2, "Did you mean 'even'?"),
                                    (["model.heads.digit.sample_weights=trst"], 2, "Did you mean 'trust'?"),
                                    (["data.targets=null", "data.labels=digit"], 2, "the data's labels have no names"),
                                    (["data.labels=digit and even"], 2, "has labels, beside data.targets"),
                                    (["data.targets.digit.features=pixels"], 2, "head digit: "),
                                    (["data.inputs={digit: {}}"], 2, "an input and a target are both named 'digit'"),
                                    (["data.targets.digit.scale=0.5"], 3, "which is not one of 10 classes"),
                                    (["data.targets.trust.offset=-1"], 3, "which is not 0 or more"),
                                    (["data.targets.even.train={rows: [0, 399]}"], 3, "target even has 399 samples, but the input has 400"),
                                    (["model.heads.digit.labels=[3, 1]"], 2, "are not a range of columns")):
            result = self.lockstep("check", config, *[x for s in sets for x in ("--set", s)], code=code)
            self.assert_one_error(result, code, message)


if __name__ == "__main__":
    main()
