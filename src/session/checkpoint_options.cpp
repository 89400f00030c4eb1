// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/checkpoint_options.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr double kSecondsPerHour = 3600;

constexpr ParamSpec kTable[] = {
    {"every_steps", integer, "null", "[1, 1e12] or null",
     "Also write a checkpoint after every this many steps.", Change::free},
    {"every_epochs", integer, "1", "[0, 1e9] or null",
     "Write a checkpoint after every this many epochs. 0 or null: not by epochs. One is always written "
     "at the end.",
     Change::free},
    {"every_seconds", real, "null", "(0, 1e9] seconds or null",
     "Also write a checkpoint when this much time has passed since the last one.", Change::free},
    {"mtbf_hours", real, "null", "(0, 1e6] hours or null",
     "Mean time between failures of the machines of the run. Also write checkpoints at the interval that "
     "loses the least time (Young's and Daly's rule, from the measured time that one checkpoint delays "
     "training).",
     Change::free},
    {"at_start", boolean, "false", "", "Also write a checkpoint before the first step.", Change::free},
    {"keep", integer, "5", "[0, 1e9]", "Number of newest checkpoints to keep. 0: all.", Change::free},
    {"keep_every_hours", real, "null", "(0, 1e6] hours or null",
     "Of the checkpoints that would be deleted, keep one per this many hours permanently.", Change::free},
    {"keep_best", integer, "0", "[0, 1e9]",
     "Number of best checkpoints to keep in addition to the newest ones. An evaluation that is better "
     "than all earlier ones is followed by a checkpoint.",
     Change::free},
    {"best_metric", string, "loss", "",
     "Metric of the evaluation that keep_best compares: loss, accuracy, or a metric of eval.metrics; "
     "eval/loss means the same."},
    {"best_mode", string, "min", "min|max",
     "Whether a smaller (min) or a larger (max) best_metric is better."},
    {"background", boolean, "true", "",
     "Write in a background thread: training waits only for a copy in memory. false: training waits for "
     "the disk.",
     Change::free},
    {"timeout_seconds", real, "3600", "(0, 1e9] seconds",
     "Time limit of the wait for a checkpoint at the end of the run; exceeding it is an error.",
     Change::free},
};

/// None for 0, too: both mean never.
std::optional<std::int64_t> positive(const Params& section, std::string_view name) {
  const std::optional<std::int64_t> value = section.optional_integer(name);
  return value.value_or(0) > 0 ? value : std::nullopt;
}

CheckpointTriggers triggers_of(const Params& section) {
  CheckpointTriggers triggers;
  triggers.every_steps = positive(section, "every_steps");
  triggers.every_epochs = positive(section, "every_epochs");
  triggers.every_seconds = section.optional_real("every_seconds");
  if (const auto hours = section.optional_real("mtbf_hours"))
    triggers.mtbf_seconds = *hours * kSecondsPerHour;
  triggers.at_start = section.boolean("at_start");
  return triggers;
}

SaverOptions saver_of(const Params& section) {
  SaverOptions options;
  options.retention.keep = static_cast<int>(section.integer("keep"));
  options.retention.keep_every_hours = section.optional_real("keep_every_hours").value_or(0);
  options.retention.keep_best = static_cast<int>(section.integer("keep_best"));
  options.retention.larger_is_better = section.string("best_mode") == "max";
  options.background = section.boolean("background");
  options.timeout_seconds = section.real("timeout_seconds");
  return options;
}

}  // namespace

std::span<const ParamSpec> checkpoint_table() { return kTable; }

CheckpointOptions checkpoint_options(const Params& section) {
  return {triggers_of(section), saver_of(section), section.string("best_metric")};
}

}  // namespace lockstep
