// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For a program with sessions of its own (Supervisor, SessionManager, MonitoredSession): a configuration, its
// run directory and a trainer, from the directory's lock to config.yaml. Without the hooks and evaluations
// that `lockstep train` has; Estimator is the class with all of them.
#pragma once

#include <memory>
#include <string>

#include "api/supervisor.h"
#include "core/run_signals.h"
#include "io/run_lock.h"
#include "run/setup/run_context.h"
#include "run/setup/train_setup.h"
#include "session/distributed_state.h"
#include "session/job_recorder.h"
#include "session/session_parts.h"

namespace lockstep {

class SessionSetup {
 public:
  /// All ranks. Locks the run directory, which another run may not use meanwhile, reads the data, makes the
  /// trainer, and writes config.yaml, so that `lockstep evaluate` and others can read the run. While it
  /// lives, signals are requests (core/run_signals.h). Throws SharedError.
  SessionSetup(CommEnvironment& environment, Config config, std::string run_dir);
  SessionSetup(const SessionSetup&) = delete;
  SessionSetup& operator=(const SessionSetup&) = delete;

  RunContext& context() { return *context_; }
  Trainer& trainer() { return *setup_->trainer; }
  const std::string& run_dir() const { return run_dir_; }
  bool is_chief() { return context_->is_chief(); }

  /// The values for a SessionManager.
  SessionValues values();
  /// Options for a SessionManager or a Supervisor: the run directory, and the configuration's warm start.
  SessionManagerOptions session();
  /// The run for a Supervisor, which records the job for `lockstep status`. All ranks, once.
  SupervisedRun supervised();
  /// The parts for a MonitoredSession.
  SessionParts parts(RunReports& reports);
  /// The ways from GPU to host for a checkpoint saver.
  CheckpointCopyWays copy_ways();

 private:
  RunSignals signals_;
  std::string run_dir_;
  std::unique_ptr<RunLock> lock_;  // null on ranks other than the chief
  FoundCheckpoint found_;
  std::unique_ptr<JobRecorder> recorder_;  // of a supervised run
  std::unique_ptr<RunContext> context_;
  std::unique_ptr<TrainerSetup> setup_;
  std::unique_ptr<DistributedState> distributed_;  // null: each rank has all of the state
};

}  // namespace lockstep
