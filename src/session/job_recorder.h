// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One job of a run that may take many jobs: whether the jobs before it have finished the run, the status of
// this one, and the exit code that tells the queue whether another job is to follow.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "session/interruption.h"
#include "session/run_state.h"
#include "session/run_status.h"
#include "session/training_options.h"

namespace lockstep {

/// What a job is started with.
struct JobSpec {
  std::string run_dir;
  std::string config_hash;  ///< of the configuration as run (hash_of_config())
  int max_jobs_without_progress = 2;
};
/// `text`: the configuration as run.
std::string hash_of_config(const std::string& text);

/// All ranks: why nothing is left to do. By the checkpoint, or because the last job stopped for good (early
/// stopping) and nothing that decides about the end has changed since (`end_changed`). Empty: there is
/// something to do.
std::string why_finished(Communicator& world, const TrainingOptions& options, const JobSpec& job,
                         const FoundCheckpoint& found, bool end_changed);

class JobRecorder {
 public:
  /// All ranks, while the chief holds the run directory's lock.
  JobRecorder(Communicator& world, const JobSpec& job, const FoundCheckpoint& found);
  /// The last words of this process are then no longer the run's, unless an error of this rank is on its way
  /// to the function that ends all ranks.
  ~JobRecorder();
  JobRecorder(const JobRecorder&) = delete;
  JobRecorder& operator=(const JobRecorder&) = delete;

  /// The status of the run; null on ranks that are not the chief.
  RunStatus* status() { return status_.get(); }
  /// Counts from 1; 0 on ranks that are not the chief.
  int number() const { return status_ ? static_cast<int>(status_->before().size()) + 1 : 0; }

  /// The exit code if a stop was requested before there is anything to save. All ranks.
  std::optional<int> interrupted_at_start();
  /// The exit code, when the state of `step` is durable. It is 1 instead of 75, with an error in the log, if
  /// this job and those before it gained no step. `final_reason`: MonitoredSession::final_reason(). All
  /// ranks.
  int end(const InterruptionRequest& interruption, std::int64_t step, const std::string& final_reason);
  /// Why the job ended: that of its interruption, or `final_reason`; after end() the same on all ranks.
  const std::string& reason() const { return reason_; }
  /// Records an error of this rank. No communication.
  void failed(int code, const std::string& reason);

 private:
  int code_of_requeue(std::int64_t step) const;

  Communicator& world_;
  const int max_jobs_without_progress_;
  const std::int64_t begin_step_;
  std::unique_ptr<RunStatus> status_;
  std::string reason_;
};

}  // namespace lockstep
