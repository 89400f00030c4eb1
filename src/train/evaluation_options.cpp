// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation_options.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kTable[] = {
    {"batch_size", integer, "null", between(1, 2147483647, "samples").or_null(),
     "Samples per step of evaluation. null: that of section train."},
    {"every_epochs", integer, "1", between(0, 1e9).or_null(),
     "Evaluate after every this many epochs. 0 or null: only at the end.", Change::free},
    {"every_steps", integer, "null", between(1, 1e12).or_null(), "Also evaluate after every this many steps.",
     Change::free},
    {"averages",
     boolean,
     "true",
     {},
     "Evaluate with the moving averages of the variables, where the run keeps them (see average)."},
    {"metrics", node, "null", in_words("list or null"),
     "Metrics that evaluations report in addition to loss and accuracy: a list, each a name or {name: "
     "options}; see the metrics.",
     Change::free},
};

}  // namespace

std::span<const ParamSpec> evaluation_table() { return kTable; }

EvaluationOptions evaluation_options(const Params& section) {
  return {.batch_size = section.optional_integer("batch_size"),
          .every_epochs = section.optional_integer("every_epochs").value_or(0),
          .every_steps = section.optional_integer("every_steps").value_or(0),
          .averages = section.boolean("averages"),
          .metrics = metrics_from_config(section.node("metrics"))};
}

}  // namespace lockstep
