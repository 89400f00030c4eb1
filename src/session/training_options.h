// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `train` of a configuration: the length of the run, its batches, and the limits of a job.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "config/params.h"
#include "core/run_clock.h"
#include "data/step_plan.h"
#include "session/guard_action.h"

namespace lockstep {

enum class Recompute;

struct TrainingOptions {
  std::int64_t batch_size = 1;  ///< samples per global step, over all ranks
  std::int64_t accumulate = 1;  ///< rounds in which a global batch is computed
  /// The length of the run. Training has exactly one of them.
  std::optional<std::int64_t> epochs = {}, steps = {};
  Shuffle shuffle = Shuffle::samples;
  std::int64_t shuffle_window = 16;  ///< blocks
  LastBatch last_batch = LastBatch::smaller;
  Recompute recompute{};  ///< marked
  GuardAction on_nan = GuardAction::error;
  int max_setbacks = 10;
  int max_recoveries = 3;
  std::optional<double> time_limit_seconds = {};  ///< of one job
  double time_margin_seconds = 10;
  int max_jobs_without_progress = 2;

  /// global_step at the end of the run.
  std::int64_t total_steps(const RunClock& clock) const {
    return steps ? *steps : clock.step_of_epoch(*epochs);
  }
};

/// Options of the section `train`.
std::span<const ParamSpec> training_table();
/// `section` is checked against training_table(). Throws Error(config) with position.
/// `needs_end` false: epochs and steps may both be left out, where nothing is trained.
TrainingOptions training_options(const Params& section, bool needs_end = true);

}  // namespace lockstep
