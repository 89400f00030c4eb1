// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_last_words.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include "core/cpu.h"
#include "core/last_words.h"
#include "core/shown_text.h"
#include "io/atomic_file.h"
#include "io/file_descriptor.h"
#include "session/run_record.h"

namespace lockstep {

namespace {

constexpr double kSameTime = 1e-3;  // seconds

std::string status_path(const std::string& run_dir) { return run_dir + "/status.json"; }

/// The record of the job; nothing if the status is of another one. Throws Error(config).
std::optional<JobRecord> record_of(const std::string& run_dir, double job_begin) {
  std::optional<JobRecord> record = job_record(read_whole_file(status_path(run_dir)));
  if (record && std::abs(record->begin - job_begin) > kSameTime) record.reset();
  return record;
}

/// As the log writes its lines.
std::string log_time() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char date[32] = {}, zone[16] = {};
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  std::strftime(zone, sizeof zone, "%z", &parts);
  return fmt::format("{}.{:03}{}", date, milliseconds, zone);
}

/// Past the log's own lock, which a thread that hangs may hold: a line is one write at the end of the file.
/// Returns false if there is no log.
bool append_to_log(const std::string& run_dir, const std::string& message) {
  const FileDescriptor log(
      ::open((run_dir + "/lockstep.log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK));
  if (!log.is_open()) return false;
  std::string line = fmt::format("{} error {}", log_time(), message);
  if (line.back() != '\n') line += '\n';
  return ::write(log.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

/// "rank 1: no answer" of "error: rank 1: no answer\n ...".
std::string reason_in(std::string_view message) {
  constexpr std::string_view kPrefix = "error: ";
  if (message.starts_with(kPrefix)) message.remove_prefix(kPrefix.size());
  return std::string(message.substr(0, message.find('\n')));
}

void note(const std::string& run_dir, double job_begin, const std::string& message, int exit_code) {
  std::optional<JobRecord> record;
  std::string why_not;
  try {
    record = record_of(run_dir, job_begin);
    if (!record) why_not = "its status is of another job";
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  if (!record) {
    std::fprintf(stderr, "warning: %s is not seen from host %s, so the run has no note of its end (%s)\n",
                 shown_text(run_dir).c_str(), host_name().c_str(), shown_message(why_not).c_str());
    return;
  }
  append_to_log(run_dir, message);
  if (record->ended()) return;
  record->state = "failed";
  record->reason = reason_in(message);
  record->phase.clear();
  record->exit_code = exit_code;
  record->end = record->heartbeat = unix_time();
  write_file_atomically(status_path(run_dir), to_json(*record) + "\n");
}

}  // namespace

void begin_run_last_words(std::string run_dir, double job_begin) {
  set_last_words([run_dir = std::move(run_dir), job_begin](const std::string& message, int exit_code) {
    note(run_dir, job_begin, message, exit_code);
  });
}

void end_run_last_words() { set_last_words({}); }

void note_error_in_log(const std::string& run_dir, const std::string& text) noexcept {
  try {
    append_to_log(run_dir, text);
  } catch (const std::exception&) {  // no memory: standard error has it
  }
}

bool is_job_ended(const std::string& run_dir, double job_begin) {
  try {
    const std::optional<JobRecord> record = record_of(run_dir, job_begin);
    return record && record->ended();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace lockstep
