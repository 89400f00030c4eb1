// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/plot/metric_plot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "core/error.h"
#include "core/name_list.h"
#include "session/number_text.h"
#include "session/run_names.h"
#include "view/plot/point_curve.h"
#include "view/plot/text_plot.h"

namespace lockstep {

namespace {

constexpr int kFewestRows = 3, kMostRows = 40;
// The curves of training and of evaluations together.
constexpr const char* kUsual[] = {"re:(eval/)?loss", "re:(eval/)?accuracy"};

/// The name of its folder; the whole path where two have the same.
std::vector<std::string> names_of(const std::vector<std::string>& run_dirs) {
  std::vector<std::string> names;
  for (const std::string& run_dir : run_dirs) {
    std::filesystem::path path = std::filesystem::path(run_dir).lexically_normal();
    if (path.filename().empty()) path = path.parent_path();
    names.push_back(path.filename().string());
  }
  const std::vector<std::string> shorts = names;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::ranges::count(shorts, shorts[i]) > 1) names[i] = run_dirs[i];
  return names;
}

std::string name_of(PlotX x) {
  switch (x) {
    case PlotX::step:
      return "step";
    case PlotX::epoch:
      return "epoch";
    case PlotX::hours:
      return "hours";
  }
  return "";
}

}  // namespace

MetricPlots::MetricPlots(const std::vector<std::string>& run_dirs, MetricPlotOptions options)
    : options_(std::move(options)), chosen_(!options_.tags.empty()) {
  for (const std::string& tag : options_.tags) patterns_.emplace_back(tag);
  if (!chosen_)
    for (const char* tag : kUsual) patterns_.emplace_back(tag);
  const std::vector<std::string> names = names_of(run_dirs);
  for (std::size_t i = 0; i < run_dirs.size(); ++i) {
    runs_.push_back({names[i], RunCurves(run_dirs[i])});
    runs_.back().curves.update();
  }
}

bool MetricPlots::matches(const NamePattern& pattern) const {
  for (const Run& run : runs_)
    for (const auto& [tag, curve] : run.curves.curves())
      if (pattern.matches(tag)) return true;
  return false;
}

std::vector<std::string> MetricPlots::all_tags() const {
  std::set<std::string> tags;
  for (const Run& run : runs_)
    for (const auto& [tag, curve] : run.curves.curves()) tags.insert(tag);
  return {tags.begin(), tags.end()};
}

void MetricPlots::check() const {
  const std::vector<std::string> tags = all_tags();
  if (tags.empty())
    throw Error(ErrorKind::config, "there are no records yet",
                runs_.front().curves.run_dir() + "/metrics.jsonl",
                "A run writes them after every summary.every_steps steps, unless summary.metrics is false.");
  if (!chosen_ && !matches(patterns_.front()))
    throw Error(ErrorKind::usage, "there is no loss among the tags", "",
                fmt::format("Choose with --tag: {}.", name_list(tags)));
  for (const NamePattern& pattern : patterns_) {
    if (!chosen_ || matches(pattern)) continue;
    const std::string advice = advice_for_pattern(pattern.text());
    throw Error(ErrorKind::usage, fmt::format("no tag matches '{}'", pattern.text()), "",
                fmt::format("{}{}There are: {}.", advice, advice.empty() ? "" : " ", name_list(tags)));
  }
}

bool MetricPlots::wants(const std::string& tag) const {
  return std::ranges::any_of(patterns_, [&](const NamePattern& pattern) { return pattern.matches(tag); });
}

std::vector<MetricPlots::Part> MetricPlots::parts(const NamePattern& pattern) {
  std::vector<Part> parts;
  for (Run& run : runs_)
    for (const auto& [tag, curve] : run.curves.curves())
      if (pattern.matches(tag)) parts.push_back({&run, tag});
  // Training before evaluations.
  std::ranges::stable_sort(parts, {}, [](const Part& part) { return part.tag.starts_with("eval/"); });
  return parts;
}

double MetricPlots::x_of(const Run& run, std::int64_t step) const {
  const auto x = static_cast<double>(step);
  if (options_.x == PlotX::hours) return run.hours->at(step);
  if (options_.x == PlotX::epoch) return x / std::max(run.curves.steps_per_epoch(), 1e-9);
  return x;
}

