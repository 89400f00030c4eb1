// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Histograms, pictures, sounds and texts that section `summary` of the configuration has recorded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "view/report/chart_frame.h"
#include "view/report/recorded_media.h"
#include "view/report/recorded_summaries.h"
#include "view/report/sections.h"

namespace lockstep::report {

namespace {

constexpr std::size_t kMostCharts = 120, kOpenCharts = 12;

/// One step alone is drawn as wide as a step.
std::vector<std::pair<double, const Quantiles*>> points_of(const HistogramSeries& series) {
  std::vector<std::pair<double, const Quantiles*>> points;
  for (const Quantiles& at : series.steps) points.emplace_back(static_cast<double>(at.step), &at);
  if (points.size() == 1) {
    points.insert(points.begin(), {points[0].first - 0.5, points[0].second});
    points.back().first += 0.5;
  }
  return points;
}

/// Bands between quantiles as far from the median; the median is a line.
std::string chart_of(const HistogramSeries& series) {
  const auto points = points_of(series);
  ChartFrame frame;
  for (const auto& [step, at] : points) frame.include(step, at->values.front(), at->values.back());
  frame.finish();
  constexpr std::size_t kMiddle = kShares.size() / 2;
  std::string text;
  for (std::size_t band = 0; band < kMiddle; ++band) {
    text += "<path class=\"band c0\" d=\"";
    for (std::size_t i = 0; i < points.size(); ++i)
      text += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", frame.x(points[i].first),
                          frame.y(points[i].second->values[kShares.size() - 1 - band]));
    for (std::size_t i = points.size(); i-- > 0;)
      text +=
          fmt::format("L{:.1f} {:.1f}", frame.x(points[i].first), frame.y(points[i].second->values[band]));
    text += "Z\"/>";
  }
  text += "<path class=\"curve c0\" d=\"";
  for (std::size_t i = 0; i < points.size(); ++i)
    text += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", frame.x(points[i].first),
                        frame.y(points[i].second->values[kMiddle]));
  return fmt::format(
      "<figure class=\"chart\"><figcaption>{}</figcaption><div class=\"plot\">{}</div></figure>\n",
      escaped(series.tag), frame.svg(series.tag, text + "\"/>"));
}

std::string histograms_html(const std::vector<HistogramSeries>& all) {
  if (all.empty())
    return missing(
        "No histograms were recorded: summary.weights, gradients, updates and activations record them.");
  std::map<std::string, std::vector<const HistogramSeries*>> groups;
  for (std::size_t i = 0; i < std::min(all.size(), kMostCharts); ++i)
    groups[all[i].tag.substr(0, all[i].tag.find('/'))].push_back(&all[i]);
  std::string text =
      "<p><small>Bands hold 38 %, 68 %, 87 % and all of the numbers at a step; the line is the "
      "median.</small></p>\n";
  if (all.size() > kMostCharts)
    text += fmt::format("<p><small>{} of {} histograms; TensorBoard shows all.</small></p>\n", kMostCharts,
                        all.size());
  for (const auto& [name, group] : groups) {
    text += fmt::format("<details{}><summary>{} ({})</summary>\n<div class=\"charts\">\n",
                        group.size() <= kOpenCharts ? " open" : "", escaped(name), group.size());
    for (const HistogramSeries* const series : group) text += chart_of(*series);
    text += "</div></details>\n";
  }
  return text;
}

}  // namespace

Section summaries_section(const ReportRun& run) {
  Section section{"summaries", "Histograms and pictures", {}};
  const RecordedSummaries found = read_summaries(run.dir);
  for (const std::string& problem : found.problems) section.body += missing(problem);
  section.body += histograms_html(found.histograms) + media_html(found);
  return section;
}

}  // namespace lockstep::report
