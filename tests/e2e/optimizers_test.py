# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Every update rule and groups of variables: the same bits on any number of ranks and threads and when resumed; frozen groups;
changed groups; bad input."""
import json
import re

from lockstep_run import DIGITS_DATA, LockstepTest, main, records

STEPS = 6
RATE = "{exponential_decay: {initial: 0.02, decay_steps: 3, decay_rate: 0.7}}"
KEPT = "{one_cycle: {peak: 0.8, initial: 0.95, last: 0.95, total_steps: 6}}"
# Each rule updates a layer of its own. Those that are not here have these options:
OPTIONS = "{learning_rate: 0.01}"
RULES = {
    "gradient_descent": "{learning_rate: 0.1, weight_decay: 0.01}",
    "momentum": "{learning_rate: 0.1, nesterov: true}",
    "adam": f"{{amsgrad: true, weight_decay: 0.1, beta1: {KEPT}, beta2: {KEPT}}}",
    "adamw": f"{{learning_rate: {RATE}}}",
    "nadam": f"{{beta1: {KEPT}}}",
    "radam": f"{{beta1: {KEPT}, beta2: 0.5}}",
    "adagrad": "{learning_rate: 0.1}",
    "adadelta": "{learning_rate: 1}",
    "rmsprop": f"{{learning_rate: 0.01, momentum: {KEPT}, decay: {KEPT}, centered: true}}",
    "ftrl": "{learning_rate: 0.1, learning_rate_power: -0.4, l1: 0.01}",
    "proximal_gradient_descent": "{learning_rate: 0.1, l1: 0.01}",
    "proximal_adagrad": "{learning_rate: 0.1, l2: 0.01}",
    "adagrad_da": "{learning_rate: 0.1, l2: 0.01}",
    "lion": "{learning_rate: 0.001, weight_decay: 0.1}",
    "lars": "{learning_rate: 3, weight_decay: 0.01}",
    "lamb": f"{{learning_rate: 0.01, beta1: {KEPT}}}",
    "muon": "{learning_rate: 0.01}",
    "shampoo": "{learning_rate: 0.01, root_every: 3}",
}
DATA = f"""
seed: 5
shards: 8
data:
  format: csv
  path: {DIGITS_DATA}
  label_column: -1
  scale: 0.0625
  train: {{rows: [0, 300]}}
train: {{batch_size: 43, epochs: 2}}
"""


def net_of(rules):
    """A net with a layer of each name."""
    return DATA + "model:\n  layers:\n" + "".join(
        f"    - dense: {{name: {rule}, inputs: [features], units: 37}}\n" for rule in rules) + f"""
    - concat: {{inputs: [{", ".join(rules)}], axis: 0}}
    - relu
    - dense: {{name: logits, units: 10}}
"""


def all_rules(rules):
    return net_of(rules) + "optimizer:\n  adam: {learning_rate: 0.01}\n  groups:\n" + "".join(
        f"    - {{variables: {rule}, rule: {{{rule}: {RULES.get(rule, OPTIONS)}}}}}\n" for rule in rules)


GROUPED = DATA + f"""
model:
  layers:
    - reshape: {{shape: [8, 8, 1]}}
    - conv2d: {{name: conv1, filters: 6, kernel: 3}}
    - batch_norm: {{name: norm1}}
    - relu
    - conv2d: {{name: conv2, filters: 8, kernel: 3}}
    - batch_norm: {{name: norm2}}
    - relu
    - flatten
    - dense: {{name: logits, units: 10}}
optimizer:
  adamw: {{learning_rate: {RATE}, weight_decay: 0.1}}
  groups:
    - {{variables: ["conv1", "norm1"], frozen: true}}
    - {{variables: ["*/bias", "norm*"], weight_decay: 0}}
    - {{variables: logits, rule: {{lars: {{learning_rate: 4}}}}}}
    - {{variables: conv2, learning_rate_factor: 0.5, weight_decay: {{constant: {{value: 0.3}}}}}}
average: {{ema: {{decay: 0.9}}}}
gradients: {{clip_global_norm: 0.7}}
"""
TABLES = """
seed: 3
shards: 4
data: {{format: csv, path: {path}, label_column: -1}}
model:
  layers:
    - embedding: {{name: words, rows: 700, units: 5}}
    - flatten
    - dense: {{name: logits, units: 3}}
optimizer: {{adam: {{learning_rate: 0.01}}, groups: [{{variables: words, {group}}}]}}
train: {{batch_size: 11, epochs: 3}}
"""


class OptimizersTest(LockstepTest):
    def config(self, text, name="config.yaml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def tensors(self, run):
        found = json.loads(self.lockstep("inspect", self.folder / run, "--json").out)["tensors"]
        return {entry["path"]: entry for entry in found}

    def assert_same_bits(self, name, config, sets=()):
        self.train(f"{name}-1-1", config=config, steps=STEPS, sets=sets)
        for ranks, threads in ((1, 2), (2, 1), (2, 2), (3, 1), (4, 1), (8, 1)):
            run = f"{name}-{ranks}-{threads}"
            self.train(run, config=config, steps=STEPS, sets=sets, ranks=ranks, threads=threads)
            self.assert_same_run(f"{name}-1-1", run, run)

    def test_every_rule_same_bits(self):
        reference = self.lockstep("config-reference").out
        rules = re.findall(r"^#+ Optimizer (\w+)$", reference, re.M)
        self.assertLessEqual(set(RULES), set(rules))
        config = self.config(all_rules(rules))
        self.assert_same_bits("all", config)
        for clip in ("clip_global_norm=0.5", "clip_value=0.01"):
            self.train(f"{clip}1", config=config, steps=STEPS, sets=["gradients." + clip])
            self.train(f"{clip}3", config=config, steps=STEPS, sets=["gradients." + clip], ranks=3)
            self.assert_same_run(f"{clip}1", f"{clip}3", clip)
            self.assertNotEqual(self.digest("all-1-1"), self.digest(f"{clip}1"))
        self.train("resumed", config=config, steps=2, ranks=4)
        self.train("resumed", config=config, steps=STEPS, ranks=2)
        self.assertEqual(self.digest("all-1-1"), self.digest("resumed"))

    def test_lars_and_lamb_alone_same_bits(self):
        for rule in ("lars", "lamb"):
            config = self.config(net_of(["a", "b"]) + f"optimizer: {{{rule}: {RULES[rule]}}}\n")
            self.assert_same_bits(rule, config, sets=["gradients.clip_global_norm=0.5"])

    def test_groups_with_a_frozen_layer_same_bits(self):
        config = self.config(GROUPED)
        self.assert_same_bits("grouped", config)
        self.train("resumed", config=config, steps=3, ranks=3)
        self.train("resumed", config=config, steps=STEPS, ranks=2)
        self.assertEqual(self.digest("grouped-1-1"), self.digest("resumed"))
        paths = set(self.tensors("grouped-1-1"))
        self.assertIn("slots/momentum/logits/kernel", paths)
        self.assertIn("slots/v/logits/bias", paths)  # the group of biases comes first
        self.assertNotIn("slots/momentum/conv2/kernel", paths)
        self.assertFalse([path for path in paths if path.startswith("slots/") and "conv1" in path])

    def test_muon_in_groups_same_bits(self):
        """Its matrices are shared among ranks, in each group apart."""
        self.assert_same_bits("muon", self.config(net_of(["a", "b", "c"]) + """
optimizer:
  muon: {learning_rate: 0.01}
  groups:
    - {variables: "*/bias", weight_decay: 0}
    - {variables: b, learning_rate_factor: 0.5}
    - {variables: logits, rule: {adamw: {learning_rate: 0.01}}}
