// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "session/number_text.h"
#include "session/progress.h"
#include "view/report/sections.h"

namespace lockstep::report {

namespace {

const char* tone_of(RunState state) {
  switch (state) {
    case RunState::finished:
      return "good";
    case RunState::failed:
    case RunState::crashed:
      return "bad";
    case RunState::starting:
    case RunState::running:
      return "live";
    default:
      return "calm";
  }
}

std::string ranks_text(const std::vector<JobRecord>& jobs) {
  const auto [least, most] = std::ranges::minmax(jobs, {}, &JobRecord::ranks);
  return least.ranks == most.ranks ? std::to_string(least.ranks)
                                   : fmt::format("{} to {}", least.ranks, most.ranks);
}

std::string best_html(const ReportRun& run) {
  std::string text;
  for (const MetricSeries& series : run.records.series) {
    const BestValue best = best_value(series, run.direction(series.tag));
    if (series.split != "eval" || is_clock_value(series.tag)) continue;
    if (!best.exists) {  // a metric that does not say what is better, or no finite value
      text +=
          fmt::format("<div class=\"stat\"><b>{}</b><span>{}</span><small>last, at step {}</small></div>\n",
                      number_html(best.last), escaped(series.tag), grouped(best.last_step));
      continue;
    }
    text += fmt::format(
        "<div class=\"stat\"><b>{}</b><span>{}</span><small>best, at step {}</small><small>last "
        "{}</small></div>\n",
        number_html(best.value), escaped(series.tag), grouped(best.step), number_html(best.last));
  }
  return text;
}

}  // namespace

std::string state_badge(const RunProgress& progress) {
  return fmt::format("<span class=\"badge {}\">{}</span>", tone_of(progress.state), name_of(progress.state));
}

Section headline_section(const ReportRun& run) {
  const RunProgress& progress = run.overview.progress;
  const std::vector<JobRecord>& jobs = run.overview.jobs;
  const std::int64_t step = std::max(progress.step, run.records.last_step);
  std::string steps = grouped(step);
  if (progress.total_steps > 0) steps += fmt::format(" of {}", grouped(progress.total_steps));
  std::string epochs = run.records.last_epoch > 0 ? grouped(run.records.last_epoch) : "";
  if (run.records.steps_per_epoch)
    epochs += fmt::format(" ({} steps each)", grouped(*run.records.steps_per_epoch));
  const double end = run.last_job().ended() ? run.last_job().end : run.last_job().heartbeat;
  std::string body = facts({
      {"State", escaped(run_state_text(progress, run.last_job()))},
      {"Steps", steps},
      {"Epochs", epochs},
      {"Ranks", ranks_text(jobs)},
      {"Jobs", grouped(progress.jobs)},
      {"Time in jobs", format_duration(progress.job_seconds)},
      {"Between jobs", progress.jobs > 1 ? format_duration(progress.between_seconds) : ""},
      {"Began", clock_text(jobs.front().begin)},
      {run.last_job().ended() ? "Ended" : "Last sign of life", clock_text(end)},
      {"Training loss", jobs.back().last_step > 0 ? number_html(jobs.back().loss) : ""},
  });
  const std::string best = best_html(run);
  if (!best.empty()) body += "<div class=\"stats\">\n" + best + "</div>\n";
  return {"summary", "Summary", body};
}

}  // namespace lockstep::report
