// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep status` says, as arithmetic on the records of a run's jobs.
//
// The time of the jobs is lost where it went into starting (until the first step), into waiting for
// checkpoints, into steps that a later job did again because nothing was saved of them, and into stopping;
// the rest, steps that count and evaluations, is effective. The time between jobs is the queue's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "session/run_record.h"

namespace lockstep {

/// Waiting: the last job ended with exit code 75, another one is to go on. Crashed: it ended without a word.
enum class RunState { starting, running, waiting, finished, stopped, failed, crashed };
const char* name_of(RunState state);

struct RunProgress {
  RunState state = RunState::crashed;
  double silent_seconds = 0;  ///< since the last sign of life of a job that has not ended
  int jobs = 0;
  std::int64_t step = 0, total_steps = 0;
  double steps_per_second = 0;  ///< of the last job, evaluations and checkpoints among them; 0: unknown
  double left_seconds = -1;     ///< of computing, at that rate; -1: unknown
  /// When the run will be finished at the pace of all its jobs and the time between them; seconds since
  /// 1970; 0: unknown.
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

/// Whether the process of a record is there; nothing: it cannot be told from here.
using IsAlive = std::function<std::optional<bool>(const JobRecord&)>;
/// By /proc, where the job runs on this host and this process sees the same process numbers.
std::optional<bool> is_alive_here(const JobRecord& record);

/// `jobs` is not empty. `now`: seconds since 1970.
RunProgress run_progress(const std::vector<JobRecord>& jobs, double now, const IsAlive& is_alive);

/// A job that cannot be seen from here has crashed when it was silent for so long.
inline constexpr double kSilentSeconds = 60;

}  // namespace lockstep
