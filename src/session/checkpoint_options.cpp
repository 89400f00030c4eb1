// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/checkpoint_options.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr double kSecondsPerHour = 3600;

constexpr ParamSpec kTable[] = {
    {"every_steps", integer, "null", ">= 1 or null", "Write a checkpoint after so many steps, too."},
    {"every_epochs", integer, "1", ">= 0 or null",
     "Write a checkpoint after so many epochs. 0 or null: never for this reason. One is always written at "
     "the end."},
    {"every_seconds", real, "null", "> 0 seconds or null", "Write a checkpoint after so much time, too."},
    {"mtbf_hours", real, "null", "> 0 hours or null",
     "Mean time between failures of the machines that the run is on. Writes checkpoints as often as that "
     "makes "
     "worth while (Young's and Daly's rule, from the measured time that training stands still for one), "
     "beside "
     "those of the other options."},
    {"at_start", boolean, "false", "", "Write a checkpoint before the first step, too."},
    {"keep", integer, "5", ">= 0", "How many of the newest checkpoints to keep. 0: all."},
    {"keep_every_hours", real, "null", "> 0 hours or null",
     "Of the checkpoints that would go, keep one in so many hours for good."},
    {"keep_best", integer, "0", ">= 0",
     "How many of the best checkpoints to keep beside the newest. An evaluation that is better than all "
     "before it "
     "is followed by a checkpoint."},
    {"best_metric", string, "loss", "",
     "Of the evaluation: what keep_best compares: loss, accuracy, or a metric of eval.metrics."},
    {"best_mode", string, "min", "min|max",
     "Whether a smaller (min) or a larger (max) best_metric is better."},
    {"background", boolean, "true", "",
     "Write in a thread of its own, so that training waits for a copy in memory only. false: training waits "
     "for "
     "the disk."},
    {"timeout_seconds", real, "3600", "> 0 seconds",
     "The end of the run waits no longer for a checkpoint; then it is an error."},
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
