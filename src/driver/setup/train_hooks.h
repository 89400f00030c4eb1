// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The hooks of `lockstep train`, in their order:
//
//   time_limit, signals, switch_files, nan_guard, drift_check, straggler, summary_saver, step_counter,
//   evaluation, the configuration's own, stop at the run's end, checkpoint_saver, progress, step_clock
//
// Evaluation comes before the configuration's hooks, so that early stopping sees its results in the same
// step. The saver comes after them, so that a checkpoint holds their state of the same step.
#pragma once

#include "data/step_plan.h"
#include "driver/config/config.h"
#include "session/hooks/time_limit_hook.h"
#include "session/monitored_session.h"
#include "session/run_status.h"
#include "session/saver.h"
#include "train/evaluation.h"

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

/// Adds the hooks. The references in `parts` outlive the session. All ranks. Throws Error(config).
void add_train_hooks(MonitoredSession& session, const Config& config, const TrainHookParts& parts);

}  // namespace lockstep
