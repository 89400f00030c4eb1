// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/compare_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/shown_text.h"
#include "session/number_text.h"
#include "session/progress.h"
#include "view/report/config_text.h"
#include "view/report/report_page.h"
#include "view/report/sections.h"

namespace lockstep::report {

namespace {

constexpr std::size_t kColors = 8;

double median_rate(const ReportRun& run) {
  const MetricSeries* const rate = run.records.find("train", "samples_per_second");
  if (rate == nullptr) return std::nan("");
  std::vector<double> values;
  std::ranges::copy_if(rate->values, std::back_inserter(values),
                       [](double value) { return std::isfinite(value); });
  if (values.empty()) return std::nan("");
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

std::string rate_text(double rate) { return std::isfinite(rate) ? format_rate(rate) : "–"; }

std::string run_key(const ReportRun& run, std::size_t i) {
  return fmt::format("<span class=\"key c{}\">{}</span>", i % kColors, escaped(run.name));
}

/// The keys that differ, with the value of each run; empty where a run has none.
struct Differences {
  std::vector<std::string> paths;
  std::vector<std::vector<std::string>> values;  ///< by path and run
  std::string problem;
};

Differences config_table(const Comparison& comparison) {
  Differences table;
  try {
    std::vector<std::vector<ConfigValue>> all;
    for (const ReportRun& run : comparison.runs)
      all.push_back(values_of_config(run.config_text, run.config_path));
    for (std::size_t i = 1; i < all.size(); ++i)
      for (const ConfigDifference& difference : config_differences(all[0], all[i]))
        if (std::ranges::find(table.paths, difference.path) == table.paths.end())
          table.paths.push_back(difference.path);
    for (const std::string& path : table.paths) {
      std::vector<std::string>& row = table.values.emplace_back(all.size());
      // An option of both data sets has one row: its value is that of the training set.
      std::string of_train = path;
      if (const std::size_t dot = path.find('.'); dot != std::string::npos) of_train.insert(dot, ".train");
      for (std::size_t i = 0; i < all.size(); ++i)
        for (const ConfigValue& value : all[i])
          if (value.path == path || value.path == of_train)
            row[i] = value.item.empty() ? value.value : value.item;
    }
  } catch (const Error& error) {
    table.problem = fmt::format("The configurations cannot be compared: {}", error.what());
  }
  return table;
}

Section runs_section(const Comparison& comparison) {
  Table table{.head = {"run", "state", "steps", "ranks", "jobs", "time in jobs", "samples/s, median",
                       "steps/s", "effective"},
              .rows = {}};
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const ReportRun& run = comparison.runs[i];
    const RunProgress& progress = run.overview.progress;
    table.rows.push_back(
        {{run_key(run, i)},
         {state_badge(progress)},
         count_cell(std::max(progress.step, run.records.last_step)),
         count_cell(run.last_job().ranks),
         count_cell(progress.jobs),
         {format_duration(progress.job_seconds), true},
         {rate_text(median_rate(run)), true},
         {progress.steps_per_second > 0 ? format_rate(progress.steps_per_second) : "–", true},
         {progress.job_seconds > 0 ? fmt::format("{:.1f} %", 100 * progress.effective_share()) : "–", true}});
  }
  return {"runs", "Runs and speed", html_of(table)};
}

/// Tags of evaluations, then those of training without a twin there.
std::vector<std::pair<std::string, std::string>> final_metrics(const Comparison& comparison) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const char* split : {"eval", "train"})
    for (const ReportRun& run : comparison.runs)
      for (const MetricSeries& series : run.records.series)
        if (series.split == split && !is_clock_value(series.tag) &&
            (series.split == "eval" || series.tag == "loss" || series.tag == "accuracy") &&
            std::ranges::find(found, std::pair(series.split, series.tag)) == found.end())
          found.emplace_back(series.split, series.tag);
  return found;
}

