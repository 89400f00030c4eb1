// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers of `lockstep status`, computed from the records of a run's jobs.
//
// Lost time: starting (until the first step), waiting for checkpoints, steps that a later job repeated
// because they were not saved, and stopping. All other time of the jobs is effective: steps that count, and
// evaluations. The time between jobs is spent in the queue.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "session/run_record.h"

namespace lockstep {

/// Waiting: the last job ended with exit code 75, and another one is to continue. Crashed: the last job ended
/// without a record of its end.
enum class RunState { starting, running, waiting, finished, stopped, failed, crashed };
const char* name_of(RunState state);

struct RunProgress {
  RunState state = RunState::crashed;
  double silent_seconds = 0;  ///< since the last heartbeat of a job that has not ended
  int jobs = 0;
  std::int64_t step = 0, total_steps = 0;
  double steps_per_second = 0;  ///< of the last job, with evaluations and checkpoints; 0: unknown
  double left_seconds = -1;     ///< of computing, at that rate; -1: unknown
  /// When the run will be finished at the pace so far, including the time between jobs. Seconds since 1970;
  /// 0: unknown.
  double finish_time = 0;
  double job_seconds = 0;      ///< of all jobs together
  double between_seconds = 0;  ///< from the end of a job to the begin of the next
  double starting_seconds = 0, saving_seconds = 0, repeated_seconds = 0, stopping_seconds = 0;

  double lost_seconds() const {
    return starting_seconds + saving_seconds + repeated_seconds + stopping_seconds;
  }
  /// Effective training time: the share of the jobs' time that was not lost.
  double effective_share() const { return job_seconds > 0 ? 1 - lost_seconds() / job_seconds : 0; }
};

/// Whether the process of a record exists; nothing: this process cannot tell.
using IsAlive = std::function<std::optional<bool>(const JobRecord&)>;
/// Looks into /proc. Tells something only if the job runs on this host with the same process numbers.
std::optional<bool> is_alive_here(const JobRecord& record);

/// `jobs` is not empty. `now`: seconds since 1970.
RunProgress run_progress(const std::vector<JobRecord>& jobs, double now, const IsAlive& is_alive);

/// A job whose process cannot be seen counts as crashed after so long a silence.
inline constexpr double kSilentSeconds = 60;

}  // namespace lockstep
