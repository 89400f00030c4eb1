// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep status`: the progress of a run, from any shell that sees its run directory. Writes nothing, takes
// no lock.
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/print_result.h"
#include "view/run/run_overview.h"

#include <fmt/format.h>

#include "io/json.h"
#include "session/number_text.h"
#include "session/progress.h"

namespace lockstep {

namespace {

struct StatusArguments {
  std::string run_dir;
  bool json = false;
};

void print_line(const char* name, const std::string& text) { print_result("{:<12}{}\n", name, text); }

void print_text(const std::string& run_dir, const RunProgress& run, const JobRecord& last,
                const std::optional<SavedCheckpoint>& saved, double now) {
  print_line("run", run_dir);
  print_line("state", run_state_text(run, last));
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
  print_as_is(json.dump(2) + "\n");
}

void declare(CommandOptions& options, StatusArguments& arguments) {
  add_target(options, "RUN_DIR", arguments.run_dir, "Run directory");
  add_json(options, arguments.json);
}

int run(const StatusArguments& arguments) {
  const double now = unix_time();
  const RunOverview run = run_overview(arguments.run_dir, now);
  if (arguments.json)
    print_json(arguments.run_dir, run.progress, run.jobs.back(), run.saved);
  else
    print_text(arguments.run_dir, run.progress, run.jobs.back(), run.saved, now);
  return 0;
}

}  // namespace

extern const Command kStatusCommand = {
    "status", "Print how far a run is, over all its jobs; from any shell, also while it runs",
    "lockstep status runs/digits", call_with<StatusArguments, declare, run>};

}  // namespace lockstep
