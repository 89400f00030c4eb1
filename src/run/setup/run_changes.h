// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a job may continue its run with the configuration and the data that it was given: compared with
// those that the run's checkpoint was computed with. The chief reads and decides; all ranks get the result,
// or throw the same error.
#pragma once

#include <string>

#include "run/sections/config.h"
#include "run/setup/run_context.h"
#include "session/job_recorder.h"

namespace lockstep {

/// What a job changes in the run that it continues.
struct RunChanges {
  bool result = false;        ///< values that change the result; they were accepted
  std::string accepted = {};  ///< a line for the log about them, on the chief; empty: there are none
  bool end = false;           ///< when training ends: a finished run may continue
  bool places = false;        ///< where data are
};

/// Compares the configuration with that of the checkpoint, and logs what differs without effect on the
/// result. Values that change the result are refused unless `accept` is set, or the last job had them
/// already. No checkpoint: no change. All ranks. Throws Error(config) with the difference.
RunChanges changes_of_run(Communicator& world, const Config& config, const FoundCheckpoint& found,
                          const std::string& run_dir, bool accept);

/// Which data a job takes that are not those of the jobs before: none; other samples, as a program has them
/// whose sets grow; or whatever they are (--accept-changes).
enum class AcceptedData { none, new_samples, all };

/// Throws Error(config) if the contents of the data are not those of the jobs before and are not accepted;
/// notes them for the jobs after this one. All ranks.
void check_data_of_run(RunContext& context, JobRecorder& job, const RunChanges& changes,
                       const FoundCheckpoint& found, AcceptedData accepted);

/// What check_data_of_run() refuses without --accept-changes, before a job: `before` are the jobs of the run
/// in `run_dir`, `step` its checkpoint's. One process. Throws Error(config).
void require_data_of_run(const Config& config, const std::string& run_dir, std::int64_t step,
                         const JobData& mine, const RunChanges& changes);

/// Keeps the configuration of the job in configs/job-0001.yaml of the run directory. On the chief. On-disk
/// names: do not change.
void keep_job_config(const std::string& run_dir, int job, const std::string& text);

}  // namespace lockstep
