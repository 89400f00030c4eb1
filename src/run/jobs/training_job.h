// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One job of training in a run directory: it begins the run, or continues it from its newest checkpoint, and
// ends with the run, or when it is asked to stop. `lockstep train` and Estimator::train() are
// run_training_job(); a TrainingSession (api/training_session.h) is an OpenTrainingJob.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/environment.h"
#include "core/function_ref.h"
#include "run/jobs/outcomes.h"
#include "run/sections/config.h"
#include "run/setup/run_arguments.h"
#include "run/setup/training.h"

namespace lockstep {

struct TrainingJob {
  std::string run_dir;
  Resume resume = Resume::automatic;
  bool accept_changes = false;
  bool accept_new_samples = false;        ///< continues although the samples are others than before
  std::vector<std::int64_t> record = {};  ///< steps
  std::optional<JobEnd> job_end = {};
  bool quiet = false;
  /// The steps after which the run ends, from the checkpoint that the job finds on, whatever section `train`
  /// says.
  std::optional<std::int64_t> more_steps = {};
  /// The job ends at this step at the latest; the run does not.
  std::optional<std::int64_t> stop_at = {};
  /// The job ends after this number of epochs at the latest; the run does not.
  std::optional<std::int64_t> stop_at_epoch = {};
  /// True, with stop_at or stop_at_epoch: the job ends as if it were interrupted there, without an evaluation
  /// of the end, so that the run is the same as without the stop. The exit code is 0.
  bool pauses = false;
  TrainingAdditions additions = {};
};

/// All ranks. Throws SharedError; other errors end the run (run_on_ranks()).
TrainingOutcome run_training_job(CommEnvironment& environment, Config config, const TrainingJob& job);

/// The same job with its loop open: the caller makes the steps.
///
///   OpenTrainingJob open(environment, config, job);
///   if (open.session() != nullptr) open.run([](MonitoredSession& session) { ...until
///   session.should_stop()... }); TrainingOutcome outcome = open.finish();
class OpenTrainingJob {
 public:
  /// From the lock of the run directory to a session that has its values. All ranks. `environment` outlives
  /// it. Throws as run_training_job().
  OpenTrainingJob(CommEnvironment& environment, Config config, const TrainingJob& job);
  /// A job that is destroyed before finish() is recorded as failed. No communication.
  ~OpenTrainingJob();
  OpenTrainingJob(const OpenTrainingJob&) = delete;
  OpenTrainingJob& operator=(const OpenTrainingJob&) = delete;

  /// Null: there is nothing to train, and finish() says why; or an error has ended it.
  MonitoredSession* session();
  /// finish() was called, or an error has ended it: run() throws Error(usage).
  bool has_ended() const;
  /// Null likewise.
  RunContext* context();
  /// Runs a part of the loop; an error is recorded in the status and the log of the run, and rethrown.
  void run(FunctionRef<void(MonitoredSession&)> part);
  /// The end of all hooks, the last checkpoint, the record of the job. All ranks, once, when the session has
  /// stopped. Throws Error(usage) if it has not.
  TrainingOutcome finish();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep
