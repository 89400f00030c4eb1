// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Evaluates each new checkpoint of a run that another job trains, until that run has ended. `lockstep watch`
// and Experiment::continuous_eval() are this function.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm/environment.h"
#include "run/jobs/outcomes.h"
#include "run/sections/config.h"

namespace lockstep {

struct CheckpointWatch {
  std::string run_dir;
  /// The name of EvaluationFiles; empty: no files.
  std::string name = "continuous";
  bool averages = true;
  double delay_seconds = 0;         ///< before the first look
  double throttle_seconds = 60;     ///< from the begin of an evaluation to that of the next, at least
  double most_wait_seconds = 7200;  ///< without a new checkpoint: an error
  /// No further evaluation after a checkpoint of this step; none: the run's state says when it has ended.
  std::optional<std::int64_t> last_step = {};
  /// The configuration, when there is a checkpoint. All ranks call it. The same, or the same error, on all.
  std::function<Config()> config;
  /// A function that is called after each evaluation. False ends the watch. The same on all ranks.
  std::function<bool(const EvaluationOutcome&)> evaluated = {};
};

/// Returns when the run has ended and its last checkpoint is evaluated, or as the members of `watch` say. All
/// ranks. Throws SharedError.
WatchOutcome watch_checkpoints(CommEnvironment& environment, const CheckpointWatch& watch);

}  // namespace lockstep
