// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A trial of a sweep, from where it is to the end of a rung, on the ranks of its group.
#pragma once

#include <optional>
#include <string>

#include "comm/environment.h"
#include "session/hooks/time_limit_hook.h"
#include "session/interruption.h"
#include "tools/sweep/sweep_plan.h"

namespace lockstep {

struct TrialJob {
  std::string run_dir, stop_file;
  std::optional<std::int64_t> end = {};  ///< of the rung; none: of the training
  bool in_epochs = false;
  std::string metric;
  std::optional<JobEnd> job_end = {};
};

struct TrialOutcome {
  int exit_code = 0;  ///< not 0: interrupted, to be continued
  RungResult result = {};
  std::string error = {};  ///< not empty: the trial has failed
};

/// All ranks of the group; the same result on all but for the digest, which the first rank alone knows.
/// Throws SharedError for what is not the trial's fault, such as a full disk; with one rank other errors as
/// well.
TrialOutcome run_trial(CommEnvironment& group, const Config& config, const TrialJob& job);

/// A file STOP in the folder of a sweep stops all groups. What is in it says with which exit code.
void write_stop_file(const std::string& path, Interruption kind);
InterruptionRequest look_for_stop_file(const std::string& path);

}  // namespace lockstep
