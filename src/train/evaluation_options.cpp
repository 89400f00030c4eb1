// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation_options.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kTable[] = {
    {"batch_size", integer, "null", "> 0 samples or null",
     "Samples per step of evaluation. null: that of section train."},
    {"every_epochs", integer, "1", ">= 0 or null",
     "Evaluate after every this many epochs. 0 or null: only at the end."},
    {"every_steps", integer, "null", ">= 1 or null", "Also evaluate after every this many steps."},
    {"metrics", node, "null", "list or null",
     "Metrics that evaluations report in addition to loss and accuracy: a list, each a name or {name: "
     "options}; see the metrics."},
};

}  // namespace

std::span<const ParamSpec> evaluation_table() { return kTable; }

EvaluationOptions evaluation_options(const Params& section) {
  return {.batch_size = section.optional_integer("batch_size"),
          .every_epochs = section.optional_integer("every_epochs").value_or(0),
          .every_steps = section.optional_integer("every_steps").value_or(0),
          .metrics = metrics_from_config(section.node("metrics"))};
}

}  // namespace lockstep
