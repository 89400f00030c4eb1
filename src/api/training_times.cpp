// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/training_times.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "api/estimator.h"
#include "config/params.h"
#include "core/scalar.h"
#include "run/sections/config.h"

namespace lockstep {

namespace {

/// When evaluations during training take place.
struct EvaluationTimes {
  std::int64_t every_epochs = 0;
  std::optional<std::int64_t> every_steps = {};
};

/// Where checkpoints are, at least `wanted` steps apart; 0: at the end only.
EvaluationTimes evaluation_times(std::int64_t wanted, std::optional<std::int64_t> checkpoint_steps,
                                 std::int64_t checkpoint_epochs) {
  if (wanted == 0) return {};
  if (!checkpoint_steps) return {.every_epochs = checkpoint_epochs};
  return {.every_steps = (wanted + *checkpoint_steps - 1) / *checkpoint_steps * *checkpoint_steps};
}

}  // namespace

Config changed(const Config& config, const TrainOptions& options) {
  std::vector<std::string> overrides;
  if (options.max_steps) {
    overrides.push_back(fmt::format("train.steps={}", *options.max_steps));
    overrides.emplace_back("train.epochs=null");
  }
  if (options.eval_every_steps) {
    const CheckpointTriggers& checkpoint = config.checkpoint.triggers;
    const EvaluationTimes times = evaluation_times(*options.eval_every_steps, checkpoint.every_steps,
                                                   checkpoint.every_epochs.value_or(0));
    overrides.push_back(fmt::format("eval.every_epochs={}", times.every_epochs));
    overrides.push_back(times.every_steps ? fmt::format("eval.every_steps={}", *times.every_steps)
                                          : "eval.every_steps=null");
  }
  if (options.worker_delay_steps)
    overrides.push_back(fmt::format("cluster.worker_delay_steps={}", *options.worker_delay_steps));
  if (overrides.empty()) return config;
  return changed_config(config, resolved_config(config), overrides);
}

void set_evaluations(RunConfig& run, std::int64_t wanted) {
  const Node* const steps = run.checkpoint.every_steps.node();
  const Node* const epochs = run.checkpoint.every_epochs.node();
  const EvaluationTimes times =
      evaluation_times(wanted, steps != nullptr ? parse_integer(steps->text) : std::nullopt,
                       epochs != nullptr ? parse_integer(epochs->text).value_or(0) : 1);
  if (steps == nullptr && epochs == nullptr) run.checkpoint.every_epochs = 1;  // each evaluation has one
  run.eval.every_epochs = times.every_epochs;
  run.eval.every_steps = nullptr;
  if (times.every_steps) run.eval.every_steps = *times.every_steps;
}

}  // namespace lockstep
