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

/// A part of the time of all jobs.
struct Part {
  const char* name;
  double seconds;
  const char* style;
};

std::string parts_html(const RunProgress& progress) {
  const Part parts[] = {{"effective", progress.job_seconds - progress.lost_seconds(), "p0"},
                        {"starting", progress.starting_seconds, "p1"},
                        {"waiting for checkpoints", progress.saving_seconds, "p2"},
                        {"repeated steps", progress.repeated_seconds, "p3"},
                        {"stopping", progress.stopping_seconds, "p4"}};
  std::string bar = "<div class=\"parts\" role=\"img\" aria-label=\"parts of the time in jobs\">";
  std::string legend = "<p class=\"legend\">";
  for (const Part& part : parts) {
    const double share = progress.job_seconds > 0 ? std::max(0.0, part.seconds) / progress.job_seconds : 0;
    if (share > 0)
      bar += fmt::format("<i class=\"{}\" style=\"width:{:.3f}%\"></i>", part.style, 100 * share);
    legend += fmt::format("<span class=\"key {}\">{} {} ({:.1f} %)</span> ", part.style, part.name,
                          format_duration(std::max(0.0, part.seconds)), 100 * share);
  }
  return bar + "</div>\n" + legend + "</p>\n";
}

/// Of the values of a rate.
std::string rate_facts(const MetricSeries& series) {
  std::vector<double> values;
  for (const double value : series.values)
    if (std::isfinite(value)) values.push_back(value);
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return facts({{"Samples per second, median", format_rate(at(0.5))},
                {"Slowest tenth below", format_rate(at(0.1))},
                {"Fastest tenth above", format_rate(at(0.9))},
                {"Last", std::isfinite(series.values.back()) ? format_rate(series.values.back()) : "–"}});
}

}  // namespace

Section throughput_section(const ReportRun& run) {
  Section section{"throughput", "Throughput and efficiency", {}};
  const RunProgress& progress = run.overview.progress;
  if (const MetricSeries* rate = run.records.find("train", "samples_per_second"))
    section.body += rate_facts(*rate);
  else
    section.body += missing("metrics.jsonl has no samples_per_second: the run recorded no training step.");
  section.body +=
      facts({{"Steps per second, last job",
              progress.steps_per_second > 0 ? format_rate(progress.steps_per_second) : "–"},
             {"Effective training time",
              progress.job_seconds > 0 ? fmt::format("{:.1f} %", 100 * progress.effective_share()) : "–"},
             {"Time in jobs", format_duration(progress.job_seconds)},
             {"Lost", format_duration(progress.lost_seconds())}});
  section.body += "<h3>Where the time of all jobs went</h3>\n" + parts_html(progress);
  return section;
}

}  // namespace lockstep::report
