// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Jobs, kills and resumes over time: a table, and a picture with a bar per job.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "session/progress.h"
#include "view/plot/chart.h"
#include "view/report/sections.h"

namespace lockstep::report {

namespace {

constexpr std::size_t kMostBars = 40, kMostRows = 200;
constexpr double kWidth = 860, kLeft = 64, kRight = 150, kRow = 26, kTop = 8, kAxis = 30;

double end_of(const ReportRun& run, std::size_t i) {
  const JobRecord& job = run.overview.jobs[i];
  if (job.ended()) return job.end;
  const bool goes_on =
      i + 1 == run.overview.jobs.size() &&
      (run.overview.progress.state == RunState::running || run.overview.progress.state == RunState::starting);
  return goes_on ? run.now : std::max(job.heartbeat, job.begin);
}

/// A job without a record of its end was killed, unless it is the one that goes on.
std::string end_text(const ReportRun& run, std::size_t i) {
  const JobRecord& job = run.overview.jobs[i];
  if (!job.ended()) {
    if (i + 1 < run.overview.jobs.size()) return "killed";
    return name_of(run.overview.progress.state);
  }
  return job.state == "requeue" ? "saved, to go on" : job.state;
}

const char* tone(const std::string& end) {
  return end == "killed" || end == "crashed" || end == "failed" ? "bad" : end == "finished" ? "good" : "calm";
}

/// Seconds in the unit of the axis.
std::pair<double, const char*> unit_of(double seconds) {
  if (seconds < 300) return {1, "seconds"};
  if (seconds < 3 * 3600) return {60, "minutes"};
  if (seconds < 4 * 86400) return {3600, "hours"};
  return {86400, "days"};
}

std::string picture(const ReportRun& run) {
  const std::vector<JobRecord>& jobs = run.overview.jobs;
  const std::size_t first = jobs.size() > kMostBars ? jobs.size() - kMostBars : 0;
  const double begin = jobs[first].begin;
  double end = begin + 1e-3;
  for (std::size_t i = first; i < jobs.size(); ++i) end = std::max(end, end_of(run, i));
  const auto [unit, unit_name] = unit_of(end - begin);
  const double high = kTop + kRow * static_cast<double>(jobs.size() - first);
  const auto x = [&](double time) {
    return kLeft + (time - begin) / (end - begin) * (kWidth - kLeft - kRight);
  };
  std::string text = fmt::format(
      "<div class=\"scroll\"><svg class=\"timeline\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" "
      "role=\"img\" aria-label=\"jobs over time\">\n",
      kWidth, high + kAxis);
  for (const double tick : round_ticks(0, (end - begin) / unit, 6, 0))
    text += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1:.0f}V{2:.0f}\"/><text class=\"tick\" x=\"{0:.1f}\" "
        "y=\"{3:.0f}\" text-anchor=\"middle\">{4}</text>\n",
        x(begin + tick * unit), kTop, high, high + 16, tick_text(tick));
  text += fmt::format("<text class=\"tick\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", kWidth - kRight + 12,
                      high + 16, unit_name);
  for (std::size_t i = first; i < jobs.size(); ++i) {
    const JobRecord& job = jobs[i];
    const double y = kTop + kRow * static_cast<double>(i - first), stop = end_of(run, i);
    const double stepping = job.first_step > 0 ? job.first_step : stop;
    const std::string how = end_text(run, i);
    const auto bar = [&](double from, double to, const char* style) {
      return fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" rx=\"2\"/>", style,
          x(from), y + 5, std::max(1.0, x(to) - x(from)), kRow - 10);
    };
    text += fmt::format(
        "<g><title>job {}: {} ranks on {}, {}</title><text class=\"tick\" x=\"{:.0f}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">job {}</text>",
        i + 1, job.ranks, escaped(job.host), escaped(how), kLeft - 10, y + kRow / 2 + 4, i + 1);
    text += bar(job.begin, stepping, "starting");
    if (stop > stepping) text += bar(stepping, stop, "stepping");
    text += fmt::format("<text class=\"mark {}\" x=\"{:.1f}\" y=\"{:.1f}\">{} {}</text></g>\n", tone(how),
                        x(stop) + 6, y + kRow / 2 + 4,
                        tone(how) == std::string_view("bad") ? "✕"
                        : how == "finished"                  ? "✓"
                                                             : "•",
                        escaped(how));
  }
  text +=
      "</svg></div>\n<p class=\"legend\"><span class=\"key starting\">starting</span> <span class=\"key "
      "stepping\">steps, evaluations, checkpoints</span></p>\n";
  if (first > 0) text += fmt::format("<p>The last {} of {} jobs.</p>\n", kMostBars, jobs.size());
  return text;
}

}  // namespace

Section timeline_section(const ReportRun& run) {
  Section section{"timeline", "Jobs, kills and resumes", picture(run)};
  const std::vector<JobRecord>& jobs = run.overview.jobs;
  Table table{.head = {"job", "began", "took", "ranks", "host", "queue", "from step", "to step", "end",
                       "exit code", "reason"},
              .rows = {}};
  for (std::size_t i = jobs.size() > kMostRows ? jobs.size() - kMostRows : 0; i < jobs.size(); ++i) {
    const JobRecord& job = jobs[i];
    const std::string how = end_text(run, i);
    const bool known = job.step >= job.begin_step && job.last_step > 0;
    // A killed job's record is some seconds old; the next job began at what it had saved.
    const std::string to =
        known                 ? grouped(job.step)
        : i + 1 < jobs.size() ? fmt::format("≥ {}", grouped(std::max(job.begin_step, jobs[i + 1].begin_step)))
                              : "–";
    table.rows.push_back({count_cell(static_cast<std::int64_t>(i) + 1),
                          text_cell(clock_text(job.begin)),
                          {format_duration(end_of(run, i) - job.begin), true},
                          count_cell(job.ranks),
                          text_cell(job.host),
                          text_cell(job.queue_job),
                          count_cell(job.begin_step),
                          {to, true},
                          {fmt::format("<span class=\"badge {}\">{}</span>", tone(how), escaped(how))},
                          {job.exit_code >= 0 ? std::to_string(job.exit_code) : "–", true},
                          text_cell(job.reason)});
  }
  section.body += html_of(table);
  return section;
}

}  // namespace lockstep::report
