// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Keeps status.json (run_record.h) while a job runs: on the chief, in a thread of its own, every few seconds,
// so that a step pays for a few stores to memory only. A file that cannot be written is one warning.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/timed_service.h"
#include "session/run_record.h"

namespace lockstep {

class RunStatus {
 public:
  static constexpr double kHeartbeatSeconds = 5;

  /// The chief, holding the run directory's lock: what the last job left goes to jobs.jsonl, and this one
  /// begins. `mine`: what is known of it already.
  RunStatus(std::string run_dir, JobRecord mine);
  ~RunStatus();
  RunStatus(const RunStatus&) = delete;
  RunStatus& operator=(const RunStatus&) = delete;

  /// The jobs before this one.
  const std::vector<JobRecord>& before() const { return before_; }
  std::int64_t begin_step() const;

  // The loop's thread.
  void set_total_steps(std::int64_t steps);
  void first_step_begins();
  void step_done(std::int64_t step, double loss);
  void waited_for_checkpoints(double seconds);

  /// The job's last word, written at once; later ones do nothing.
  void end(const std::string& state, int exit_code, const std::string& reason);

 private:
  void write();

  const std::string run_dir_;
  std::vector<JobRecord> before_;
  mutable std::mutex mutex_;  // of what follows
  JobRecord record_;
  std::mutex writing_;
  bool warned_ = false;
  Coordinator coordinator_;  // last: its thread ends before what it uses
};

/// Of this process: host, process, job of the queue.
JobRecord this_job(int ranks, std::int64_t begin_step, std::string config_hash);

}  // namespace lockstep
