// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_progress.h"

#include <algorithm>

#include "core/cpu.h"
#include "core/error.h"

namespace lockstep {

namespace {

RunState state_of(const JobRecord& last, double silent_seconds, const IsAlive& is_alive) {
  if (last.state == "finished") return RunState::finished;
  if (last.state == "requeue") return RunState::waiting;
  if (last.state == "stopped") return RunState::stopped;
  if (last.state == "failed") return RunState::failed;
  if (!is_alive(last).value_or(silent_seconds < kSilentSeconds)) return RunState::crashed;
  return last.state == "starting" ? RunState::starting : RunState::running;
}

/// When a job last existed.
double end_of(const JobRecord& job, bool goes_on, double now) {
  if (job.ended()) return job.end;
  return goes_on ? now : std::max(job.heartbeat, job.begin);
}

/// `next_step`: where the next job began; for the last job its own last step.
void add_times(RunProgress& all, const JobRecord& job, double end, std::int64_t next_step) {
  all.job_seconds += end - job.begin;
  if (job.first_step <= 0) {
    all.starting_seconds += end - job.begin;
    return;
  }
  all.starting_seconds += job.first_step - job.begin;
  const double last_step = std::clamp(job.last_step, job.first_step, end);
  const double stepping = last_step - job.first_step;
  const std::int64_t steps = job.step - job.begin_step;
  const std::int64_t repeated =
      std::clamp<std::int64_t>(job.step - next_step, 0, std::max<std::int64_t>(steps, 0));
  const double share = steps > 0 ? static_cast<double>(repeated) / static_cast<double>(steps) : 0;
  all.repeated_seconds += share * std::max(0.0, stepping - job.saving_seconds);
  all.saving_seconds += std::min(job.saving_seconds, stepping);
  // A finished job spends its end on the last evaluation. The end of a running job is not known.
  if (job.ended() && job.state != "finished") all.stopping_seconds += end - last_step;
}

}  // namespace

const char* name_of(RunState state) {
  switch (state) {
    case RunState::starting:
      return "starting";
    case RunState::running:
      return "running";
    case RunState::waiting:
      return "waiting";
    case RunState::finished:
      return "finished";
    case RunState::stopped:
      return "stopped";
    case RunState::failed:
      return "failed";
    case RunState::crashed:
      return "crashed";
  }
  return "unknown";
}

std::optional<bool> is_alive_here(const JobRecord& record) {
  if (record.host != host_name() || record.pid_namespace.empty() || record.pid_namespace != pid_namespace())
    return std::nullopt;
  const std::int64_t start = process_start_ticks(record.pid);
  return start != 0 && start == record.process_start;
}

RunProgress run_progress(const std::vector<JobRecord>& jobs, double now, const IsAlive& is_alive) {
  LOCKSTEP_CHECK(!jobs.empty());
  const JobRecord& last = jobs.back();
  RunProgress all;
  all.jobs = static_cast<int>(jobs.size());
  if (!last.ended()) all.silent_seconds = std::max(0.0, now - last.heartbeat);
  all.state = state_of(last, all.silent_seconds, is_alive);
  all.step = last.step;
  all.total_steps = last.total_steps;
  const bool goes_on = all.state == RunState::starting || all.state == RunState::running;

  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const bool is_last = i + 1 == jobs.size();
    const double end = end_of(jobs[i], is_last && goes_on, now);
    add_times(all, jobs[i], end, is_last ? jobs[i].step : jobs[i + 1].begin_step);
    if (!is_last) all.between_seconds += std::max(0.0, jobs[i + 1].begin - end);
  }

  // The rate is that of the last job that made steps.
  for (auto job = jobs.rbegin(); job != jobs.rend() && all.steps_per_second == 0; ++job) {
    const double seconds = job->last_step - job->first_step;
    if (job->first_step > 0 && seconds > 0 && job->step > job->begin_step)
      all.steps_per_second = static_cast<double>(job->step - job->begin_step) / seconds;
  }
  const auto left = static_cast<double>(std::max<std::int64_t>(0, all.total_steps - all.step));
  if (all.state == RunState::finished) {
    all.left_seconds = 0;
  } else if (all.steps_per_second > 0) {
    all.left_seconds = left / all.steps_per_second;
    const std::int64_t gained = all.step - jobs.front().begin_step;
    const double elapsed = (goes_on ? now : end_of(last, false, now)) - jobs.front().begin;
    if (goes_on || all.state == RunState::waiting)
      all.finish_time =
          now + (jobs.size() == 1 || gained <= 0
                     ? all.left_seconds
                     : std::max(all.left_seconds, left * elapsed / static_cast<double>(gained)));
  }
  return all;
}

}  // namespace lockstep
