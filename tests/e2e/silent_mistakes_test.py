# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Configurations that would train on something else than was meant: each is refused, or answered, with an advice that works."""
import os
import re
import subprocess

from lockstep_run import DIGITS_DATA, LockstepTest, main, records

CHANGE = os.environ["LOCKSTEP_CHANGE_WEIGHT"]
IMAGES = """
seed: 1
shards: 2
data:
  format: csv
  path: %s
  shape: [8, 8, 1]
  scale: 0.0625
  train: {rows: [0, 200]}
model:
  layers: [conv2d: {name: conv, filters: 4, kernel: 3, bias: false}, batch_norm: {name: bn}, relu, flatten, dense: {name: fc, units: 10}]
  loss: softmax_cross_entropy
optimizer: {adam: {learning_rate: 0.003}}
train: {batch_size: 50, epochs: 30}
"""
TABLE = """
shards: 1
data:
  format: csv
  header: true
  inputs: {x: {path: x.csv}}
  targets: {y: {path: y.csv}}
  train: {}
model:
  layers: [dense: {units: 3, inputs: [x]}]
  loss: %s
optimizer: {adam: {learning_rate: 0.003}}
train: {batch_size: 20, epochs: 2}
"""


class SilentMistakes(LockstepTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "run.yaml"
        self.config.write_text(IMAGES % DIGITS_DATA, encoding="utf-8")

    def check(self, *sets, code=0):
        return self.lockstep("check", self.config, *[word for text in sets for word in ("--set", text)], code=code)

    def refused(self, pattern, *sets, code=2):
        result = self.check(*sets, code=code)
        self.assert_one_error(result, code, pattern)
        return result.err

    def table(self, targets, loss="softmax_cross_entropy"):
        (self.folder / "x.csv").write_text("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(60)), encoding="utf-8")
        (self.folder / "y.csv").write_text(targets, encoding="utf-8")
        self.config.write_text(TABLE % loss, encoding="utf-8")

    # Batch norm and averages

    def test_batch_norm_forgets_its_initial_statistics_in_a_short_run(self):
        self.assertNotIn("initial", self.check().out)
        slow = "model.layers.bn.momentum=0.99"
        warning = self.check(slow).out
        self.assertRegex(warning, r"warning +bn: a run of 120 steps with momentum 0.99 leaves 30 % of the moving statistics")
        advice = re.search(r"give momentum: ([0-9.]+)", warning)[1]
        self.assertNotIn("initial", self.check(f"model.layers.bn.momentum={advice}").out)
        run = self.lockstep("train", self.config, "--run-dir", self.folder / "slow", "--set", slow, "--set", "train.epochs=2")
        self.assertRegex(run.err, "warning: bn: a run of 8 steps")

    def test_an_average_that_stays_at_its_first_value_is_answered(self):
        warning = self.check("average=ema").out
        self.assertRegex(warning, r"average.ema: 120 updates with decay 0.999 leave 89 % of the average")
        decay = re.search(r"or decay: ([0-9.]+)", warning)[1]
        for average in ("{ema: {num_updates: true}}", f"{{ema: {{decay: {decay}}}}}"):
            self.assertNotIn("average.ema:", self.check(f"average={average}").out)

    def test_a_run_of_an_earlier_program_keeps_its_default(self):
        """Its checkpoint does not state momentum, and means 0.99; that of today states 0.9."""
        base = ["--set", "train.epochs=2", "--set", "eval=null"]
        explicit = ["--set", "model.layers.bn.momentum=0.99"]
        self.lockstep("train", self.config, "--run-dir", self.folder / "explicit", *base, *explicit, "--steps", 4)
        old = self.folder / "old"
        subprocess.run(["cp", "-r", self.folder / "explicit", old], check=True)
        for file in (old / "checkpoints").glob("step-*.h5"):
            self.assertIn("momentum: 0.99", self.header(file)["config"])
            subprocess.run([CHANGE, file, "config", "momentum: 0.99", "epsilon: 0.001"], check=True)
            self.assertNotIn("momentum", self.header(file)["config"])
        result = self.lockstep("train", self.config, "--run-dir", old, *base)
        self.assertIn("momentum of batch_norm is 0.99, the default when the run began; it is 0.9 now", result.err)
        self.lockstep("train", self.config, "--run-dir", self.folder / "explicit", *base, *explicit)
        self.assertEqual(self.digest("old"), self.digest("explicit"))
        self.assertIn("momentum: 0.99", (old / "config.yaml").read_text(encoding="utf-8"))
        # Today's value is another one: it changes the result.
        result = self.lockstep("train", self.config, "--run-dir", old, "--set", "train.epochs=3", "--set", "eval=null",
                               "--set", "model.layers.bn.momentum=0.9", code=2)
        self.assertIn("- model.layers.bn.momentum: 0.99", result.err)

    def test_a_run_states_the_default_that_it_has(self):
        self.lockstep("train", self.config, "--run-dir", self.folder / "run", "--set", "train.epochs=1")
        self.assertIn("momentum: 0.9", (self.folder / "run" / "config.yaml").read_text(encoding="utf-8"))

    # Transforms

    def test_colours_after_a_normalization_are_refused_and_the_advice_works(self):
        jitter = "data.train.transforms=[normalize: {mean: 0.3, std: 0.35}, color_jitter: {brightness: 0.2}]"
        self.refused("takes values from 0 to 1, its max, and meets .* from -0.857(.|\n)*move normalize to a place after color_jitter", jitter)
        self.check("data.train.transforms=[color_jitter: {brightness: 0.2}, normalize: {mean: 0.3, std: 0.35}]")
        refused = self.train("refused", config=self.config, sets=[jitter], code=2)
        self.assert_one_error(refused, 2, "move normalize to a place after color_jitter")
        self.assertEqual(records(self.folder / "refused"), [])

    def test_the_normalization_of_the_data_is_named_with_its_numbers(self):
        error = self.refused("data.normalize acts before all transforms", "data.normalize=channels", "data.train.transforms=[rand_augment]")
        line = re.search(r"`- (normalize: \{[^}]*\})`", error)[1]
        self.assertRegex(line, r"mean: 0\.\d+, std: 0\.\d+")
        self.check(f"data.train.transforms=[rand_augment, {line}]")

    def test_values_that_are_not_scaled_are_refused(self):
        self.refused("max: 255", "data.scale=1", "data.train.transforms=[color_jitter: {contrast: 0.1}]")
        self.check("data.scale=1", "data.train.transforms=[color_jitter: {contrast: 0.1, max: 16}]")

    # Losses and targets

    def test_softmax_of_numbers_that_are_no_distribution_is_refused(self):
        self.table("p,q,r\n" + "".join(f"{i / 100},{-1 - i},{i % 5}\n" for i in range(60)))
        self.refused(r"value 1 \(from 0\) of target y is -1, which is not a probability(.|\n)*mean_squared_error", code=3)
        self.check("model.loss=mean_squared_error")
        self.table("p,q,r\n" + "".join("0.5,0.9,0.1\n" for _ in range(60)))
        self.refused("3 values of target y that should be a distribution sum to 1.5(.|\n)*sigmoid_cross_entropy", code=3)
        self.check("model.loss=sigmoid_cross_entropy")
        self.table("p,q,r\n" + "".join("0.2,0.7,0.1\n" for _ in range(60)))
        self.check()

    def test_normalized_targets_are_refused_by_losses_of_probabilities(self):
        self.table("p,q,r\n" + "".join(f"{i % 2},{i % 3 // 2},{i % 5 // 4}\n" for i in range(60)), "sigmoid_cross_entropy")
        self.check()
        for loss in ("sigmoid_cross_entropy", "softmax_cross_entropy"):
            error = self.refused("target y is normalised", f"model.loss={loss}", "data.targets.y.normalize=channels")
            self.assertIn("data.targets.y: {normalize: none}", error)
        self.check("model.loss=mean_squared_error", "data.targets.y.normalize=channels")

    def test_sigmoid_of_class_indices_is_refused(self):
        self.table("c\n" + "".join(f"{i % 3}\n" for i in range(60)), "sigmoid_cross_entropy")
        self.refused("the value of target y is 2, which is not between 0 and 1(.|\n)*softmax_cross_entropy",
                     "model.layers=[dense: {units: 1, inputs: [x]}]", code=3)
        self.check("model.loss=softmax_cross_entropy")

    def test_a_softmax_of_one_class_is_refused(self):
        self.table("c\n" + "".join("0\n" for i in range(60)))
        self.refused("softmax of one class is always 1", "model.layers=[dense: {units: 1, inputs: [x]}]")

    def test_a_csv_target_has_all_its_columns(self):
        self.table("p,q,r\n" + "".join("0.2,0.7,0.1\n" for _ in range(60)))
        self.assertIn("targets: y 3 float32", self.check().out)
        self.assertRegex(self.check().out, "samples of x 2 float32")
        self.refused("has labels, beside data.targets", "data.inputs.x.label_column=-1")
        self.refused("target y has labels of its own", "data.targets.y.label_column=-1")

    # Names and values that people bring

    def test_a_pattern_with_a_lookahead_leaves_out_what_it_names(self):
        frozen = self.check('model.frozen=["re:(?!fc/).*"]').out
        self.assertRegex(frozen, r"\nfc +dense +10 +2570 +0")
        self.assertRegex(frozen, r"\nconv +conv2d +\S+ +0 +36")

    def test_null_undoes_what_an_included_file_says(self):
        (self.folder / "base.yaml").write_text((IMAGES % DIGITS_DATA) + "checkpoint: {keep_best: 2, best_metric: loss}\n", encoding="utf-8")
        self.config.write_text("include: base.yaml\ncheckpoint: {keep_best: null}\ntrain: {shuffle: null}\ndata: {scale: null}\n", encoding="utf-8")
        self.check()
        self.lockstep("train", self.config, "--run-dir", self.folder / "run", "--steps", 1)
        self.lockstep("train", self.folder / "run", "--set", "train.epochs=1")
        self.config.write_text("include: base.yaml\ncheckpoint: {keep_best: }\n", encoding="utf-8")
        self.refused("keep_best: needs a value")

    def test_words_of_other_programs_are_answered(self):
        for text, answer in (("data.val={rows: [200, 300]}", "data.eval"), ("data.test={rows: [200, 300]}", "lockstep evaluate RUN_DIR"),
                             ("precision=bf16-mixed", r"precision: \{compute: bfloat16\}"), ("precision=16-mixed", r"compute: float16"),
                             ("precision.compute=bf16-mixed", "bfloat16"), ("ema=0.999", "average: "), ("average=0.999", r"average: \{ema: \{decay"),
                             ("average.ema=0.999", r"ema: \{decay: 0.999\}"), ("gradients=1.0", "clip_global_norm"), ("train=5", r"train: \{epochs"),
                             ("warm_start=runs/old", r"warm_start: \{checkpoint"), ("model=resnet20", r"layers: \[resnet20\]")):
            with self.subTest(text):
                self.refused(answer, text)

    # What is recorded and said

    def test_a_short_run_has_its_histograms(self):
        gradients = "summary.gradients=true"
        self.assertIn("the run has 120 steps: the first one alone, or give every_steps: 12",
                      self.check("summary.gradients={every_steps: 500}").out)
        self.train("run", config=self.config, sets=[gradients], steps=3)
        steps = [r["step"] for r in records(self.folder / "run") if any(key.startswith("gradient_norm/") for key in r)]
        self.assertEqual(steps, [1])

    def test_hparams_show_what_is_set(self):
        """Also in a job that continues from the run's own configuration, which states every option."""
        self.train("run", config=self.config, steps=1)
        self.lockstep("train", self.folder / "run", "--steps", 1)
        files = list((self.folder / "run").rglob("events.*"))
        events = b"".join(file.read_bytes() for file in files)
        for path in (b"optimizer.adam.learning_rate", b"train.batch_size", b"seed"):
            self.assertIn(path, events)
        for path in (b"train.shuffle", b"train.accumulate", b"precision.compute", b"gradients."):
            self.assertNotIn(path, events)

    def test_samples_that_are_held_out_and_never_evaluated_are_named(self):
        warning = "data.holdout sets 20 % of the samples aside, and nothing evaluates them: add `eval: {}`"
        self.assertIn(warning, self.check("data.holdout=0.2").out)
        self.assertIn("data.folds sets 1 of 5 parts of the samples aside", self.check("data.folds=5", "data.fold=0").out)
        trained = self.train("alone", config=self.config, sets=["data.holdout=0.2"], steps=1)
        self.assertEqual(trained.err.count(warning), 1, trained.err)
        advice = re.search(r"\(--set (\S+)\)", trained.err).group(1)
        self.assertNotIn("holdout", self.check("data.holdout=0.2", advice).out)
        self.train("evaluated", config=self.config, sets=["data.holdout=0.2", advice], steps=1)
        self.assertEqual(len(records(self.folder / "evaluated", "eval")), 1)

    def test_long_lists_of_keys_end_and_say_where_all_are(self):
        for setting, topics in (("train.zzzzzz=1", ["train"]), ("data.zzzzzz=1", ["data", "csv"]), ("model.layers.conv.zzzzzz=1", ["conv2d"]),
                                ("model.layers=[zzzzzz]", [""])):
            err = self.check(setting, code=2).err
            known = re.search(r"Known(?: keys)?: (.*) and \d+ more \(see (.*)\)", err)
            self.assertIsNotNone(known, err)
            self.assertEqual(known.group(1).count(","), 9, err)
            commands = re.findall(r"`lockstep explain ?(\S*)`", known.group(2))
            self.assertEqual(commands, topics)
            explained = "".join(self.lockstep("explain", *topic.split()).out for topic in commands)
            for name in known.group(1).split(", "):
                self.assertRegex(explained, rf"\b{name}\b")

    def test_constant_channels_are_named_once_and_long_lists_end(self):
        err = self.check("data.normalize=channels", "data.shape=null", "model.layers=[dense: {units: 10}]").err
        self.assertEqual(len(re.findall("warning: ", err)), 1, err)
        inputs = "data.inputs={a: {}, b: {}}"
        layers = "model.layers=[flatten: {inputs: [a]}, dense: {name: one, units: 10}, flatten: {inputs: [b]}, dense: {name: two, units: 10}, add: {inputs: [one, two]}]"
        err = self.check(inputs, layers, "data.normalize=channels", "data.shape=null").err
        self.assertEqual(len(re.findall("warning: ", err)), 1, err)
        self.assertRegex(err, r"of 64 channels of a \(.* and \d+ more\), .* of b")


if __name__ == "__main__":
    main()
