// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The hooks of `lockstep train`, in their order:
//
//   signals, nan_guard, drift_check, straggler, summary_saver, step_counter, evaluation, the configuration's
//   own, stop at the run's end, checkpoint_saver, progress, step_clock
//
// Evaluation comes before the configuration's hooks, so that early stopping sees its results in the same
// step; the saver behind them, so that a checkpoint holds their state of the same step.
#pragma once

#include "driver/config.h"
#include "driver/evaluation.h"
#include "driver/monitored_session.h"
#include "driver/saver.h"
#include "io/step_plan.h"

namespace lockstep {

/// Adds them. `evaluation` may be null. All ranks. Throws Error(config).
void add_train_hooks(MonitoredSession& session, const Config& config, const StepPlan& plan,
                     Evaluation* evaluation, Saver& saver, ThreadPool& pool, bool quiet);

}  // namespace lockstep