/// By the first run whose configuration knows the metric.
Direction direction_in(const Comparison& comparison, std::string_view tag) {
  for (const ReportRun& run : comparison.runs)
    if (const Direction direction = run.direction(tag); direction != Direction::none) return direction;
  return Direction::none;
}

Section metrics_section(const Comparison& comparison) {
  Table table{.head = {"metric", ""}, .rows = {}};
  for (const ReportRun& run : comparison.runs) table.head.push_back(run.name);
  for (const auto& metric : final_metrics(comparison)) {
    const std::string &split = metric.first, &tag = metric.second;
    std::vector<BestValue> values;
    const Direction direction = direction_in(comparison, tag);
    for (const ReportRun& run : comparison.runs) {
      const MetricSeries* const series = run.records.find(split, tag);
      values.push_back(series == nullptr ? BestValue{.last = std::nan("")} : best_value(*series, direction));
    }
    const auto row = [&](const char* what, double BestValue::*member) {
      std::vector<Cell> cells{
          text_cell(fmt::format("{} {}", split == "eval" ? "evaluation" : "training", tag)), text_cell(what)};
      double best = std::nan("");
      for (const BestValue& one : values)
        if (one.exists && !(direction == Direction::min ? one.*member >= best : one.*member <= best))
          best = one.*member;
      for (const BestValue& one : values) {
        Cell cell = number_cell(one.exists || member == &BestValue::last ? one.*member : std::nan(""));
        if (one.exists && one.*member == best && std::ranges::count(values, true, &BestValue::exists) > 1)
          cell.html = fmt::format("<mark>{}</mark>", cell.html);
        cells.push_back(std::move(cell));
      }
      table.rows.push_back(std::move(cells));
    };
    if (split == "eval" && direction != Direction::none) row("best", &BestValue::value);
    row("last", &BestValue::last);
  }
  return {"metrics", "Metrics",
          table.rows.empty() ? missing("No run has recorded a metric.") : html_of(table)};
}

Section differences_section(const Comparison& comparison) {
  const Differences found = config_table(comparison);
  Section section{"configuration", "Configuration", {}};
  if (!found.problem.empty()) {
    section.body = missing(found.problem);
    return section;
  }
  if (found.paths.empty()) {
    section.body = "<p>All values are the same.</p>\n";
    return section;
  }
  Table table{.head = {"key"}, .rows = {}};
  for (const ReportRun& run : comparison.runs) table.head.push_back(run.name);
  for (std::size_t i = 0; i < found.paths.size(); ++i) {
    std::vector<Cell> row{{fmt::format("<code>{}</code>", escaped(found.paths[i]))}};
    for (const std::string& value : found.values[i])
      row.push_back({value.empty() ? "<small>–</small>" : fmt::format("<code>{}</code>", escaped(value)),
                     false, "wrap"});
    table.rows.push_back(std::move(row));
  }
  section.body = "<p>Keys whose values differ, with all defaults filled in.</p>\n" + html_of(table);
  return section;
}

Section parting_section(const Comparison& comparison) {
  Section section{"equality", "Where they part", {}};
  for (std::size_t i = 0; i < comparison.partings.size(); ++i) {
    const Parting& parting = comparison.partings[i];
    section.body += fmt::format("<h3>{} and {} <span class=\"badge {}\">{}</span></h3>\n<pre>{}</pre>\n",
                                escaped(comparison.runs[0].name), escaped(comparison.runs[i + 1].name),
                                parting.parts()              ? "bad"
                                : parting.nothing_compared() ? "calm"
                                                             : "good",
                                parting.parts()              ? "different"
                                : parting.nothing_compared() ? "nothing to compare"
                                                             : "equal",
                                escaped(parting_text(parting)));
  }
  return section;
}

}  // namespace

