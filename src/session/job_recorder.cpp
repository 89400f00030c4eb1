// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/job_recorder.h"

#include <exception>

#include "comm/share_text.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "session/run_last_words.h"

namespace lockstep {

namespace {

/// On the chief: why the last job stopped for good where the run is now; empty: it did not.
std::string stopped_for_good(const JobSpec& job, const FoundCheckpoint& found) {
  try {
    const std::vector<JobRecord> jobs = read_jobs(job.run_dir);
    if (jobs.empty()) return {};
    const JobRecord& last = jobs.back();
    if (last.state == "finished" && last.step == found.header.global_step) return last.reason;
  } catch (const Error& error) {
    log_warning("{}", message_of(error));
  }
  return {};
}

bool reached(const TrainingOptions& options, const FoundCheckpoint& found) {
  return options.steps ? found.header.global_step >= *options.steps : found.header.epoch >= *options.epochs;
}

}  // namespace

std::string hash_of_config(const std::string& text) { return fmt::format("{:016x}", hash64(text)); }

std::string why_finished(Communicator& world, const TrainingOptions& options, const JobSpec& job,
                         const FoundCheckpoint& found, bool end_changed) {
  if (!found.exists() || found.deferred) return {};
  const std::string where =
      fmt::format("this run is finished: step {} in {}", found.header.global_step, found.path);
  if (reached(options, found)) return where;
  const std::string reason =
      broadcast_text(world, world.rank() == 0 && !end_changed ? stopped_for_good(job, found) : std::string(),
                     "has the run stopped for good");
  return reason.empty() ? "" : fmt::format("{}, {}", where, reason);
}

JobRecorder::JobRecorder(Communicator& world, const JobSpec& job, const FoundCheckpoint& found)
    : world_(world),
      max_jobs_without_progress_(job.max_jobs_without_progress),
      begin_step_(found.exists() ? found.header.global_step : 0) {
  if (world.rank() == 0)
    status_ = std::make_unique<RunStatus>(job.run_dir, this_job(world.size(), begin_step_, job.config_hash));
  double begin = status_ ? status_->begin() : 0;
  world.broadcast(&begin, sizeof begin, 0, "the begin of the job");
  begin_run_last_words(job.run_dir, begin);
}

JobRecorder::~JobRecorder() {
  if (std::uncaught_exceptions() == 0) end_run_last_words();
}

std::optional<int> JobRecorder::interrupted_at_start() {
  const InterruptionRequest request = agreed(world_, signal_request(), "is the start to be interrupted");
  if (!request.any()) return std::nullopt;
  if (world_.rank() == 0) log_info("stopping before the first step: {}", interruption_text(request));
  return end(request, begin_step_, "");
}

/// On the chief.
int JobRecorder::code_of_requeue(std::int64_t step) const {
  std::vector<JobRecord> jobs = status_->before();
  jobs.push_back({.state = "requeue", .begin_step = begin_step_});
  const int count = jobs_without_gain(jobs, step);
  if (count < max_jobs_without_progress_) return exit_code(Interruption::requeue);
  log_error(
      "{} in a row gained no step: the run is still at step {}. The exit code is 1, so that the queue does "
      "not start it again forever.\n  Look at lockstep.log and at what ended the jobs; "
      "train.max_jobs_without_progress is the limit.",
      count == 1 ? "this job" : fmt::format("{} jobs", count), step);
  return 1;
}

int JobRecorder::end(const InterruptionRequest& interruption, std::int64_t step,
                     const std::string& final_reason) {
  int code = exit_code(interruption.kind);
  if (status_ && interruption.kind == Interruption::requeue) code = code_of_requeue(step);
  world_.broadcast(&code, sizeof code, 0, "the exit code");
  const char* state = "finished";
  reason_ = final_reason;
  if (interruption.any()) {
    state = interruption.kind == Interruption::user ? "stopped" : code == 1 ? "failed" : "requeue";
    reason_ = interruption_text(interruption);
    if (code == 1) reason_ = fmt::format("no step was gained: {}", reason_);
  }
  if (status_) status_->end(state, code, reason_);
  return code;
}

void JobRecorder::failed(int code, const std::string& reason) {
  if (status_) status_->end("failed", code, reason);
}

}  // namespace lockstep
