// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The records of a run's jobs in its run directory: status.json for the last job, and jobs.jsonl with a line
// for each job before it. On-disk names: do not change. Reading needs neither MPI nor the host of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// Fingerprints of the contents of a job's data; empty: not known.
struct JobData {
  std::string train, eval;
  bool operator==(const JobData&) const = default;
};

/// A job is one start of the program in the run directory. Times are seconds since 1970.
struct JobRecord {
  std::string state;  ///< starting, running; at the end finished, requeue, stopped or failed
  std::string reason, phase;
  std::string host, pid_namespace;
  std::int64_t pid = 0, process_start = 0;  ///< process_start: in the kernel's ticks since boot
  std::string queue_job;                    ///< "Slurm 4711"; empty: none
  std::int64_t ranks = 0, total_steps = 0, begin_step = 0, step = 0;
  double begin = 0, first_step = 0, last_step = 0, heartbeat = 0, end = 0;  ///< 0: not yet
  double saving_seconds = 0;  ///< how long steps waited for checkpoints
  double loss = 0;
  std::int64_t exit_code = -1;  ///< -1: none yet
  std::string config_hash;
  JobData data;

  bool ended() const { return end > 0; }
};

/// One line of JSON, without the newline.
std::string to_json(const JobRecord& record);
/// Nothing if the text is no record. Unknown members are ignored; missing ones keep their defaults.
std::optional<JobRecord> job_record(std::string_view json);

/// All jobs of a run directory in order; the last one comes from status.json. Throws Error(config) if
/// status.json cannot be read.
std::vector<JobRecord> read_jobs(const std::string& run_dir);

/// How many jobs at the end of `jobs` gained no step. The last one ended at `step`; each other one is
/// credited with the step that the next one began with. Jobs that a user stopped and jobs that failed are
/// passed over, because a person started the job after them.
int jobs_without_gain(const std::vector<JobRecord>& jobs, std::int64_t step);

/// Which data differ from those of the last job, and from those of the job that brought the run to `step`.
struct DataChange {
  bool train = false, eval = false;
  bool unknown = false;  ///< no job has recorded its data
};
DataChange data_change(const std::vector<JobRecord>& before, std::int64_t step, const JobData& mine);

/// Seconds since 1970.
double unix_time();
/// When a process of this host started, in the kernel's ticks since boot; 0: there is no such process.
std::int64_t process_start_ticks(std::int64_t pid);
/// The name of the process-number namespace of this process; empty if it is unknown.
std::string pid_namespace();

}  // namespace lockstep
