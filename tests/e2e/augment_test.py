# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Transforms in a run: the same bits on any number of ranks and threads and across kills, and what evaluation and prediction
get."""
from lockstep_run import DIGITS_DATA, LockstepTest, main, records

CONFIG = """
seed: 3
shards: 4
data:
  format: csv
  path: %s
  shape: [8, 8, 1]
  scale: 0.0625
  train: {rows: [0, 400]}
  eval: {rows: [1500, 1600]}
  transforms:
    - random_crop: {padding: 1}
    - random_affine: {degrees: [-15, 15], translate: 0.1}
    - random_erasing
    - random_noise: {stddev: 0.1}
    - resize: {size: 6}
  mix: {mixup: 0.4, cutmix: 1, probability: 0.8, classes: 10}
model:
  layers: [flatten, {dense: {units: 16}}, relu, {dense: {units: 10}}]
  loss: softmax_cross_entropy
optimizer:
  adam: {learning_rate: 0.003}
train: {batch_size: 64, epochs: 2}
eval: {every_epochs: 1}
"""
FIXED = "data.transforms=[resize: {size: 6}]"


class AugmentTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "digits.yaml"
        self.config.write_text(CONFIG % DIGITS_DATA, encoding="utf-8")

    def run_it(self, name, ranks=None, threads=1, steps=None, sets=(), **more):
        return self.train(name, ranks=ranks, threads=threads, steps=steps, config=self.config, sets=sets, **more)

    def test_same_bits_on_any_ranks_and_threads_and_after_a_stop_inside_an_epoch(self):
        self.run_it("one")
        for ranks, threads in ((2, 1), (3, 1), (4, 1), (1, 2)):
            name = f"r{ranks}t{threads}"
            self.run_it(name, ranks=ranks, threads=threads)
            self.assert_same_run("one", name)
        self.run_it("stopped", ranks=3, steps=4)
        self.run_it("stopped", ranks=2, steps=9)
        self.run_it("stopped", threads=2)
        self.assert_same_run("one", "stopped")

    def test_evaluation_and_prediction_get_the_fixed_form(self):
        """The same weights give the same with the random transforms and without them."""
        self.run_it("run", steps=3)
        results = []
        for name, sets in (("a", ()), ("b", ("--set", FIXED))):
            out = self.folder / f"{name}.csv"
            self.lockstep("predict", self.folder / "run", "--input", DIGITS_DATA, "--output", out, *sets)
            results.append((self.lockstep("evaluate", self.folder / "run", *sets).out, out.read_bytes()))
        self.assertEqual(*results)

    def test_random_transforms_act_in_training_and_differ_between_epochs(self):
        one_step_per_epoch = ["data.mix=null", "train.batch_size=400", "train.epochs=2", "train.shuffle=false", "optimizer.adam.learning_rate=1e-30"]
        self.run_it("random", sets=one_step_per_epoch)
        self.run_it("fixed", sets=[*one_step_per_epoch, FIXED])
        random, fixed = ([r["loss"] for r in records(self.folder / name) if "loss" in r] for name in ("random", "fixed"))
        self.assertEqual(fixed[0], fixed[1])
        self.assertNotEqual(random[0], random[1])
        self.assertNotEqual(random[0], fixed[0])

    def test_what_does_not_fit_is_refused_before_training(self):
        for transforms, message in (("[random_flp]", "unknown transform 'random_flp'"),
                                    ("[randomhorizontalflip]", "It is called 'random_flip' here"),
                                    ("[random_crop: {paddin: 1}]", "unknown key 'paddin'"),
                                    ("[crop: {size: 9}]", "does not fit into samples of 8x8x1"),
                                    ("{random_flip: {}}", "not a list")):
            result = self.lockstep("check", self.config, "--set", f"data.transforms={transforms}", code=2)
            self.assert_one_error(result, 2, message)
        for mix, message in (("{mixup: 0.2}", "the number of classes is not given"),
                             ("{mixup: 0.2, classes: 9}", "label rows have 9 values, but the model's output has the shape 10"),
                             ("{mixup: 0.2, classes: 10, switch_prob: 1}", "unknown key 'switch_prob'")):
            result = self.lockstep("check", self.config, "--set", f"data.mix={mix}", code=2)
            self.assert_one_error(result, 2, message)
        result = self.lockstep("check", self.config, "--set", "data.eval.mix={mixup: 0.2, classes: 10}", code=2)
        self.assert_one_error(result, 2, "samples of an evaluation are not mixed")

    def test_a_microshard_of_one_sample_is_mixed_with_the_next_of_the_batch(self):
        """Batches of 4 in 4 shards; the bits are those on other ranks."""
        small = ["train.batch_size=4", "data.train.rows=[0, 10]", "train.epochs=3"]
        for name, ranks in (("one", None), ("three", 3)):
            self.run_it(name, ranks=ranks, sets=small)
        self.run_it("plain", sets=[*small, "data.mix=null"])
        self.assert_same_run("one", "three")
        self.assertNotEqual(self.digest("one"), self.digest("plain"))

    def test_a_changed_list_is_reported_when_a_run_continues(self):
        self.run_it("run", steps=3)
        result = self.run_it("run", sets=[FIXED], code=2)
        self.assertIn("transforms", result.err)


if __name__ == "__main__":
    main()
