# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""`lockstep check` refuses what `lockstep train` refuses, with the same message, and train refuses it before its first step."""
import gzip
import pathlib
import re
import subprocess
import sys
import unittest

from lockstep_run import DIGITS, LockstepTest, PROGRAM, TIME_LIMIT, main, records

EVERY = "every_steps: 100"


class CheckTest(LockstepTest):
    def assert_both_refuse(self, pattern, *sets, code=2, run_dir=None):
        run_dir = run_dir or self.folder / "run"
        messages = []
        for command in ("check", "train"):
            arguments = [command, DIGITS, "--run-dir", run_dir]
            for override in ["train.steps=1", "train.epochs=null", *sets]:
                arguments += ["--set", override]
            result = self.start(*arguments).wait()
            self.assert_one_error(result, code, pattern)
            self.assertNotIn("The configuration is good", result.out)
            messages.append(re.sub(r"hook checkpoint_saver, after_create_session: |hook summary\.\w+, begin: |[0-9.]+ MB are free", "", result.err[result.err.index("error: "):]))
        self.assertEqual(messages[0], messages[1])
        self.assertFalse((run_dir.parent.is_dir() and (run_dir / "metrics.jsonl").exists()), "no step was made")

    def test_names_of_metrics_and_variables(self):
        for hook in ("stop_if_higher: {metric: acuracy, threshold: 1}", "stop_if_no_increase: {metric: eval/acuracy, max_steps: 9}"):
            self.assert_both_refuse(r"digits.yaml|--set(.|\n)*hook stop_if.*no evaluation gives the metric 'eval/acuracy'\n  Did you mean 'accuracy'",
                                    f"hooks=[{hook}]")
        self.assert_both_refuse("checkpoint, best_metric: no evaluation gives 'los'\n  Did you mean 'loss'", "checkpoint.keep_best=1",
                                "checkpoint.best_metric=los")
        self.assert_both_refuse("hook stop_if_lower.*'eval/loss'\n.*There is no evaluation", "data.eval=null",
                                "hooks=[stop_if_lower: {metric: loss, threshold: 1}]")
        self.assert_both_refuse("there is no tensor 'conv1/kernle'\n  Did you mean 'conv1/kernel'",
                                f"hooks=[logging: {{tensors: [conv1/kernle], {EVERY}}}]")

    def test_what_is_recorded(self):
        def recorded(*sets):
            out = self.lockstep("check", DIGITS, *[word for text in sets for word in ("--set", text)]).out
            lines = out[out.index("\nrecords ") + 1:out.index("The configuration is good")].splitlines()
            return {line[:17].strip(): line[18:] for line in lines}
        self.assertEqual(recorded(), {"records": "loss and metrics every 20 steps, to event files and metrics.jsonl"})
        found = recorded("summary.gradients={variables: ['conv?/kernel', logits], every_steps: 50}", "summary.updates={histograms: false}",
                         "summary.weights=true", "summary.inputs={count: 4}", "summary.filters=true", "summary.ranks=true",
                         "summary.activations={layers: 'relu*', every_steps: 1}", "summary.confusion_matrix=true",
                         "eval.metrics=[confusion_matrix]", "summary.every_steps=1", "summary.every_seconds=2.5")
        self.assertEqual(found, {
            "records": "loss and metrics every step and every 2.5 s, to event files and metrics.jsonl",
            "weights": "after the first step and every 100 steps, all 17 variables: histograms",
            "gradients": "after the first step and every 50 steps, 5 of 11 trained variables (conv1/kernel, conv2/kernel, conv3/kernel, logits/kernel, logits/bias): "
                         "histograms; norms by layer, also to metrics.jsonl",
            "updates": "after the first step and every 100 steps, all 11 trained variables: update ratios, also to metrics.jsonl; "
                       "0.23 MB of memory for a copy of these variables",
            "activations": "every step, 3 of 13 layers (relu1, relu2, relu3): histograms; shares of zeros and of saturated outputs, also to metrics.jsonl",
            "inputs": "after the first step and every 500 steps: up to 4 samples (pictures 8x8x1), with labels and predictions"
                      "; the run has 480 steps: the first one alone, or give every_steps: 48",
            "filters": "after the first step and every 500 steps: pictures of conv1"
                       "; the run has 480 steps: the first one alone, or give every_steps: 48",
            "confusion_matrix": "each evaluation: pictures of confusion_matrix",
            "ranks": "with loss and metrics: times and memory of the ranks, also to metrics.jsonl"})
        self.assertEqual(recorded("summary.events=false", "summary.weights=true", "summary.gradients={variables: conv1}"), {
            "records": "loss and metrics every 20 steps, to metrics.jsonl",
            "weights": "nothing, because summary.events is false",
            "gradients": "after the first step and every 100 steps, 1 of 11 trained variables (conv1/kernel): norms by layer"})
        self.assertIn("nothing", recorded("summary.events=false", "summary.metrics=false", "summary.weights=true")["records"])
        self.assert_both_refuse("summary.attention: no chosen layer is an attention layer", "summary.attention=true")

    def test_schedules_that_need_evaluations(self):
        plateau = "optimizer.learning_rate={reduce_on_plateau: {initial: 0.1, metric: acuracy}}"
        self.assert_both_refuse("schedule reduce_on_plateau: no evaluation gives the metric 'acuracy'\n  Did you mean 'accuracy'", plateau)
        self.assert_both_refuse("schedule reduce_on_plateau needs evaluations, and there are none\n.*There is no evaluation", plateau, "data.eval=null")
        self.assert_both_refuse("there is one at the end only\n  Set eval.every_epochs", plateau.replace("acu", "accu"), "eval.every_epochs=0")
        warmup = "optimizer.learning_rate={constant: {value: 0.1, warmup: {linear: {steps: 30, unit: epochs}}}}"
        self.assertIn("the run ends after 480 steps, in the warm-up of learning_rate, which takes 720", self.lockstep("check", DIGITS, "--set", warmup).err)

    def test_files_and_disk(self):
        self.assert_both_refuse("last row is 1800|1800|rows", "data.eval.rows=[1500, 1800]", code=3)
        self.assert_both_refuse("nothing.so", f"plugins=[{self.folder}/nothing.so]")
        self.assert_both_refuse("the disk is too full: 1000000001 more checkpoints", "checkpoint.keep=1000000000", code=4)
        file = self.folder / "file"
        file.touch()
        self.assert_both_refuse("file is no folder", run_dir=file / "run")
        many = ", ".join(f"auc_pr: {{name: m{i}, num_thresholds: 1000000}}" for i in range(5))
        self.assert_both_refuse("the states of the metrics take", "shards=64", f"eval.metrics=[{many}]")

    def test_update_rule_in_words_and_wrong_options_of_rules(self):
        out = self.lockstep("check", DIGITS, "--set", "optimizer={rmsprop: {learning_rate: 0.01, momentum: 0.5}}").out
        self.assertIn("update            rmsprop: r += (1 - 0.9) (g^2 - r); p = 0.5 p + lr g / sqrt(r + 1e-10); w -= p; lr = 0.01\n", out)
        self.assert_both_refuse(r"unknown key 'alpha' in optimizer rmsprop(.|\n)*It is called 'decay' here", "optimizer={rmsprop: {learning_rate: 0.01, alpha: 0.9}}")
        self.assert_both_refuse(r"unknown key 'weight_decay' in optimizer ftrl(.|\n)*This update rule has no weight decay",
                                "optimizer={ftrl: {learning_rate: 0.01, weight_decay: 0.9}}")
        self.assert_both_refuse("weight_decay: must be \\[0, 1e6\\], but is -1", "optimizer={adamw: {weight_decay: -1}}")
        self.assert_both_refuse(r"unknown optimizer 'RMSPropOptimizer'(.|\n)*It is called 'rmsprop' here", "optimizer={RMSPropOptimizer: {}}")

    def test_a_model_larger_than_the_memory(self):
        layers = ("conv1", "conv2")  # 3 x 3 x 300000 x 300000 values between them
        self.assert_both_refuse(r"error: the model takes 1[0-9]\.\d TB of memory on each rank \(values 3\.\d TB, gradients 3\.\d TB, 2 slots of the "
                                r"optimizer 6\.\d TB\), and a rank has [0-9.]+ [GT]B here\n  Its largest variable is conv2/kernel \(3x3x300000x300000\)",
                                *[f"model.layers.{layer}.filters=300000" for layer in layers], code=1)

    def test_check_touches_no_memory_of_the_model(self):
        measure = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); " \
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        kilobytes = []
        for filters in (64, 150000):  # 1.5 GB of values and slots
            result = subprocess.run([sys.executable, "-c", measure, PROGRAM, "check", DIGITS, "--run-dir", self.folder / "run", "--set",
                                     f"model.layers.conv2.filters={filters}"], capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("The configuration is good", result.stdout)
            kilobytes.append(int(result.stdout.splitlines()[-1]))
        self.assertLess(kilobytes[1] - kilobytes[0], 300_000, kilobytes)

    def test_warm_start(self):
        self.assert_both_refuse("warm_start|there is no|missing", f"warm_start.checkpoint={self.folder}/missing.h5", code=4)
        self.train("other", ranks=None, steps=1)
        other = f"warm_start.checkpoint={self.folder}/other"
        self.assert_both_refuse("no variable of this model matches 'conv9", other, "warm_start.variables=[conv9/.*]")
        self.assert_both_refuse("cannot be warm-started from it", other, "model.layers.conv1.filters=8", code=4)

    def test_a_run_that_may_not_be_continued(self):
        self.train("run", ranks=None, steps=1)
        check = ["check", DIGITS, "--run-dir", self.folder / "run", "--set", "checkpoint.every_epochs=0"]
        self.assertIn("The configuration is good", self.lockstep(*check).out)
        self.assert_one_error(self.start(*check, "--set", "train.batch_size=32").wait(), 2, r"\+ train.batch_size: 32")

    def test_changes_of_a_run_that_are_accepted(self):
        self.train("run", ranks=None, steps=1)
        check = ["check", DIGITS, "--run-dir", self.folder / "run", "--set", "checkpoint.every_epochs=0", "--set", "train.batch_size=32"]
        self.assertIn("(--accept-changes)", self.lockstep(*check, "--accept-changes").err)
        self.assert_one_error(self.start("check", DIGITS, "--accept-changes").wait(), 2, "--accept-changes needs --run-dir")

    def test_other_data_under_the_same_names(self):
        data = self.folder / "digits.csv"
        rows = gzip.decompress((DIGITS.parent.parent / "data" / "digits.csv.gz").read_bytes()).decode().splitlines()
        data.write_text("\n".join(rows) + "\n")
        sets = [f"data.path={data}", "eval.every_epochs=0", "checkpoint.every_epochs=0"]
        self.lockstep("train", DIGITS, "--run-dir", self.folder / "run", "--steps", 1, *[word for text in sets for word in ("--set", text)])
        data.write_text("\n".join(rows[1:] + rows[:1]) + "\n")
        sets += ["train.steps=2", "train.epochs=null"]
        for command in ("check", "train"):
            arguments = [command, DIGITS, "--run-dir", self.folder / "run", *[word for text in sets for word in ("--set", text)]]
            self.assert_one_error(self.start(*arguments).wait(), 2, r"the training and evaluation data changed since the run began")
        self.assertIn("The configuration is good", self.lockstep("check", *arguments[1:], "--accept-changes").out)

    def test_what_a_diverged_run_says_of_checkpoints(self):
        sets = ["optimizer={momentum: {learning_rate: 1.0e+30}}"]
        result = self.train("run", ranks=None, steps=9, code=1, sets=sets)
        self.assertIn("no checkpoint is on the disk yet", result.err)
        sets += ["checkpoint.at_start=true", "checkpoint.background=false"]
        self.assertIn("the checkpoint of step 0 is intact", self.train("other", ranks=None, steps=9, code=1, sets=sets).err)

    def test_numbers_look_alike(self):
        result = self.train("run", ranks=None, steps=24, sets=["eval.every_epochs=1", "checkpoint.keep_best=1"])
        record = records(self.folder / "run", "eval")[-1]
        self.assertIn(f"evaluation at step 24: loss {record['loss']:.6g}  accuracy {record['accuracy']:.6g}  (297", result.err)
        listed = self.lockstep("checkpoint", "list", self.folder / "run").out.splitlines()[1].split()
        self.assertEqual(listed[:2], ["24", "1"], "one epoch is done, not two")
        self.assertIn(f"{record['loss']:.6g}", listed)
        self.assertRegex(self.lockstep("status", self.folder / "run").out, r"loss +0?\.?\d+")

    def test_the_help_names_pages_that_are_there(self):
        page = re.search(r"Documentation: (\S+)", self.lockstep("--help").out)
        self.assertIsNotNone(page)
        self.assertTrue(pathlib.Path(page[1]).is_file(), page[1])

    def test_both_names_of_a_metric_are_the_same(self):
        sets = ["eval.every_steps=2", "checkpoint.keep_best=1", "checkpoint.best_metric=eval/accuracy", "checkpoint.best_mode=max",
                f"hooks=[stop_if_higher: {{metric: accuracy, threshold: -1, min_steps: 4}}, logging: {{tensors: [eval/accuracy], at_end: true}}]"]
        result = self.train("run", ranks=None, steps=9, sets=sets)
        self.assertRegex(result.err, r"stopping: eval/accuracy is 0\.\d+, above -1")
        accuracy = records(self.folder / "run", "eval")[-1]["accuracy"]
        self.assertRegex(result.err, rf"step 4: eval/accuracy = {accuracy:.6g}")


if __name__ == "__main__":
    main()
