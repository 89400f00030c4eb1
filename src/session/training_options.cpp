// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/training_options.h"

#include <fmt/format.h>

#include "config/named_options.h"
#include "config/option.h"
#include "core/duration.h"
#include "model/recompute.h"

namespace lockstep {

namespace {

/// The section as it is written.
struct Section {
  TrainingOptions options;
  std::optional<std::int64_t> shuffle_window;
  bool drop_remainder = false;
  std::optional<std::string> time_limit;
};
using Options = TrainingOptions;

/// true|false|blocks
Shuffle shuffle_of(const Params& section, const ParamSpec& option) {
  constexpr Shuffle kChoices[] = {Shuffle::samples, Shuffle::none, Shuffle::blocks};
  return kChoices[choice_index(section, option)];
}

constexpr ParamSpec kTable[] = {
    option<&Section::options, &Options::batch_size>(
        "batch_size", kRequired, between(1, 2147483647, "samples"),
        "Samples per global step, over all ranks and all rounds of accumulate together."),
    option<&Section::options, &Options::accumulate>(
        "accumulate", "1", between(1, 65536),
        "Rounds in which a global batch is computed, with one sum over ranks and one update. The batch is "
        "cut into accumulate x shards microshards, so a round needs the memory of batch_size / accumulate "
        "samples. The bits are those of accumulate x shards shards without rounds."),
    option<&Section::options, &Options::recompute>(
        "recompute", "marked", one_of("marked|auto|none"),
        "Which activations are not kept from the forward to the backward pass, but computed once more "
        "(activation checkpointing). marked: those of layers and blocks with the option recompute. auto: "
        "those of the segments with which a microshard needs the least memory, whatever is marked. none: no "
        "activations. Changes no bit of the result.",
        Change::free),
    option<&Section::options, &Options::epochs>(
        "epochs", "null", between(1, 1e9).or_null(),
        "Number of passes over the training set. Give either epochs or steps.", Change::free),
    option<&Section::options, &Options::steps>("steps", "null", between(1, 1e12).or_null(),
                                               "Number of global steps. Give either epochs or steps.",
                                               Change::free),
    option_as<shuffle_of, &Section::options, &Options::shuffle>(
        ParamType::string, "shuffle", "true", one_of("true|false|blocks"),
        "Permute the samples anew in each epoch. The order depends on the seed only. blocks: permute blocks "
        "of samples, and the samples within windows of blocks, so that a set which is not held in memory is "
        "read in whole blocks, each by one rank. This order depends also on the batch size, accumulate and "
        "shards."),
    option<&Section::shuffle_window>(
        "shuffle_window", "null", between(1, 1e9, "blocks").or_null(),
        "With shuffle: blocks, so many blocks of each microshard are mixed; null: 16."),
    option<&Section::options, &Options::last_batch>(
        "last_batch", "smaller", one_of("smaller|drop|fill"),
        "The last batch of an epoch, if too few samples are left for it. smaller: it has these. drop: it is "
        "left out. fill: it is completed with the first samples of the epoch's order."),
    option<&Section::drop_remainder>("drop_remainder", "false", {}, "true: the same as last_batch: drop."),
    option<&Section::options, &Options::on_nan>(
        "on_nan", "error", one_of("error|stop|skip|rollback|warn"),
        "What to do when the loss, a gradient or a moving statistic is NaN or infinite, or a gradient is "
        "above 9.2e18. error: exit code 1; the last checkpoint "
        "before it is kept. stop: end normally. skip: omit the update of this step. rollback: go back to the "
        "last checkpoint, and on after the samples of this step. warn: log a warning and continue. With "
        "error and warn on a GPU, gradients are looked at only where they are clipped by norm."),
    option<&Section::options, &Options::max_setbacks>(
        "max_setbacks", "10", between(0, 1000000),
        "How many steps in a row may be skipped, and how often the run may go back to the same checkpoint. "
        "One more is an error with exit code 1.",
        Change::free),
    option<&Section::options, &Options::max_recoveries>(
        "max_recoveries", "3", between(0, 1000000),
        "How often one job may go back to the last checkpoint after a transient error.", Change::free),
    option<&Section::time_limit>(
        "time_limit", "null", in_words("duration or null"),
        "Time limit of one job, from the start of the program: 90s, 45m, 1.5h, 2d, 1:30:00 or 2-00:00:00. "
        "The run saves and stops before the limit, with exit code 75. Slurm's limit is used without this "
        "option where SLURM_JOB_END_TIME is set; the earlier of the two counts.",
        Change::free),
    option<&Section::options, &Options::time_margin_seconds>(
        "time_margin", "10", between(0, 1e9, "seconds"),
        "Seconds before the end of the job at which the run stops at the latest, in addition to the measured "
        "time of steps and checkpoints.",
        Change::free),
    option<&Section::options, &Options::max_jobs_without_progress>(
        "max_jobs_without_progress", "2", between(1, 1000000),
        "After this many consecutive jobs that completed no step the exit code is 1 instead of 75, so that "
        "the queue does not restart a run that makes no progress.",
        Change::free),
};

void settle_length(const Params& section, const Options& options, bool needs_end) {
  if (options.epochs.has_value() != options.steps.has_value()) return;
  if (!options.epochs && !needs_end) return;
  const std::string_view steps = option_name<&Section::options, &Options::steps>(section),
                         epochs = option_name<&Section::options, &Options::epochs>(section);
  throw section.error(
      options.epochs || section.given(epochs) ? option_to_blame(section, {steps, epochs}) : steps,
      options.epochs ? "both epochs and steps are given" : "neither epochs nor steps is given",
      "Give one of them: it says when training ends.");
}

void settle_shuffle_window(const Params& section, const Section& written, Options& options) {
  if (options.shuffle != Shuffle::blocks && written.shuffle_window)
    throw section.error(option_name<&Section::shuffle_window>(section),
                        fmt::format("shuffle is {}, which has no windows",
                                    options.shuffle == Shuffle::samples ? "true" : "false"),
                        "Write shuffle: blocks, or leave it out.");
  options.shuffle_window = written.shuffle_window.value_or(TrainingOptions{}.shuffle_window);
}

void settle_last_batch(const Params& section, const Section& written, Options& options) {
  if (!written.drop_remainder) return;
  const std::string_view last_batch = option_name<&Section::options, &Options::last_batch>(section);
  if (section.given(last_batch) && options.last_batch != LastBatch::drop)
    throw section.error(option_name<&Section::drop_remainder>(section),
                        fmt::format("is true, but last_batch is {}",
                                    options.last_batch == LastBatch::fill ? "fill" : "smaller"),
                        "Leave drop_remainder out.");
  options.last_batch = LastBatch::drop;
}

void settle_time_limit(const Params& section, const Section& written, Options& options) {
  if (!written.time_limit) return;
  options.time_limit_seconds = parse_duration(*written.time_limit);
  if (!options.time_limit_seconds || *options.time_limit_seconds <= 0)
    throw section.error(option_name<&Section::time_limit>(section),
                        fmt::format("'{}' is no duration", *written.time_limit),
                        fmt::format("Write it as one of {}.", kDurationForms));
}

}  // namespace

std::span<const ParamSpec> training_table() { return kTable; }

TrainingOptions training_options(const Params& section, bool needs_end) {
  const auto written = section.as<Section>();
  Options options = written.options;
  settle_length(section, options, needs_end);
  settle_shuffle_window(section, written, options);
  settle_last_batch(section, written, options);
  settle_time_limit(section, written, options);
  return options;
}

}  // namespace lockstep
