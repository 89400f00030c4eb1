# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A small net with a layer for each kind of summary, and the options that switch all of them on."""

NET = """
seed: 3
shards: 4
data:
  format: csv
  path: %s/data/digits.csv.gz
  shape: [8, 8, 1]
  label_column: -1
  scale: 0.0625
  train: {rows: [0, 256]}
  eval: {rows: [1500, 1564]}
model:
  layers:
    - conv2d: {name: conv, filters: 8, kernel: 3}
    - batch_norm: {name: bn}
    - relu: {name: act}
    - reshape: {name: rows, shape: [64, 8]}
    - attention: {name: look, units: 8, heads: 2}
    - flatten
    - dense: {name: logits, units: 10}
  loss: softmax_cross_entropy
optimizer:
  adam: {learning_rate: 0.01}
  groups: [{variables: "conv/*", learning_rate_factor: 0.5}]
train: {batch_size: 64, steps: 40}
checkpoint: {every_steps: 5}
eval: {every_steps: 5, metrics: [confusion_matrix, {auc_pr: {curve: true}}]}
"""

NOTHING = ["summary.events=false", "summary.metrics=false", "eval.metrics=[]"]


def everything(every=5, profile=(3, 4)):
    """Each part of section summary, at an interval of `every` steps, and a profile."""
    parts = ("weights", "gradients", "updates", "activations", "inputs", "attention", "filters")
    return ["summary.every_steps=1", "summary.confusion_matrix=true", "summary.projector=true",
            f"summary.ranks={{every_steps: {every}, each_rank: true}}", *(f"summary.{part}={{every_steps: {every}}}" for part in parts),
            f"hooks=[profile: {{first_step: {profile[0]}, last_step: {profile[1]}}}]"]
