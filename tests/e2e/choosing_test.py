# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Which samples a run uses, and how often: the same bits on any ranks and threads, changes are refused, mistakes are named."""
from lockstep_run import DIGITS_DATA, LockstepTest, main, records

CONFIG = f"""
seed: 3
shards: 4
data:
  format: csv
  path: {DIGITS_DATA}
  shape: [8, 8, 1]
  scale: 0.0625
  holdout: 0.1
  split_seed: 7
  split_by_class: true
  train: {{balance: classes, class_shares: {{"3": 2.5}}, repeat: 2}}
  eval: {{}}
model:
  layers: [flatten, {{dense: {{units: 32}}}}, batch_norm, relu, {{dense: {{units: 10}}}}]
  loss: softmax_cross_entropy
optimizer:
  adam: {{learning_rate: 0.003}}
train: {{batch_size: 64, epochs: 1, last_batch: fill}}
"""


class ChoosingTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "digits.yaml"
        self.config.write_text(CONFIG, encoding="utf-8")

    def run_it(self, name, **options):
        return self.train(name, config=self.config, **options)

    def test_the_same_bits_on_any_ranks_and_threads_and_after_stops(self):
        """A stratified part, classes with given shares, two passes and a filled batch; stopped in the middle of the epoch."""
        self.run_it("whole")
        for ranks, threads in ((1, 2), (2, 1), (3, 1), (4, 1)):
            with self.subTest(ranks=ranks, threads=threads):
                run = f"run-{ranks}-{threads}"
                self.run_it(run, ranks=ranks, threads=threads)
                self.assert_same_run("whole", run)
                self.assertEqual(records(self.folder / run, "eval"), records(self.folder / "whole", "eval"))
        for steps, ranks, threads in ((9, 3, 1), (31, 1, 2), (None, 4, 1)):
            self.run_it("parts", ranks=ranks, steps=steps, threads=threads)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_another_choice_is_refused_in_a_run(self):
        self.run_it("run", steps=3)
        for change, pattern in (("data.split_seed=8", r"- data\.split_seed: 7\n *\+ data\.split_seed: 8"),
                                ("data.train.repeat=3", r"data\.train\.repeat"),
                                ("data.train.class_shares={3: 2}", r"data\.train\.class_shares"),
                                ("train.last_batch=drop", r"train\.last_batch")):
            with self.subTest(change):
                result = self.start(*self.train_arguments("run", config=self.config, steps=4, sets=[change])).wait()
                self.assert_one_error(result, 2, pattern)

    def test_check_says_what_is_chosen(self):
        out = self.lockstep("check", self.config).out
        self.assertRegex(out, r"training set      161\d of 1797 samples")
        self.assertRegex(out, r"evaluation set    1[78]\d of 1797 samples")
        self.assertRegex(out, r"in an epoch       0: 2\d\d of 1\d\d, .*3: [67]\d\d of 1\d\d")


if __name__ == "__main__":
    main()
