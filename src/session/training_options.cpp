// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/training_options.h"

#include <fmt/format.h>

#include "core/duration.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kTable[] = {
    {"batch_size", integer, kRequired, "> 0 samples", "Samples per global step, over all ranks together."},
    {"epochs", integer, "null", ">= 1 or null",
     "How many passes over the training set. Give either epochs or steps."},
    {"steps", integer, "null", ">= 1 or null", "How many global steps. Give either epochs or steps."},
    {"shuffle", boolean, "true", "",
     "A new order of the samples in each epoch; the order depends on the seed only."},
    {"drop_remainder", boolean, "false", "",
     "Leave out an epoch's last batch if it is smaller than the others."},
    {"on_nan", string, "error", "error|stop|skip|warn",
     "What to do when the loss, or the norm of gradients that are clipped by it, is NaN or infinite. error: "
     "end with exit code 1; the last checkpoint before "
     "it is kept. "
     "stop: end in order. skip: leave out this step's update. warn: say it and go on."},
    {"max_recoveries", integer, "3", ">= 0",
     "How often a session goes back to the last checkpoint after an error that may go away."},
    {"time_limit", string, "null", "duration or null",
     "How long one job may take, from the start of the program: 90s, 45m, 1.5h, 2d, 1:30:00 or 2-00:00:00. "
     "The run stops "
     "and saves in time, and ends with exit code 75. Slurm's limit is known without it where "
     "SLURM_JOB_END_TIME is set; "
     "the earlier one counts."},
    {"time_margin", real, "10", ">= 0 seconds",
     "How much earlier than the end of the job the run stops, beside the time that steps and checkpoints "
     "were seen to "
     "take."},
    {"max_jobs_without_progress", integer, "2", ">= 1",
     "After so many jobs in a row that gained no step, exit code 1 in place of 75: a run that does not get "
     "ahead is not "
     "queued again for ever."},
};

std::optional<double> time_limit(const Params& section) {
  if (!section.has("time_limit")) return std::nullopt;
  const std::string& text = section.string("time_limit");
  const std::optional<double> seconds = parse_duration(text);
  if (!seconds || *seconds <= 0)
    throw section.error("time_limit", fmt::format("'{}' is no duration", text),
                        fmt::format("Write it as one of {}.", kDurationForms));
  return seconds;
}

}  // namespace

std::span<const ParamSpec> training_table() { return kTable; }

TrainingOptions training_options(const Params& section) {
  TrainingOptions options;
  options.batch_size = section.integer("batch_size");
  options.epochs = section.optional_integer("epochs");
  options.steps = section.optional_integer("steps");
  if (options.epochs.has_value() == options.steps.has_value())
    throw section.error(
        options.epochs ? "epochs" : "steps",
        options.epochs ? "both epochs and steps are given" : "neither epochs nor steps is given",
        "Give one of them: it says when training ends.");
  options.shuffle = section.boolean("shuffle");
  options.drop_remainder = section.boolean("drop_remainder");
  options.on_nan = guard_action(section.string("on_nan"));
  options.max_recoveries = static_cast<int>(section.integer("max_recoveries"));
  options.time_limit_seconds = time_limit(section);
  options.time_margin_seconds = section.real("time_margin");
  options.max_jobs_without_progress = static_cast<int>(section.integer("max_jobs_without_progress"));
  return options;
}

}  // namespace lockstep
