// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The hooks of `lockstep train`, in their order:
//
//   record, run_directory, time_limit, signals, switch_files, nan_guard, loss_scale or gradient_guard,
//   drift_check, straggler, summary_saver, parts of section summary (those that show
//   evaluations come after it), step_counter, evaluation, those of the configuration and of a program,
//   stop_at_step or stop_after_epochs, checkpoint_saver, status, progress, step_clock
//
// Evaluation comes before the hooks of the configuration, so that early stopping sees its results in the same
// step. The checkpoint saver comes after them, so that a checkpoint holds their state of the same step.
// record and step_clock are added in training.cpp.
#pragma once

#include "core/run_clock.h"
#include "io/run_lock.h"
#include "run/sections/config.h"
#include "run/setup/training.h"
#include "session/hooks/run_description_hook.h"
#include "session/hooks/time_limit_hook.h"
#include "session/monitored_session.h"
#include "session/run_names.h"
#include "session/run_status.h"
#include "session/saver.h"
#include "train/evaluation.h"
#include "train/run_schedules.h"

namespace lockstep {

struct TrainHookParts {
  const RunClock& clock;
  Evaluation* evaluation = nullptr;  ///< may be null
  const RunSchedules& schedules;
  Saver& saver;
  std::string computed_on = {};                ///< CheckpointHeader::computed_on
  std::shared_ptr<const KeptFiles> kept = {};  ///< CheckpointHeader::kept, on the chief
  CheckpointCopyWays copy_ways;
  RunStatus* status = nullptr;    ///< null on ranks other than the chief
  const RunLock* lock = nullptr;  ///< likewise
  std::optional<JobEnd> job_end;
  bool quiet = false;
  const TrainingAdditions* additions = nullptr;  ///< of a program; null: none
  const RunNames& names;                         ///< for Hook::check() of their hooks
  RunDescriptionHook::Options description = {};
  std::vector<std::string> embeddings = {};  ///< names of variables, for summary.projector
};

/// How often ranks synchronise while they wait for the last checkpoint: well below the time limit of a
/// communication call.
double sync_seconds(const Config& config);

/// Adds all but the first and the last. What `parts` names outlives the session. All ranks. Throws
/// Error(config).
void add_train_hooks(MonitoredSession& session, const Config& config, const TrainHookParts& parts);

}  // namespace lockstep
