// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/checkpoint_options.h"

#include "config/option.h"

namespace lockstep {

namespace {

using Options = CheckpointOptions;
using Triggers = CheckpointTriggers;

/// None for 0, too: both mean never.
std::optional<std::int64_t> positive(const Params& section, const ParamSpec& option) {
  const std::optional<std::int64_t> value = section.optional_integer(option.name);
  return value.value_or(0) > 0 ? value : std::nullopt;
}

std::optional<double> seconds_of_hours(const Params& section, const ParamSpec& option) {
  constexpr double kSecondsPerHour = 3600;
  const std::optional<double> hours = section.optional_real(option.name);
  return hours ? std::optional(*hours * kSecondsPerHour) : std::nullopt;
}

double real_or_zero(const Params& section, const ParamSpec& option) {
  return section.optional_real(option.name).value_or(0);
}

Direction direction(const Params& section, const ParamSpec& option) {
  return section.has(option.name) ? direction_from(section.string(option.name)) : Direction::none;
}

constexpr ParamSpec kTable[] = {
    option_as<positive, &Options::triggers, &Triggers::every_steps>(
        ParamType::integer, "every_steps", "null", between(1, 1e12).or_null(),
        "Also write a checkpoint after every this many steps.", Change::free),
    option_as<positive, &Options::triggers, &Triggers::every_epochs>(
        ParamType::integer, "every_epochs", "1", between(0, 1e9).or_null(),
        "Write a checkpoint after every this many epochs. 0 or null: not by epochs. One is always written at "
        "the end.",
        Change::free),
    option<&Options::triggers, &Triggers::every_seconds>(
        "every_seconds", "null", above(0).up_to(1e9, "seconds").or_null(),
        "Also write a checkpoint when this much time has passed since the last one.", Change::free),
    option_as<seconds_of_hours, &Options::triggers, &Triggers::mtbf_seconds>(
        ParamType::real, "mtbf_hours", "null", above(0).up_to(1e6, "hours").or_null(),
        "Mean time between failures of the machines of the run. Also write checkpoints at the interval that "
        "loses the least time (Young's and Daly's rule, from the measured time that one checkpoint delays "
        "training).",
        Change::free),
    option<&Options::triggers, &Triggers::at_start>(
        "at_start", "false", {}, "Also write a checkpoint before the first step.", Change::free),
    option<&Options::saver, &SaverOptions::retention, &RetentionRules::keep>(
        "keep", "5", between(0, 1e9), "Number of newest checkpoints to keep. 0: all.", Change::free),
    option_as<real_or_zero, &Options::saver, &SaverOptions::retention, &RetentionRules::keep_every_hours>(
        ParamType::real, "keep_every_hours", "null", above(0).up_to(1e6, "hours").or_null(),
        "Of the checkpoints that would be deleted, keep one per this many hours permanently.", Change::free),
    option<&Options::saver, &SaverOptions::retention, &RetentionRules::keep_best>(
        "keep_best", "0", between(0, 1e9),
        "Number of best checkpoints to keep in addition to the newest ones. An evaluation that is better "
        "than all earlier ones is followed by a checkpoint.",
        Change::free),
    option<&Options::best_metric>("best_metric", "loss", {},
                                  "Metric of the evaluation that keep_best compares: loss, accuracy, or a "
                                  "metric of eval.metrics; eval/loss means the same."),
    option_as<direction, &Options::best_mode>(
        ParamType::string, "best_mode", "null", one_of("min|max").or_null(),
        "Whether a smaller (min) or a larger (max) best_metric is better. null: as the metric says, min for "
        "losses and errors, max for accuracies. Only a metric that does not say, such as mean, needs it.",
        Change::free),
    option<&Options::saver, &SaverOptions::background>(
        "background", "true", {},
        "Write in a background thread: training waits only for a copy in memory. false: training waits for "
        "the disk.",
        Change::free),
    option<&Options::saver, &SaverOptions::timeout_seconds>(
        "timeout_seconds", "3600", above(0).up_to(1e9, "seconds"),
        "Time limit of the wait for a checkpoint at the end of the run; exceeding it is an error.",
        Change::free),
};

}  // namespace

std::span<const ParamSpec> checkpoint_table() { return kTable; }

CheckpointOptions checkpoint_options(const Params& section) {
  auto options = section.as<Options>();
  options.follow_metrics({});
  return options;
}

void CheckpointOptions::follow_metrics(std::span<const MetricSpec> metrics) {
  const Direction direction = best_mode != Direction::none ? best_mode : direction_of(best_metric, metrics);
  saver.retention.larger_is_better = direction == Direction::max;
}

}  // namespace lockstep
