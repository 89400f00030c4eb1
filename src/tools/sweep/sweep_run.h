// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A sweep on the ranks of one allocation. The ranks are split into groups; each group trains one trial after
// the other as `lockstep train` would. All groups end a rung before one begins the next (decision 58).
#pragma once

#include <optional>
#include <string>

#include "comm/environment.h"
#include "session/hooks/time_limit_hook.h"
#include "tools/sweep/sweep_plan.h"

namespace lockstep {

struct SweepJob {
  std::string sweep_dir;
  std::optional<std::int64_t> groups = {};  ///< instead of those of the configuration
  std::optional<JobEnd> job_end = {};
  bool quiet = false;
};

struct SweepOutcome {
  int exit_code = 0;  ///< 0: all trials have ended; 75, 130: to be continued
  std::vector<TrialRecord> records;
};

/// All ranks. Begins the sweep, or continues the one in its folder. Throws SharedError.
SweepOutcome run_sweep(CommEnvironment& environment, const SweepPlan& plan, const SweepJob& job);

/// The group of a rank: consecutive ranks, as even as possible.
int group_of(int rank, int ranks, int groups);

}  // namespace lockstep
