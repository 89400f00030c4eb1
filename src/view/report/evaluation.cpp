// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "view/report/predictions.h"
#include "view/report/score_pictures.h"
#include "view/report/sections.h"

namespace lockstep::report {

namespace {

constexpr std::size_t kMostRows = 60;

/// The evaluations, the last ones if there are many, with the best value of each metric.
std::string evaluations_html(const ReportRun& run) {
  std::vector<const MetricSeries*> series;
  std::vector<std::int64_t> steps;
  for (const MetricSeries& one : run.records.series) {
    if (one.split != "eval") continue;
    series.push_back(&one);
    steps.insert(steps.end(), one.steps.begin(), one.steps.end());
  }
  if (series.empty()) return missing("The run has recorded no evaluation.");
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  const std::size_t first = steps.size() > kMostRows ? steps.size() - kMostRows : 0;
  Table table{.head = {"step"}, .rows = {}};
  std::vector<BestValue> best;
  for (const MetricSeries* one : series) {
    table.head.push_back(one->tag);
    best.push_back(best_value(*one, run.direction(one->tag)));
  }
  const auto row_of = [&](std::int64_t step) {
    std::vector<Cell> row{count_cell(step)};
    for (std::size_t i = 0; i < series.size(); ++i) {
      const auto at = std::ranges::lower_bound(series[i]->steps, step);
      Cell cell =
          at != series[i]->steps.end() && *at == step
              ? number_cell(series[i]->values[static_cast<std::size_t>(at - series[i]->steps.begin())])
              : Cell{"", true};
      if (best[i].exists && best[i].step == step) cell.html = fmt::format("<mark>{}</mark>", cell.html);
      row.push_back(std::move(cell));
    }
    return row;
  };
  for (std::size_t i = steps.size(); i-- > first;) table.rows.push_back(row_of(steps[i]));
  std::string text =
      "<p>The newest first; the best value of each is marked, where the metric says what is better.";
  std::vector<std::int64_t> others;
  for (const BestValue& one : best)
    if (one.exists && one.step < steps[first] && std::ranges::find(others, one.step) == others.end())
      others.push_back(one.step);
  for (const std::int64_t step : others) table.rows.push_back(row_of(step));
  if (first > 0)
    text += fmt::format(" The last {} of {} evaluations, and those with a best value.", kMostRows,
                        grouped(static_cast<std::int64_t>(steps.size())));
  return text + "</p>\n<div class=\"tall\">" + html_of(table) + "</div>\n";
}

/// Lists of the last evaluation, a column each, a row per class; matrices are left out.
std::string per_class_html(const ReportRun& run) {
  std::vector<const MetricNumbers*> lists;
  std::size_t rows = 0;
  for (const MetricNumbers& list : run.records.lists) {
    if (list.columns != 0 || list.values.size() > 2000) continue;
    lists.push_back(&list);
    rows = std::max(rows, list.values.size());
  }
  if (lists.empty()) return {};
  Table table{.head = {"class or label"}, .rows = {}};
  for (const MetricNumbers* list : lists) table.head.push_back(list->name);
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<Cell> row{
        {escaped(i < run.class_names.size() ? run.class_names[i] : std::to_string(i)), false, "wrap"}};
    for (const MetricNumbers* list : lists)
      row.push_back(i < list->values.size() ? number_cell(list->values[i]) : Cell{"", true});
    table.rows.push_back(std::move(row));
  }
  return fmt::format("<h3>Values per class, step {}</h3>\n<div class=\"tall\">", grouped(lists[0]->step)) +
         html_of(table) + "</div>\n";
}

}  // namespace

Section evaluation_section(const ReportRun& run, const Predictions& predictions) {
  Section section{"evaluation", "Evaluation", evaluations_html(run)};
  section.body += per_class_html(run);
  int number = 0;
  bool has_matrix = false;
  for (const MetricNumbers& list : run.records.lists) {
    const bool square = list.columns > 1 && std::ssize(list.values) == list.columns * list.columns;
    if (!square || !list.name.ends_with("/matrix")) continue;
    has_matrix = true;
    section.body += fmt::format("<h3>{}, step {}</h3>\n", escaped(list.name), grouped(list.step)) +
                    confusion_html(list.values, list.columns, run.class_names, fmt::format("cm{}", number++));
  }
  for (const HeadPredictions& head : predictions.heads) {
    const std::string of =
        fmt::format("{}{}step {}{}", escaped(head.name), head.name.empty() ? "" : ", ",
                    grouped(predictions.step), predictions.averaged ? ", moving averages" : "");
    if (!head.confusion.empty() && !has_matrix)
      section.body +=
          fmt::format("<h3>Confusion matrix, {}</h3>\n", of) +
          confusion_html(head.confusion, head.classes, head.class_names, fmt::format("cm{}", number++));
    if (!head.curves.empty())
      section.body +=
          fmt::format("<h3>ROC and precision-recall curves, {}</h3>\n", of) + score_pictures(head.curves);
    if (!head.parity.empty())
      section.body += fmt::format("<h3>Predicted over true values, {}</h3>\n", of) + parity_html(head.parity);
  }
  if (!predictions.problem.empty())
    section.body += missing(
        "ROC and precision-recall curves, predicted over true values, and a confusion matrix that no metric "
        "has recorded: " +
        predictions.problem);
  return section;
}

}  // namespace lockstep::report
