// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the jobs of a run (training_job.h, evaluation_job.h, checkpoint_watch.h) give.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/metric_table.h"
#include "session/interruption.h"

namespace lockstep {

class CheckpointFile;

struct TrainingOutcome {
  std::int64_t global_step = 0;
  /// 0: the run is finished; 75: it is to be continued; 1: it makes no progress.
  int exit_code = 0;
  bool finished = false;  ///< the run is at its end: further jobs train nothing
  /// Why it ended, or why there was nothing to do, in words; the same on all ranks, and never empty. Where a
  /// hook ended it, with the hook's name.
  std::string reason = {};
  double loss = 0;  ///< of the last step; NaN if there was none
  /// What the last evaluations of the job found: "eval/loss", ...
  std::map<std::string, double> evaluation = {};
};

struct EvaluationOutcome {
  std::string checkpoint;
  /// The same file, open on the chief, if the evaluation found it itself; else null.
  std::shared_ptr<const CheckpointFile> file = nullptr;
  std::vector<std::string> members = {};  ///< checkpoints of an ensemble; empty: there is one model
  std::int64_t augmentations = 1;         ///< views of each sample, whose predictions are averaged
  std::int64_t global_step = 0;
  bool averaged_variables = false;
  std::int64_t samples = 0;
  double loss = 0;
  /// Accuracy, parts of the loss, metrics: a number or a table each, in the order of reports.
  struct Entry {
    std::string name;
    double value = 0;
    std::optional<MetricTable> table = {};
  };
  std::vector<Entry> entries;

  /// "loss", or the number of this name. Throws Error(usage) if there is none.
  double value(std::string_view name) const;
};

struct WatchOutcome {
  std::int64_t evaluations = 0;
  InterruptionRequest interruption = {};  ///< the signal that ended the watch, if one did
};

}  // namespace lockstep
