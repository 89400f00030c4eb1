// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation_options.h"

#include "config/option.h"

namespace lockstep {

namespace {

/// The section as it is written.
struct Section {
  EvaluationOptions options;
  std::optional<std::int64_t> every_epochs, every_steps;
  Node metrics;
};
using Options = EvaluationOptions;

constexpr ParamSpec kTable[] = {
    option<&Section::options, &Options::batch_size>(
        "batch_size", "null", between(1, 2147483647, "samples").or_null(),
        "Samples per step of evaluation. null: that of section train."),
    option<&Section::every_epochs>("every_epochs", "1", between(0, 1e9).or_null(),
                                   "Evaluate after every this many epochs. 0 or null: only at the end.",
                                   Change::free),
    option<&Section::every_steps>("every_steps", "null", between(1, 1e12).or_null(),
                                  "Also evaluate after every this many steps.", Change::free),
    option<&Section::options, &Options::averages>(
        "averages", "true", {},
        "Evaluate with the moving averages of the variables, where the run keeps them (see average)."),
    option<&Section::metrics>(
        "metrics", "null", in_words("list or null"),
        "Metrics that evaluations report in addition to loss and accuracy: a list, each a name or {name: "
        "options}; see the metrics.",
        Change::free),
};

}  // namespace

std::span<const ParamSpec> evaluation_table() { return kTable; }

EvaluationOptions evaluation_options(const Params& section) {
  auto [options, every_epochs, every_steps, metrics] = section.as<Section>();
  options.every_epochs = every_epochs.value_or(0);
  options.every_steps = every_steps.value_or(0);
  options.metrics = metrics_from_config(metrics);
  return options;
}

}  // namespace lockstep