std::vector<std::string> MetricPlots::chart(const NamePattern& pattern, const TextStyle& style, int rows) {
  const std::vector<Part> all = parts(pattern);
  const bool one_tag =
      std::ranges::all_of(all, [&](const Part& part) { return part.tag == all.front().tag; });
  TextPlot plot{
      .title = one_tag ? all.front().tag : pattern.text(), .x_name = name_of(options_.x), .rows = rows};
  if (!one_tag && !chosen_) plot.title = without_split(all.front().tag);
  double least = std::numeric_limits<double>::infinity(), most = -least;
  std::int64_t not_positive = 0;
  plot.x.high = 0;
  for (const Part& part : all) {
    const RecordedCurve& curve = part.run->curves.curves().find(part.tag)->second;
    std::vector<CurvePoint> points;
    for (std::size_t i = 0; i < curve.steps.size(); ++i)
      points.push_back({x_of(*part.run, curve.steps[i]), curve.values[i]});
    std::string last = "no finite value";  // as recorded
    for (const CurvePoint& point : points)
      if (std::isfinite(point.y)) last = number_text(point.y);
    smooth(points, options_.smooth);
    for (CurvePoint& point : points) {
      if (options_.log && std::isfinite(point.y)) {
        not_positive += point.y <= 0 ? 1 : 0;
        point.y = point.y > 0 ? std::log10(point.y) : std::numeric_limits<double>::quiet_NaN();
      }
      plot.x.high = std::max(plot.x.high, point.x);
      if (!std::isfinite(point.y)) continue;
      least = std::min(least, point.y);
      most = std::max(most, point.y);
    }
    std::string name = one_tag ? part.run->name : part.tag;
    if (!one_tag && runs_.size() > 1) name = part.run->name + " " + name;
    if (all.size() == 1)
      plot.title += fmt::format(": {} at step {}", last, curve.steps.back());
    else
      name += " " + last;
    plot.curves.push_back({name, [points = std::move(points), &plot](int count) {
                             return point_columns(points, plot.x.low, plot.x.high, count);
                           }});
  }
  if (!(plot.x.high > 0)) plot.x.high = 1;
  if (!(least <= most)) least = most = 0;
  const int wanted = std::clamp(rows / 3, 2, 8);
  if (options_.log) {
    plot.values = log_axis(least, most, wanted);
    plot.value_text = [](double value) { return tick_text(std::pow(10, value)); };
  } else {
    const ChartColumn range{least, least, most, most};
    plot.values = value_axis({&range, 1}, wanted);
  }
  plot.x.ticks =
      round_ticks(0, plot.x.high, std::max(2, style.width / 12), options_.x == PlotX::step ? 1 : 1e-6);
  if (options_.x == PlotX::step) plot.x_text = [](double step) { return fmt::format("{:.0f}", step); };
  if (options_.smooth > 0) plot.x_name += fmt::format("; smoothed by {}", options_.smooth);
  if (not_positive > 0) plot.x_name += fmt::format("; {} values are not positive", not_positive);
  return text_plot(plot, style);
}

std::vector<std::string> MetricPlots::draw(const TextStyle& style, int rows) {
  if (options_.x == PlotX::hours)
    for (Run& run : runs_) run.hours.emplace(run.curves.run_dir());
  std::vector<std::string> lines;
  for (const NamePattern& pattern : patterns_) {
    if (!matches(pattern)) continue;
    if (!lines.empty()) lines.emplace_back();
    std::ranges::move(chart(pattern, style, rows), std::back_inserter(lines));
  }
  return lines;
}

std::vector<std::string> MetricPlots::draw_fitted(const TextStyle& style, int lines,
                                                  std::optional<int> rows) {
  const auto charts = static_cast<int>(
      std::ranges::count_if(patterns_, [&](const NamePattern& pattern) { return matches(pattern); }));
  if (charts == 0) return {};
  // With one row it is seen what legends and frames take.
  const int around = static_cast<int>(draw(style, 1).size()) - charts;
  const int fitting = std::clamp((lines - around) / charts, kFewestRows, kMostRows);
  std::vector<std::string> drawn = draw(style, rows.value_or(fitting));
  if (static_cast<int>(drawn.size()) <= lines) return drawn;
  drawn.resize(static_cast<std::size_t>(std::max(lines - 1, 0)));
  drawn.push_back(TextLine(style).add("(more than fits: choose fewer tags, or a higher window)").text());
  return drawn;
}

}  // namespace lockstep
