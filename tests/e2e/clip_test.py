# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Clipped gradients and their norm: the same bits on any number of ranks and threads, with dense and with sparse
gradients, in float16, resumed, recorded; what becomes of a norm that is not finite; wrong configurations."""
import os
import random
import unittest

from lockstep_run import DIGITS, LockstepTest, main, records

HAS_FAULTS = os.environ["LOCKSTEP_HAS_FAULTS"] == "1"
CONFIG = """
seed: 3
shards: 4
data: {{format: csv, path: {path}, label_column: -1}}
model:
  layers:
    - embedding: {{name: words, rows: 700, units: 5, padding_index: 0}}
    - flatten
    - dense: {{name: hidden, units: 90}}
    - relu
    - dense: {{name: logits, units: 3}}
optimizer: {{adam: {{learning_rate: 0.01}}}}
train: {{batch_size: 11, epochs: 3}}
"""
# Each clips in some steps and not in others, or some variables and not others.
KINDS = {"clip_global_norm": "0.5", "clip_norm": "0.2", "clip_average_norm": "0.002", "clip_value": "[-0.02,0.03]"}


class ClipTest(LockstepTest):
    def setUp(self):
        super().setUp()
        numbers = random.Random(5)
        lines = [",".join(str(int(numbers.paretovariate(0.6)) % 700) for _ in range(6)) + f",{numbers.randrange(3)}"
                 for _ in range(37)]
        (self.folder / "words.csv").write_text("\n".join(lines) + "\n")
        self.config = self.folder / "words.yaml"
        self.config.write_text(CONFIG.format(path=self.folder / "words.csv"))

    def numbers(self, run, name):
        return [record[name] for record in records(self.folder / run) if name in record]

    def test_same_bits_with_sparse_and_dense_gradients(self):
        self.train("plain", config=self.config)
        self.assertEqual(self.numbers("plain", "gradient_norm"), [])
        digests = {self.digest("plain")}
        for kind, limit in KINDS.items():
            sets = [f"gradients.{kind}={limit}", "gradients.record_norm=true"]
            self.train(kind, config=self.config, sets=sets)
            self.assertEqual(len(self.numbers(kind, "gradient_norm")), 12)
            self.train(f"{kind}-dense", config=self.config, sets=[*sets, "comm.sparse_below=0"])
            self.assert_same_run(kind, f"{kind}-dense", f"{kind}, dense")
            for ranks, threads in ((1, 2), (2, 1), (2, 2), (3, 1), (4, 1)):
                form = ["comm.sparse_below=0"] if ranks == 3 else []
                run = f"{kind}-{ranks}-{threads}"
                self.train(run, config=self.config, sets=[*sets, *form], ranks=ranks, threads=threads)
                self.assert_same_run(kind, run, run)
            digests.add(self.digest(kind))
        self.assertEqual(len(digests), 5, "something was not clipped")

    def test_recording_the_norm_changes_no_bit(self):
        self.train("plain", config=self.config)
        self.train("recorded", config=self.config, sets=["gradients.record_norm=true"])
        norms = self.numbers("recorded", "gradient_norm")
        self.assertEqual(len(norms), 12)
        self.assertTrue(all(0 < norm < 100 for norm in norms), norms)
        self.assertEqual(self.numbers("recorded", "clipped"), [])
        self.assertEqual(self.digest("plain"), self.digest("recorded"))
        self.train("wide", config=self.config, sets=[f"gradients.clip_global_norm={2 * max(norms)}"])
        self.assertEqual(self.digest("plain"), self.digest("wide"))
        self.assertEqual(self.numbers("wide", "gradient_norm"), norms)
        self.assertEqual(set(self.numbers("wide", "clipped")), {0})
        middle = sorted(norms)[6]
        self.train("clipped", config=self.config, sets=[f"gradients.clip_global_norm={middle}"])
        self.assertEqual(self.numbers("clipped", "clipped"),
                         [float(norm > middle) for norm in self.numbers("clipped", "gradient_norm")])
        self.assertNotEqual(self.digest("plain"), self.digest("clipped"))
        self.train("each", config=self.config, sets=["gradients.clip_norm=0.2"])
        shares = self.numbers("each", "clipped")
        self.assertTrue(any(0 < share < 1 for share in shares), shares)

    def test_the_norm_can_be_logged(self):
        hook = "hooks=[{logging: {tensors: [loss, gradient_norm], every_steps: 1}}]"
        result = self.train("run", config=self.config, sets=["gradients.record_norm=true", hook], steps=3)
        self.assertRegex(result.err, r"step 3: loss = [\d.]+, gradient_norm = [\d.]+")
        result = self.lockstep("train", self.config, "--run-dir", self.folder / "no", "--set", hook, code=2)
        self.assertIn("there is no tensor 'gradient_norm'", str(result))

    def test_resumed_run_same_bits_on_other_ranks(self):
        sets = ["gradients.clip_global_norm=0.5"]
        self.train("whole", config=self.config, sets=sets)
        self.train("parts", config=self.config, sets=sets, ranks=3, steps=5)
        self.train("parts", config=self.config, sets=[*sets, "comm.sparse_below=0"], ranks=2, steps=8)
        self.train("parts", config=self.config, sets=sets)
        self.assert_same_run("whole", "parts")

    def test_norm_follows_loss_scale_and_regularizer(self):
        sets = ["gradients.clip_global_norm=0.5"]
        self.train("plain", config=self.config, sets=sets)
        self.train("scaled", config=self.config, sets=[*sets, "precision.loss_scale=1024"])
        self.assertEqual(self.numbers("plain", "gradient_norm"), self.numbers("scaled", "gradient_norm"))
        self.assertEqual(self.digest("plain"), self.digest("scaled"))
        for ranks in (1, 3):
            self.train(f"l2-{ranks}", config=self.config, ranks=ranks,
                       sets=[*sets, "model.regularization=[{variables: '*/kernel', l2: 100}]"])
        self.assert_same_run("l2-1", "l2-3")
        self.assertGreater(self.numbers("l2-1", "gradient_norm")[0], 50 * self.numbers("plain", "gradient_norm")[0])

    def test_float16_is_clipped_after_its_loss_scale(self):
        growth = ["precision.loss_scale=dynamic", "precision.loss_scale_growth_steps=1"]
        sets = ["precision.compute=float16", "train.batch_size=128", "shards=4", "gradients.clip_global_norm=0.5"]
        result = self.train("one", config=DIGITS, sets=[*sets, *growth], steps=40)
        self.assertIn("gradients overflowed; its update is skipped, the loss scale is", result.err)
        self.assertTrue(0 < sum(self.numbers("one", "clipped")) < 40)
        for ranks, threads in ((1, 2), (2, 1), (3, 1), (4, 1)):
            run = f"many{ranks}{threads}"
            self.train(run, config=DIGITS, sets=[*sets, *growth], ranks=ranks, threads=threads, steps=40)
            self.assert_same_run("one", run, run)

    def test_replay_sees_gradients_before_clipping(self):
        sets = ["gradients.clip_norm=0.2"]
        self.train("recorded", config=self.config, sets=sets, ranks=2, more=["--record", "3"])
        self.lockstep("replay", self.folder / "recorded", "--step", "3")  # code 0: the same on one rank
        result = self.lockstep("replay", self.folder / "recorded", "--step", "3", "--set", "gradients.clip_norm=0.1", code=1)
        self.assertRegex(result.out, r"first in order of execution: update")

    @unittest.skipUnless(HAS_FAULTS, "a build without faults")
    def test_on_nan_applies_to_a_non_finite_norm(self):
        fault = {"LOCKSTEP_FAULT": "4:1:nan_gradient"}
        sets = ["gradients.clip_global_norm=0.5"]

        def run(name, on_nan, code=0, more=()):
            arguments = self.train_arguments(name, config=self.config, sets=[*sets, f"train.on_nan={on_nan}", *more])
            result = self.start(*arguments, ranks=2, variables=fault).wait()
            self.assertEqual(result.code, code, str(result))
            return result
        self.assert_one_error(run("error", "error", code=1), 1, "the norm of the gradients of step 4 is nan")
        skipped = run("skip", "skip")
        self.assertIn("the norm of the gradients of step 4 is nan: training has diverged: this step's update is skipped",
                      skipped.err)
        norms = self.numbers("skip", "gradient_norm")
        self.assertEqual([i for i, norm in enumerate(norms) if norm is None], [3])
        self.assertEqual(len(norms), 12)
        self.assertIn("stopping: the norm of the gradients of step 4 is nan", run("stop", "stop").err)
        # Said, and then every gradient is NaN, hence every later loss.
        self.assertIn("the norm of the gradients of step 4 is nan", run("warn", "warn", more=["checkpoint.every_epochs=0"]).err)
        self.assertEqual([record["loss"] is None for record in records(self.folder / "warn")], [False] * 4 + [True] * 8)

    def test_mistakes_are_named_with_their_place(self):
        for sets, message in ((["gradients.clip_norm=1", "gradients.clip_value=1"], "clip_value: clip_norm is given, too"),
                              (["gradients.clip_global_norm=0"], "clip_global_norm"),
                              (["gradients.clip_global_norm=.inf"], "clip_global_norm: must be a finite number"),
                              (["gradients.clip_value=[1,2]"], "is no range around 0"),
                              (["gradients.clip=1"], "unknown key 'clip'")):
            words = [word for one in sets for word in ("--set", one)]
            result = self.lockstep("check", self.config, *words, code=2)
            self.assert_one_error(result, 2, message)
        self.lockstep("check", self.config, "--set", "gradients.clip_global_norm=1")


if __name__ == "__main__":
    main()
