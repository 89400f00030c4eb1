// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep status`: the progress of a run, from any shell that sees its run directory. Writes nothing, takes
// no lock.
#include "driver/commands/commands.h"
#include "driver/commands/print_result.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "io/checkpoint_store.h"
#include "session/number_text.h"
#include "session/progress.h"
#include "session/run_progress.h"

namespace lockstep {

namespace {

struct SavedCheckpoint {
  std::int64_t step = 0;
  std::string path;
  double time = 0;  ///< seconds since 1970
};

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

std::string clock_text(double time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
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

void print_line(const char* name, const std::string& text) { print_result("{:<12}{}\n", name, text); }

std::string state_text(const RunProgress& run, const JobRecord& last) {
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

void print_text(const std::string& run_dir, const RunProgress& run, const JobRecord& last,
                const std::optional<SavedCheckpoint>& saved, double now) {
  print_line("run", run_dir);
  print_line("state", state_text(run, last));
  if (run.total_steps > 0)
    print_line("step",
               fmt::format("{} of {} ({:.0f} %)", run.step, run.total_steps,
                           100.0 * static_cast<double>(run.step) / static_cast<double>(run.total_steps)));
  if (last.last_step > 0) print_line("loss", number_text(last.loss));
  if (run.steps_per_second > 0)
    print_line("rate", fmt::format("{} steps/s", format_rate(run.steps_per_second)));
  if (run.left_seconds > 0)
    print_line("left",
               fmt::format("{} of computing{}", format_duration(run.left_seconds),
                           run.finish_time > 0 ? fmt::format("; at the pace of all jobs the end is at {}",
                                                             clock_text(run.finish_time))
                                               : ""));
  print_line("job",
             fmt::format("{}{}, {} rank{}, {} process {}, since {}", run.jobs,
                         last.queue_job.empty() ? "" : fmt::format(" ({})", last.queue_job), last.ranks,
                         last.ranks == 1 ? "" : "s", last.host, last.pid, clock_text(last.begin)));
  print_line(
      "checkpoint",
      saved ? fmt::format("step {}, {} ago", saved->step, format_duration(now - saved->time)) : "none yet");
  print_line("time", fmt::format("{} in jobs, {} between them", format_duration(run.job_seconds),
                                 format_duration(run.between_seconds)));
  print_line("lost",
             fmt::format("{}: starting {}, waiting for checkpoints {}, repeated steps {}, stopping {}",
                         format_duration(run.lost_seconds()), format_duration(run.starting_seconds),
                         format_duration(run.saving_seconds), format_duration(run.repeated_seconds),
                         format_duration(run.stopping_seconds)));
  print_line("effective", run.job_seconds > 0
                              ? fmt::format("{:.1f} % of the jobs' time", 100 * run.effective_share())
                              : "unknown");
}

void print_json(const std::string& run_dir, const RunProgress& run, const JobRecord& last,
                const std::optional<SavedCheckpoint>& saved) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](bool known, double value) { return known ? Json(value) : Json(); };
  Json json;
  json["run_dir"] = run_dir;
  json["state"] = name_of(run.state);
  json["reason"] = last.reason;
  json["phase"] = last.phase;
  json["step"] = run.step;
  json["total_steps"] = run.total_steps;
  json["loss"] = last.loss;
  json["steps_per_second"] = or_null(run.steps_per_second > 0, run.steps_per_second);
  json["left_seconds"] = or_null(run.left_seconds >= 0, run.left_seconds);
  json["finish_time"] = or_null(run.finish_time > 0, run.finish_time);
  json["jobs"] = run.jobs;
  json["queue_job"] = last.queue_job;
  json["host"] = last.host;
  json["pid"] = last.pid;
  json["ranks"] = last.ranks;
  json["begin"] = last.begin;
  json["silent_seconds"] = run.silent_seconds;
  json["exit_code"] = last.exit_code >= 0 ? Json(last.exit_code) : Json();
  json["checkpoint"] =
      saved ? Json{{"step", saved->step}, {"path", saved->path}, {"time", saved->time}} : Json();
  json["job_seconds"] = run.job_seconds;
  json["between_seconds"] = run.between_seconds;
  json["lost_seconds"] = run.lost_seconds();
  json["lost"] = {{"starting", run.starting_seconds},
                  {"saving", run.saving_seconds},
                  {"repeated", run.repeated_seconds},
                  {"stopping", run.stopping_seconds}};
  json["effective_share"] = or_null(run.job_seconds > 0, run.effective_share());
  print_result("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

int run_command(const StatusArguments& arguments) {
  std::vector<JobRecord> jobs = read_jobs(arguments.run_dir);
  if (jobs.empty())
    throw Error(
        ErrorKind::config, "there is no status of a run", arguments.run_dir + "/status.json",
        "Give the run directory of `lockstep train` (runs/NAME). A run that waits in the queue for its "
        "first job has none yet.");
  const double now = unix_time();
  if (!jobs.back().ended())
    jobs.back().heartbeat = std::max(jobs.back().heartbeat, std::min(now, last_written(arguments.run_dir)));
  RunProgress run = run_progress(jobs, now, is_alive_here);
  const std::optional<SavedCheckpoint> saved = last_checkpoint(arguments.run_dir);
  if (saved && !jobs.back().ended())
    run.step = std::max(run.step, saved->step);  // the record is some seconds old
  if (arguments.json)
    print_json(arguments.run_dir, run, jobs.back(), saved);
  else
    print_text(arguments.run_dir, run, jobs.back(), saved, now);
  return 0;
}

}  // namespace lockstep
