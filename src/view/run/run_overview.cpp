// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/run/run_overview.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "core/error.h"
#include "io/checkpoint_store.h"
#include "session/progress.h"

namespace lockstep {

namespace {

std::optional<SavedCheckpoint> last_checkpoint(const std::string& run_dir) {
  const std::optional<std::int64_t> step = newest_checkpoint_step(run_dir);
  if (!step) return std::nullopt;
  SavedCheckpoint saved{.step = *step, .path = CheckpointStore(run_dir, 0).path_of(*step)};
  struct stat status {};
  if (::stat(saved.path.c_str(), &status) == 0)
    saved.time =
        static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
  return saved;
}

/// When the run last wrote something. A record is some seconds old, and of a job that crashed there is none
/// of the end.
double last_written(const std::string& run_dir) {
  double last = 0;
  for (const char* name : {"status.json", "metrics.jsonl", "lockstep.log", "checkpoint"}) {
    struct stat status {};
    if (::stat((run_dir + "/" + name).c_str(), &status) == 0)
      last = std::max(last, static_cast<double>(status.st_mtim.tv_sec) +
                                1e-9 * static_cast<double>(status.st_mtim.tv_nsec));
  }
  return last;
}

}  // namespace

RunOverview run_overview(const std::string& run_dir, double now) {
  RunOverview run{.jobs = read_jobs(run_dir), .progress = {}, .saved = {}};
  struct stat status {};
  if (run.jobs.empty() && ::stat((run_dir + "/sweep.json").c_str(), &status) == 0)
    throw Error(
        ErrorKind::config, "this is the folder of a sweep, not of a run", run_dir,
        fmt::format("Its report is {0}/report.html. Each of its trials is a run: {0}/trials/0000.", run_dir));
  if (run.jobs.empty())
    throw Error(
        ErrorKind::config, "there is no status of a run", run_dir + "/status.json",
        "Give the run directory of `lockstep train` (runs/NAME). A run that waits in the queue for its "
        "first job has none yet.");
  JobRecord& last = run.jobs.back();
  if (!last.ended()) last.heartbeat = std::max(last.heartbeat, std::min(now, last_written(run_dir)));
  run.progress = run_progress(run.jobs, now, is_alive_here);
  run.saved = last_checkpoint(run_dir);
  if (run.saved && !last.ended())
    run.progress.step = std::max(run.progress.step, run.saved->step);  // the record is some seconds old
  return run;
}

bool is_over(RunState state) {
  return state != RunState::starting && state != RunState::running && state != RunState::waiting;
}

std::string run_state_text(const RunProgress& run, const JobRecord& last) {
  std::string text = name_of(run.state);
  switch (run.state) {
    case RunState::starting:
    case RunState::running:
      text += fmt::format(": {}", last.phase);
      if (run.silent_seconds > kSilentSeconds)
        text += fmt::format(" (no sign of life for {})", format_duration(run.silent_seconds));
      break;
    case RunState::waiting:
      text += fmt::format(" for the next job; the last one ended with exit code 75: {}", last.reason);
      break;
    case RunState::crashed:
      text += fmt::format(": the last job ended without a word, {} ago or later",
                          format_duration(run.silent_seconds));
      break;
    default:
      if (!last.reason.empty()) text += ": " + last.reason;
  }
  return text;
}

std::string clock_text(double time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

}  // namespace lockstep
