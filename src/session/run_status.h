// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes status.json (run_record.h) and ranks.json (rank_status.h) while a job runs: on the chief, in a
// thread of its own, every few seconds. A step only stores a few numbers in memory. If the file cannot be
// written, one warning says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/timed_service.h"
#include "session/rank_status.h"
#include "session/run_record.h"

namespace lockstep {

class RunStatus {
 public:
  static constexpr double kHeartbeatSeconds = 5;

  /// The chief, which holds the lock of the run directory. Moves the record of the last job to jobs.jsonl and
  /// begins that of this one. `mine`: what is known of this job.
  RunStatus(std::string run_dir, JobRecord mine);
  ~RunStatus();
  RunStatus(const RunStatus&) = delete;
  RunStatus& operator=(const RunStatus&) = delete;

  /// JobRecord::begin of this job.
  double begin() const { return begin_; }
  /// The jobs before this one.
  const std::vector<JobRecord>& before() const { return before_; }

  // For the thread of the loop.
  void set_data(const JobData& data);
  void set_total_steps(std::int64_t steps);
  /// The value of comm.straggler_factor, for ranks.json.
  void set_straggler_factor(double factor);
  void first_step_begins();
  void step_done(std::int64_t step, double loss);
  /// What the ranks spent the step before on, for ranks.json; `samples`: of this step.
  void ranks_done(const RankTimes& times, std::int64_t step, std::int64_t samples);
  void waited_for_checkpoints(double seconds);

  /// Records the end of the job and writes it at once. Later calls do nothing.
  void end(const std::string& state, int exit_code, const std::string& reason);

 private:
  void write();

  const std::string run_dir_;
  std::vector<JobRecord> before_;
  double begin_ = 0;
  mutable std::mutex mutex_;  // of what follows
  JobRecord record_;
  RankTimesSum ranks_;
  std::mutex writing_;
  bool warned_ = false;
  Coordinator coordinator_;  // last: its thread ends before what it uses
};

/// The record of this process: host, process, job of the queue.
JobRecord this_job(int ranks, std::int64_t begin_step, std::string config_hash);

}  // namespace lockstep
