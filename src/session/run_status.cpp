// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_status.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "comm/flight_recorder.h"
#include "core/cpu.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "core/run_file.h"
#include "io/atomic_file.h"
#include "io/file_descriptor.h"
#include "session/run_last_words.h"

namespace lockstep {

namespace {

/// Appends a line and flushes it to the disk. Throws Error(config).
void append_line(const std::string& path, const std::string& line) {
  const FileDescriptor file(open_run_file(path, O_WRONLY | O_CREAT | O_APPEND, ErrorKind::config));
  const std::string text = line + "\n";
  if (!file.is_open() || !write_fully(file.get(), text.data(), text.size()) || ::fsync(file.get()) != 0)
    throw file_error(ErrorKind::config, "write", path, errno);
}

std::string queue_job() {
  for (const auto& [name, variable] : {std::pair("Slurm", "SLURM_JOB_ID"), std::pair("PBS", "PBS_JOBID")})
    if (const char* id = std::getenv(variable)) return fmt::format("{} {}", name, id);
  return {};
}

}  // namespace

JobRecord this_job(int ranks, std::int64_t begin_step, std::string config_hash) {
  JobRecord record;
  record.host = host_name();
  record.pid = ::getpid();
  record.pid_namespace = pid_namespace();
  record.process_start = process_start_ticks(record.pid);
  record.queue_job = queue_job();
  record.ranks = ranks;
  record.begin_step = record.step = begin_step;
  record.config_hash = std::move(config_hash);
  return record;
}

RunStatus::RunStatus(std::string run_dir, JobRecord mine)
    : run_dir_(std::move(run_dir)), record_(std::move(mine)) {
  try {
    before_ = read_jobs(run_dir_);
  } catch (const Error& error) {
    log_warning("{}", message_of(error));
  }
  record_.state = "starting";
  record_.begin = begin_ = unix_time();
  if (!before_.empty()) try {
      // The last record may be in the file already, if a start was killed right after this.
      const std::string path = run_dir_ + "/jobs.jsonl", last = to_json(before_.back());
      std::error_code code;
      if (!std::filesystem::exists(path, code) || read_whole_file(path).find(last) == std::string::npos)
        append_line(path, last);
    } catch (const Error& error) {
      log_warning("{}", message_of(error));
    }
  loop(coordinator_, kHeartbeatSeconds, [this] { write(); }, {.name = "status", .run_at_start = true});
}

RunStatus::~RunStatus() {
  try {
    coordinator_.join();
  } catch (const std::exception& error) {
    log_warning("{}", message_of(error));
  }
}

void RunStatus::set_data(const JobData& data) {
  const std::lock_guard lock(mutex_);
  record_.data = data;
}

void RunStatus::set_total_steps(std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  record_.total_steps = steps;
}

void RunStatus::first_step_begins() {
  {
    const std::lock_guard lock(mutex_);
    if (record_.first_step > 0) return;
    record_.state = "running";
    record_.first_step = unix_time();
  }
  write();
}

void RunStatus::set_straggler_factor(double factor) {
  const std::lock_guard lock(mutex_);
  ranks_.set_straggler_factor(factor);
}

void RunStatus::ranks_done(const RankTimes& times, std::int64_t step, std::int64_t samples) {
  const std::lock_guard lock(mutex_);
  ranks_.step_done(times, step, samples);
}

void RunStatus::step_done(std::int64_t step, double loss) {
  const std::lock_guard lock(mutex_);
  record_.step = step;
  record_.loss = loss;
  record_.last_step = unix_time();
}

void RunStatus::waited_for_checkpoints(double seconds) {
  const std::lock_guard lock(mutex_);
  record_.saving_seconds = seconds;
}

void RunStatus::end(const std::string& state, int exit_code, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (record_.ended()) return;
    record_.state = state;
    record_.exit_code = exit_code;
    record_.reason = reason;
    record_.end = unix_time();
  }
  write();
}

void RunStatus::write() {
  const std::lock_guard one_at_a_time(writing_);
  try {
    std::string text;
    std::optional<RanksReport> ranks;
    bool ended = false;
    {
      const std::lock_guard lock(mutex_);
      record_.heartbeat = unix_time();
      record_.phase = record_.ended() ? std::string() : flight_recorder().phase();
      text = to_json(record_);
      ended = record_.ended();
      ranks = ranks_.take();
      if (ranks) {
        ranks->job_begin = record_.begin;
        ranks->time = record_.heartbeat;
      }
    }
    if (!ended && is_job_ended(run_dir_, begin_)) return;  // another rank has ended this job
    if (ranks) write_file_atomically(run_dir_ + "/ranks.json", to_json(*ranks) + "\n");
    write_file_atomically(run_dir_ + "/status.json", text + "\n");
  } catch (const std::exception& error) {
    if (!std::exchange(warned_, true))
      log_warning("the run continues, but its status cannot be written: {}", message_of(error));
  }
}

}  // namespace lockstep
