// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One job of training in a run directory: it begins the run, or continues it from its newest checkpoint, and
// ends with the run, or when it is asked to stop. `lockstep train` and Estimator::train() are this function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/environment.h"
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

}  // namespace lockstep
