# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Patterns by role: each variable of each layer has exactly one of biases, norms, embeddings and kernels."""
import json

from lockstep_run import DIGITS_DATA, LockstepTest, main

CONFIG = """
seed: 1
shards: 2
data: {{format: csv, path: {data}, shape: [64], label_column: -1, train: {{rows: [0, 64]}}}}
model:
  layers:
    - embedding: {{name: words, rows: 17, units: 8}}
    - positional_embedding: {{name: places, kind: learned}}
    - attention: {{name: look, units: 8, heads: 2}}
    - layer_norm: {{name: ln}}
    - gru: {{name: gru, units: 4, bidirectional: true, reset_after: true}}
    - lstm: {{name: lstm, units: 4, layers: 2}}
    - conv1d: {{name: conv, filters: 8, kernel: 3}}
    - batch_norm: {{name: bn}}
    - group_norm: {{name: gn, groups: 2}}
    - flatten
    - dense: {{name: logits, units: 10}}
  loss: softmax_cross_entropy
optimizer: {optimizer}
train: {{batch_size: 32, steps: 1}}
"""


class RolesTest(LockstepTest):
    def config(self, optimizer="{adamw: {learning_rate: 0.001}}"):
        path = self.folder / "roles.yaml"
        path.write_text(CONFIG.format(data=DIGITS_DATA, optimizer=optimizer), encoding="utf-8")
        return path

    def names(self, file):
        tensors = json.loads(self.lockstep("inspect", file, "--json").out)["tensors"]
        return sorted(tensor["path"][len("variables/"):] for tensor in tensors if tensor["path"].startswith("variables/"))

    def test_every_variable_has_one_role(self):
        self.lockstep("train", self.config(), "--run-dir", self.folder / "run", "--threads", 1)
        of_role = {}
        for role in ("biases", "norms", "embeddings", "kernels"):
            output = self.folder / f"{role}.h5"
            self.lockstep("checkpoint", "export", self.folder / "run", "--variables", f"role:{role}", "--output", output)
            of_role[role] = self.names(output)
        self.assertEqual(sorted(sum(of_role.values(), [])), self.names(self.folder / "run"))
        self.assertIn("look/qkv_bias", of_role["biases"])
        self.assertIn("lstm/bias_0", of_role["biases"])
        self.assertIn("gru/candidate_recurrent_bias_0_reverse", of_role["biases"])
        self.assertEqual(of_role["norms"], ["bn/beta", "bn/gamma", "bn/moving_mean", "bn/moving_variance", "gn/beta", "gn/gamma", "ln/beta", "ln/gamma"])
        self.assertEqual(of_role["embeddings"], ["places/embeddings", "words/embeddings"])

    def means(self, run):
        tensors = json.loads(self.lockstep("inspect", self.folder / run, "--json").out)["tensors"]
        return {tensor["path"]: tensor["mean"] for tensor in tensors}

    def test_no_decay_by_role(self):
        """Two steps with a rate that moves nothing, and a decay that takes a fifth of what it acts on."""
        rule = "adamw: {learning_rate: 0.000001, weight_decay: 100000}"
        groups = "groups: [{variables: ['role:biases', 'role:norms', 'role:embeddings'], weight_decay: 0}]"
        for run, optimizer in (("all", f"{{{rule}}}"), ("kernels", f"{{{rule}, {groups}}}")):
            self.lockstep("train", self.config(optimizer), "--run-dir", self.folder / run, "--threads", 1, "--steps", 2)
        decayed, kept = self.means("all"), self.means("kernels")
        for name in ("ln/gamma", "bn/gamma", "gn/gamma"):
            self.assertAlmostEqual(decayed[f"variables/{name}"], 0.81, places=3)
            self.assertAlmostEqual(kept[f"variables/{name}"], 1, places=3)
        self.assertAlmostEqual(kept["variables/lstm/bias_0"], decayed["variables/lstm/bias_0"] / 0.81, places=3)
        self.assertNotEqual(kept["variables/lstm/bias_0"], 0)

    def test_an_unknown_role(self):
        config = self.config("{adamw: {}, groups: [{variables: 'role:bias', weight_decay: 0}]}")
        result = self.start("check", config, "--run-dir", self.folder / "run").wait()
        self.assert_one_error(result, 2, "there is no role 'bias'(.|\n)*After role: stands one of kernels, biases, norms, embeddings")


if __name__ == "__main__":
    main()