Comparison compare_runs(const std::vector<std::string>& dirs, double now) {
  Comparison comparison;
  for (const std::string& dir : dirs) comparison.runs.push_back(read_report_run(dir, now));
  std::vector<std::string> names;
  for (const ReportRun& run : comparison.runs) names.push_back(run.name);
  for (ReportRun& run : comparison.runs)
    if (std::ranges::count(names, run.name) > 1) run.name = run.dir;
  for (std::size_t i = 1; i < comparison.runs.size(); ++i)
    comparison.partings.push_back(find_parting(comparison.runs[0], comparison.runs[i]));
  return comparison;
}

Page compare_page(const Comparison& comparison) {
  std::vector<CurveRun> runs;
  std::vector<std::string> names;
  for (const ReportRun& run : comparison.runs) {
    runs.push_back({run.name, &run.records, step_clock(run.overview.jobs)});
    names.push_back(run.name);
  }
  const std::vector<CurveChart> charts = charts_of(runs);
  Page page{.title = fmt::format("{}", fmt::join(names, " · ")),
            .badge = {},
            .subtitle = {},
            .sections = {},
            .data = charts_json(charts, runs)};
  page.subtitle = fmt::format("{} runs compared · {}", runs.size(), clock_text(comparison.runs[0].now));
  page.sections = {runs_section(comparison), metrics_section(comparison), curves_section(charts, runs),
                   differences_section(comparison), parting_section(comparison)};
  return page;
}

std::string compare_text(const Comparison& comparison) {
  std::string text;
  std::size_t width = 4;
  for (const ReportRun& run : comparison.runs) width = std::max(width, shown_text(run.name).size() + 2);
  text += shown_format("{:<{}}{:<10}{:>10}{:>7}{:>14}{:>11}\n", "run", width, "state", "step", "ranks",
                       "samples/s", "time");
  for (const ReportRun& run : comparison.runs) {
    const double rate = median_rate(run);
    text += shown_format(
        "{:<{}}{:<10}{:>10}{:>7}{:>14}{:>11}\n", run.name, width, name_of(run.overview.progress.state),
        std::max(run.overview.progress.step, run.records.last_step), run.last_job().ranks,
        std::isfinite(rate) ? format_rate(rate) : "?", format_duration(run.overview.progress.job_seconds));
  }
  for (const auto& [split, tag] : final_metrics(comparison)) {
    text += shown_format("\n{} {}\n", split, tag);
    for (const ReportRun& run : comparison.runs) {
      const MetricSeries* const series = run.records.find(split, tag);
      if (series == nullptr) continue;
      const BestValue best = best_value(*series, direction_in(comparison, tag));
      text += shown_format("  {:<{}}last {} at step {}{}\n", run.name, width, number_text(best.last),
                           best.last_step,
                           best.exists && split == "eval"
                               ? shown_format(", best {} at step {}", number_text(best.value), best.step)
                               : "");
    }
  }
  const Differences found = config_table(comparison);
  if (!found.problem.empty()) text += shown_format("\n{}\n", found.problem);
  if (!found.paths.empty()) text += "\nconfiguration\n";
  for (std::size_t i = 0; i < found.paths.size(); ++i) {
    text += shown_format("  {}\n", found.paths[i]);
    for (std::size_t k = 0; k < comparison.runs.size(); ++k) {
      std::string value = found.values[i][k].empty() ? "-" : found.values[i][k];
      for (std::size_t at = value.find('\n'); at != std::string::npos; at = value.find('\n', at + 1))
        value[at] = ' ';
      text += shown_format("    {:<{}}{}\n", comparison.runs[k].name, width, value);
    }
  }
  for (std::size_t i = 0; i < comparison.partings.size(); ++i)
    text += shown_format("\n{} and {}: {}\n", comparison.runs[0].name, comparison.runs[i + 1].name,
                         comparison.partings[i].parts()              ? "different"
                         : comparison.partings[i].nothing_compared() ? "nothing to compare"
                                                                     : "equal") +
            parting_text(comparison.partings[i]);
  return text;
}

}  // namespace lockstep::report
