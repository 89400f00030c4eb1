// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the records of a run directory say about the run as a whole, for the commands that show it (status,
// report, compare). Reads files, takes no lock, needs no MPI; the run may go on meanwhile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "session/run_progress.h"

namespace lockstep {

struct SavedCheckpoint {
  std::int64_t step = 0;
  std::string path;
  double time = 0;  ///< seconds since 1970
};

struct RunOverview {
  std::vector<JobRecord> jobs;  ///< not empty; the last one is the present or the last job
  RunProgress progress;
  std::optional<SavedCheckpoint> saved;  ///< the newest checkpoint, not verified
};

/// `now`: seconds since 1970. Throws Error(config) if the directory has no records of jobs.
RunOverview run_overview(const std::string& run_dir, double now);

/// No step will follow unless a person starts the run again: finished, stopped, failed or crashed.
bool is_over(RunState state);
/// "crashed: the last job ended without a word, 3m05s ago or later".
std::string run_state_text(const RunProgress& run, const JobRecord& last);
/// "2026-01-31 23:59:59", in local time.
std::string clock_text(double time);

}  // namespace lockstep
