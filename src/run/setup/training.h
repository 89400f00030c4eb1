// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of a training run, from the step plan to the session with its hooks. They are made from a
// RunContext on all ranks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/run_lock.h"
#include "run/setup/run_context.h"
#include "run/setup/train_setup.h"
#include "session/distributed_state.h"
#include "session/hooks/checkpoint_saver_hook.h"
#include "session/hooks/time_limit_hook.h"
#include "session/monitored_session.h"
#include "session/run_status.h"
#include "session/saver.h"
#include "session/session_manager.h"
#include "train/evaluation.h"

namespace lockstep {

/// What a program adds to the run of its configuration.
struct TrainingAdditions {
  /// Make hooks that come after those of the configuration. The same on all ranks.
  std::vector<std::function<std::unique_ptr<Hook>()>> hooks = {};
  /// Make listeners of the checkpoint saver.
  std::vector<std::function<std::unique_ptr<CheckpointSaverListener>()>> listeners = {};
  bool evaluates = true;                             ///< false: no evaluations during training
  std::function<void(VariableStore&)> init_fn = {};  ///< SessionManagerOptions::init_fn
  DeviceFunction device_fn = {};                     ///< TrainerSetup
};

/// How a job starts the run.
struct TrainingStart {
  std::string run_dir;
  FoundCheckpoint found;             ///< where the run continues
  std::vector<std::int64_t> record;  ///< steps to record (--record)
  std::optional<JobEnd> job_end;
  RunStatus* status = nullptr;    ///< null on ranks other than the chief
  const RunLock* lock = nullptr;  ///< likewise
  bool quiet = false;             ///< no progress
  TrainingAdditions additions = {};
};

/// Each part uses those before it.
struct Training : TrainerSetup {
  Training(RunContext& context, RunPlan planned, const TrainingStart& start);

  Saver saver;
  RunReports reports;
  std::unique_ptr<DistributedState> distributed = {};  ///< null: each rank has all of the state
  std::unique_ptr<Evaluation> evaluation = {};         ///< null: there is no evaluation set
  std::unique_ptr<SessionManager> manager = {};
  std::unique_ptr<MonitoredSession> session = {};
  AbandonOnError abandon_on_error = {};  ///< before buffers of hooks and evaluations are freed
};

/// The session has all hooks and is not started. `context` and `start.status` outlive the result. All ranks.
/// Throws Error(config).
std::unique_ptr<Training> make_training(RunContext& context, const TrainingStart& start);

}  // namespace lockstep
