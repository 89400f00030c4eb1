// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The hooks of `lockstep train`, in their order:
//
//   time_limit, signals, switch_files, nan_guard, drift_check, straggler, summary_saver, step_counter,
//   evaluation, the configuration's own, stop at the run's end, checkpoint_saver, progress, step_clock
//
// Evaluation comes before the configuration's hooks, so that early stopping sees its results in the same
// step; the saver behind them, so that a checkpoint holds their state of the same step.
#pragma once

#include "driver/config.h"
#include "driver/evaluation.h"
#include "driver/hooks/time_limit_hook.h"
#include "driver/monitored_session.h"
#include "driver/run_status.h"
#include "driver/saver.h"
#include "io/step_plan.h"

namespace lockstep {

struct TrainHookParts {
  const StepPlan& plan;
  Evaluation* evaluation = nullptr;  ///< may be null
  Saver& saver;
  CheckpointCopyWays copy_ways;
  RunStatus* status = nullptr;  ///< null on ranks that are not the chief
  std::optional<JobEnd> job_end;
  bool quiet = false;
};

/// Adds them. What `parts` names outlives the session. All ranks. Throws Error(config).
void add_train_hooks(MonitoredSession& session, const Config& config, const TrainHookParts& parts);

/// global_step at the end of the run.
std::int64_t total_steps(const Config& config, const StepPlan& plan);

}  // namespace lockstep
