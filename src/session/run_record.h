// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a run directory says about the jobs that worked in it: status.json, of the last one, and jobs.jsonl,
// a line for each one before it. On-disk names: do not change. Reading needs neither MPI nor the run's host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// One job: one start of the program in the run directory. Times are seconds since 1970.
struct JobRecord {
  std::string state;  ///< starting, running; at its end finished, requeue, stopped, failed
  std::string reason, phase;
  std::string host, pid_namespace;
  std::int64_t pid = 0, process_start = 0;  ///< process_start: in the kernel's ticks since boot
  std::string queue_job;                    ///< "Slurm 4711"; empty: none
  std::int64_t ranks = 0, total_steps = 0, begin_step = 0, step = 0;
  double begin = 0, first_step = 0, last_step = 0, heartbeat = 0, end = 0;  ///< 0: not yet
  double saving_seconds = 0;  ///< that steps waited for checkpoints
  double loss = 0;
  std::int64_t exit_code = -1;  ///< -1: none yet
  std::string config_hash;

  bool ended() const { return end > 0; }
};

/// One line of JSON, without its end.
std::string to_json(const JobRecord& record);
/// Nothing if the text is no record. Unknown members are left alone, missing ones keep their defaults.
std::optional<JobRecord> job_record(std::string_view json);

/// All jobs of a run directory, in order, the last one from status.json. Empty if there are none. Throws
/// Error(config) if status.json cannot be read.
std::vector<JobRecord> read_jobs(const std::string& run_dir);

/// How many jobs at the end of `jobs` gained no step, the last of them having ended at `step`; what one
/// gained is what the next one began with. Those that a user stopped, and those that failed, count neither
/// way: a person started the next one.
int jobs_without_gain(const std::vector<JobRecord>& jobs, std::int64_t step);

/// Seconds since 1970.
double unix_time();
/// The kernel's ticks since boot at which a process of this host started; 0: there is none.
std::int64_t process_start_ticks(std::int64_t pid);
/// Names the process numbers that this process sees; empty if it cannot be told.
std::string pid_namespace();

}  // namespace lockstep
