// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/training_options.h"

#include <fmt/format.h>

#include "config/named_options.h"
#include "core/duration.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kTable[] = {
    {"batch_size", integer, kRequired, "[1, 2147483647] samples",
     "Samples per global step, over all ranks and all rounds of accumulate together."},
    {"accumulate", integer, "1", "[1, 65536]",
     "Rounds in which a global batch is computed, with one sum over ranks and one update. The batch is cut "
     "into accumulate x shards microshards, so a round needs the memory of batch_size / accumulate samples. "
     "The bits are those of accumulate x shards shards without rounds."},
    {"epochs", integer, "null", "[1, 1e9] or null",
     "Number of passes over the training set. Give either epochs or steps.", Change::free},
    {"steps", integer, "null", "[1, 1e12] or null", "Number of global steps. Give either epochs or steps.",
     Change::free},
    {"shuffle", string, "true", "true|false|blocks",
     "Permute the samples anew in each epoch. The order depends on the seed only. blocks: permute blocks of "
     "samples, and the samples within windows of blocks, so that a set which is not held in memory is read "
     "in "
     "whole blocks, each by one rank. This order depends also on the batch size, accumulate and shards."},
    {"shuffle_window", integer, "null", "[1, 1e9] blocks or null",
     "With shuffle: blocks, so many blocks of each microshard are mixed; null: 16."},
    {"last_batch", string, "smaller", "smaller|drop|fill",
     "The last batch of an epoch, if too few samples are left for it. smaller: it has these. drop: it is "
     "left "
     "out. fill: it is completed with the first samples of the epoch's order."},
    {"drop_remainder", boolean, "false", "", "true: the same as last_batch: drop."},
    {"on_nan", string, "error", "error|stop|skip|rollback|warn",
     "What to do when the loss or a gradient is NaN or infinite. error: exit code 1; the last checkpoint "
     "before it is kept. stop: end normally. skip: omit the update of this step. rollback: go back to the "
     "last "
     "checkpoint, and on after the samples of this step. warn: log a warning and continue. With error and "
     "warn, "
     "gradients are looked at only where they are clipped by norm."},
    {"max_setbacks", integer, "10", "[0, 1000000]",
     "How many steps in a row may be skipped, and how often the run may go back to the same checkpoint. One "
     "more is an error with exit code 1.",
     Change::free},
    {"max_recoveries", integer, "3", "[0, 1000000]",
     "How often one job may go back to the last checkpoint after a transient error.", Change::free},
    {"time_limit", string, "null", "duration or null",
     "Time limit of one job, from the start of the program: 90s, 45m, 1.5h, 2d, 1:30:00 or 2-00:00:00. "
     "The run saves and stops before the limit, with exit code 75. Slurm's limit is used without this "
     "option where SLURM_JOB_END_TIME is set; the earlier of the two counts.",
     Change::free},
    {"time_margin", real, "10", "[0, 1e9] seconds",
     "Seconds before the end of the job at which the run stops at the latest, in addition to the "
     "measured time of steps and checkpoints.",
     Change::free},
    {"max_jobs_without_progress", integer, "2", "[1, 1000000]",
     "After this many consecutive jobs that completed no step the exit code is 1 instead of 75, so that "
     "the queue does not restart a run that makes no progress.",
     Change::free},
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

LastBatch last_batch(const Params& section) {
  const std::string& name = section.string("last_batch");
  const bool drops = section.boolean("drop_remainder");
  if (drops && section.given("last_batch") && name != "drop")
    throw section.error("drop_remainder", fmt::format("is true, but last_batch is {}", name),
                        "Leave drop_remainder out.");
  if (drops || name == "drop") return LastBatch::drop;
  return name == "fill" ? LastBatch::fill : LastBatch::smaller;
}

}  // namespace

std::span<const ParamSpec> training_table() { return kTable; }

TrainingOptions training_options(const Params& section, bool needs_end) {
  TrainingOptions options;
  options.batch_size = section.integer("batch_size");
  options.accumulate = section.integer("accumulate");
  options.epochs = section.optional_integer("epochs");
  options.steps = section.optional_integer("steps");
  const bool has_end = options.epochs || options.steps;
  if (has_end ? options.epochs && options.steps : needs_end)
    throw section.error(
        options.epochs || section.given("epochs") ? option_to_blame(section, {"steps", "epochs"}) : "steps",
        options.epochs ? "both epochs and steps are given" : "neither epochs nor steps is given",
        "Give one of them: it says when training ends.");
  const std::string& shuffle = section.string("shuffle");
  options.shuffle = shuffle == "true"    ? Shuffle::samples
                    : shuffle == "false" ? Shuffle::none
                                         : Shuffle::blocks;
  if (options.shuffle != Shuffle::blocks && section.has("shuffle_window"))
    throw section.error("shuffle_window", fmt::format("shuffle is {}, which has no windows", shuffle),
                        "Write shuffle: blocks, or leave it out.");
  options.shuffle_window =
      section.optional_integer("shuffle_window").value_or(TrainingOptions{}.shuffle_window);
  options.last_batch = last_batch(section);
  options.on_nan = guard_action(section.string("on_nan"));
  options.max_setbacks = static_cast<int>(section.integer("max_setbacks"));
  options.max_recoveries = static_cast<int>(section.integer("max_recoveries"));
  options.time_limit_seconds = time_limit(section);
  options.time_margin_seconds = section.real("time_margin");
  options.max_jobs_without_progress = static_cast<int>(section.integer("max_jobs_without_progress"));
  return options;
}

}  // namespace lockstep
