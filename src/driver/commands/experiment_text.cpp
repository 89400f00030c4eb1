// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/experiment_text.h"

#include <fmt/format.h>

#include "core/shown_text.h"
#include "run/sections/experiment_options.h"

namespace lockstep {

namespace {

std::string export_text(const ExportStrategy& strategy, const Config& config) {
  const Direction given = strategy.given_direction(),
                  better =
                      given != Direction::none ? given : direction_of(strategy.metric, config.eval.metrics);
  using When = ExportStrategy::When;
  const std::string which =
      strategy.when == When::latest ? "each evaluated checkpoint"
      : strategy.when == When::final
          ? "the checkpoint of the end"
          : shown_format("a checkpoint with the {} {} so far",
                         better == Direction::max ? "largest" : "smallest", strategy.metric);
  return shown_format("                  export/{}: {}, {}\n", strategy.name, which,
                      strategy.keep > 0 ? shown_format("the newest {} stay", strategy.keep) : "all stay");
}

/// When train_and_evaluate() evaluates.
std::string evaluations_text(const Config& config, std::int64_t frequency) {
  if (frequency == 0) return "one evaluation, at the end";
  const CheckpointTriggers& checkpoint = config.checkpoint.triggers;
  if (const auto steps = checkpoint.every_steps)
    return shown_format("an evaluation every {} steps, and at the end",
                        (frequency + *steps - 1) / *steps * *steps);
  const std::int64_t epochs = checkpoint.every_epochs.value_or(0);
  if (epochs == 0) return "one evaluation, at the end";
  return epochs == 1 ? "an evaluation every epoch, and at the end"
                     : shown_format("an evaluation every {} epochs, and at the end", epochs);
}

}  // namespace

void check_experiment(const Config& config, const std::string& schedule) {
  if (schedule == "train" || schedule == "continuous_eval_on_train_data" || config.data.eval) return;
  throw config.error("experiment", "schedule",
                     shown_format("{} evaluates, and there is no evaluation set", schedule),
                     "Add `eval:` to section data, or choose the schedule train.");
}

std::string experiment_text(const Config& config) {
  if (!config.section("").has("experiment")) return "";
  const Params& section = config.section("experiment");
  const ExperimentOptions options = experiment_options(section);
  check_experiment(config, options.schedule);
  std::string what = options.schedule;
  if (options.schedule == "train_and_evaluate") {
    what += ": " + evaluations_text(config, options.min_eval_frequency);
  } else if (options.schedule == "continuous_train_and_eval") {
    const std::int64_t each = options.train_steps_per_iteration.value_or(
        config.train.steps ? std::max<std::int64_t>(*config.train.steps / 10, 1) : 1000);
    what += shown_format(": an evaluation after every {} steps of training", each);
  }
  std::string text = shown_format("experiment        {}\n", what);
  for (const ExportStrategy& strategy : options.exports) text += export_text(strategy, config);
  return text;
}

}  // namespace lockstep
