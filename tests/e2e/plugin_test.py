# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""examples/layer_plugin: a layer, a function and a transform from a shared object, on every command that makes a model."""
import os

from lockstep_run import SOURCE, LockstepTest, main, records

CONFIG = SOURCE / "examples" / "layer_plugin" / "digits.yaml"
PLUGIN = os.environ["LOCKSTEP_LAYER_PLUGIN"]


class PluginTest(LockstepTest):
    SETS = [f"plugins={PLUGIN}"]

    def test_plugin_layer_same_bits_on_1_2_and_3_ranks(self):
        sets = [*self.SETS, "data.transforms=[channel_gain: {amount: 0.2}]"]
        for ranks in (1, 2, 3):
            self.train(f"run-{ranks}", ranks=ranks, config=CONFIG, steps=6, sets=sets)
            self.assert_same_run("run-1", f"run-{ranks}")
        losses = [record["loss"] for record in records(self.folder / "run-1")]
        self.assertLess(losses[-1], losses[0])
        tensors = {tensor["path"]: tensor for tensor in self.header(self.folder / "run-1")["tensors"]}
        beta = tensors["variables/swish1/beta"]
        self.assertNotEqual((beta["min"], beta["max"]), (1, 1), "the layer's own variable learns")

    def test_every_command_that_makes_a_model_knows_it(self):
        self.train("run", config=CONFIG, steps=4, sets=self.SETS, more=["--record", "3"])
        self.lockstep("evaluate", self.folder / "run")
        self.lockstep("predict", self.folder / "run", "--input", SOURCE / "data" / "digits.csv.gz", "--output",
                      self.folder / "out.csv")
        self.lockstep("replay", self.folder / "run", "--step", 3, ranks=2)
        table = self.lockstep("check", CONFIG, "--set", self.SETS[0]).out
        self.assertRegex(table, r"swish1 +swish +8x8x16 +16 ")
        self.assertRegex(table, r"log1p1 +log1p +8x8x1 ")

    def test_a_schedule_of_the_plugin(self):
        rate = "optimizer.learning_rate={inverse_root: {peak: 0.01, warmup_steps: 2}}"
        self.train("run", config=CONFIG, steps=8, sets=[*self.SETS, rate])
        rates = [record["learning_rate"] for record in records(self.folder / "run")]
        self.assertEqual([rates[0], rates[1], rates[7]], [0.005, 0.01, 0.005])
        self.assertIn("inverse_root", self.lockstep("check", CONFIG, "--set", self.SETS[0], "--set", rate, "--plot-schedule").out)

    def test_without_the_plugin_the_layer_is_unknown(self):
        result = self.lockstep("check", CONFIG, "--set", "plugins=null", code=2)
        self.assertRegex(result.err, "(?s)unknown layer 'log1p'.*unknown layer 'swish'.*3 mistakes", str(result))

    def test_a_gradient_through_a_function_is_refused(self):
        layers = "model.layers=[{conv2d: {filters: 2, kernel: 3}}, log1p, flatten, {dense: {units: 10}}]"
        for command in (["check", CONFIG], ["train", CONFIG, "--run-dir", self.folder / "run", "--steps", 1]):
            result = self.lockstep(*command, "--set", self.SETS[0], "--set", layers, code=2)
            self.assert_one_error(result, 2, "layer log1p1: log1p is a function without a backward pass")


if __name__ == "__main__":
    main()