"""))

    def test_sharded_groups_same_bits(self):
        """Slots that ranks share, of rules with different ones, one of which measures norms."""
        config, shard = self.config(GROUPED), "optimizer.shard=true"
        self.train("whole", config=config, steps=STEPS)
        for ranks in (2, 3):
            self.train(f"parts{ranks}", config=config, steps=STEPS, ranks=ranks, sets=[shard])
            self.assert_same_run("whole", f"parts{ranks}")
        self.train("resumed", config=config, steps=3, ranks=3, sets=[shard])
        self.train("resumed", config=config, steps=STEPS, ranks=2)
        self.assertEqual(self.digest("whole"), self.digest("resumed"))
        text = GROUPED.replace("lars: {learning_rate: 4}", "muon: {learning_rate: 0.01}")
        self.assertNotEqual(text, GROUPED)
        refused = self.lockstep(*self.train_arguments("no", config=self.config(text), steps=1, sets=[shard]), ranks=2, code=2)
        self.assertIn("a group's rule needs whole variables", refused.err)

    def test_frozen_groups_are_model_frozen(self):
        config = self.config(GROUPED)
        self.train("groups", config=config, steps=STEPS)
        text = GROUPED.replace("model:\n", "model:\n  frozen: [conv1, norm1]\n")
        text = re.sub(r"\n.*frozen: true}", "", text)
        self.train("frozen", config=self.config(text, "frozen.yaml"), steps=STEPS)
        self.assertEqual(self.digest("groups"), self.digest("frozen"))
        rates = records(self.folder / "groups")[-1]
        self.assertEqual(rates["group4/learning_rate"], 0.5 * rates["learning_rate"])
        self.assertEqual(rates["group3/learning_rate"], 4)
        self.assertNotIn("group2/learning_rate", rates, "it is the section's")
        plans = [self.lockstep("check", path).out for path in (config, self.folder / "frozen.yaml")]
        layers = [plan[:plan.index("learning_rate ")] for plan in plans]
        self.assertEqual(*layers)
        self.assertRegex(plans[0], r"none: the variables keep their values\n +of conv1/kernel, conv1/bias, norm1/gamma")
        self.assertRegex(plans[0], r"lars: .*; lr = 4\n +of logits/kernel\n")
        self.assertRegex(plans[0], r"adamw: w \*= 1 - lr group4/weight_decay;.*; lr = 0.5 \* .*\n +of conv2/kernel\n")

    def test_an_option_of_a_group_has_the_bits_of_the_section(self):
        base = net_of(["a", "b"])
        self.train("section", config=self.config(base + "optimizer: {adamw: {learning_rate: 0.01, weight_decay: 0.25}}\n"),
                   steps=STEPS)
        self.train("group", config=self.config(
            base + 'optimizer: {adamw: {learning_rate: 0.02}, '
            'groups: [{variables: "*", learning_rate_factor: 0.5, weight_decay: 0.25}]}\n', "group.yaml"), steps=STEPS)
        self.assertEqual(self.digest("section"), self.digest("group"))

    def test_tables(self):
        """Rows in groups: lazy, of another rule, dense for rules with norms."""
        (self.folder / "words.csv").write_text("".join(f"{i * 7 % 700},{i * i % 700},{i % 3}\n" for i in range(37)))
        for number, group in enumerate(("learning_rate_factor: 2, weight_decay: 0.1",
                                        "rule: {momentum: {learning_rate: 0.1, lazy: true}}",
                                        "rule: {lamb: {learning_rate: 0.01}}")):
            config = self.config(TABLES.format(path=self.folder / "words.csv", group=group))
            self.train(f"one{number}", config=config)
            for ranks, threads in ((1, 2), (3, 1)):
                self.train(f"many{number}{ranks}", config=config, ranks=ranks, threads=threads)
                self.assert_same_run(f"one{number}", f"many{number}{ranks}", group)
            self.train(f"dense{number}", config=config, sets=["comm.sparse_below=0"])
            if "lazy" not in group:
                self.assert_same_run(f"one{number}", f"dense{number}", group)
            self.assertEqual("sparse gradient" in self.lockstep("check", config).out, "lamb" not in group)

    def test_a_run_with_changed_groups(self):
        config = self.config(GROUPED)
        self.train("run", config=config, steps=3)
        changed = ["optimizer.groups.3.learning_rate_factor=0.25"]
        refused = self.lockstep(*self.train_arguments("run", config=config, steps=STEPS, sets=changed), code=2)
        self.assertRegex(refused.err, r"- optimizer.groups.3.learning_rate_factor: 0.5\n +\+ optimizer.groups.3.learning_rate_factor: 0.25")
        self.train("run", config=config, steps=4, sets=changed, more=["--accept-changes"])
        # A variable that was frozen, and one that gets another rule whose slots are in the file under other names.
        moved = ["optimizer.groups=[{variables: conv1, frozen: true}, "
                 "{variables: [logits, conv2], rule: {lars: {learning_rate: 4}}}]"]
        result = self.train("run", config=config, steps=STEPS, sets=moved, more=["--accept-changes"])
        self.assertRegex(result.err, r"state of optimizer of .*: begun anew: ")

    def test_bad_groups(self):
        config = self.config(GROUPED)
        for groups, expected in (("[{variables: conv3, frozen: true}]", "matches no variable that can be trained"),
                                 ('[{variables: "*", weight_decay: 0}, {variables: conv1, frozen: true}]',
                                  "earlier groups take all that it matches"),
                                 ("[{variables: logits, rule: {lars: {}}}]", "learning_rate"),
                                 ('[{variables: "*", frozen: true}]', "all variables are frozen")):
            for ranks in (None, 2):
                result = self.start(*self.train_arguments("bad", config=config, steps=1, sets=["optimizer.groups=" + groups]),
                                    ranks=ranks).wait()
                self.assertEqual(result.code, 2, str(result))
                self.assertEqual(result.err.count(expected), 1, str(result))


if __name__ == "__main__":
    main()
