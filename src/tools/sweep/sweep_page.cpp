// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/sweep_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "session/number_text.h"
#include "view/report/parallel_coordinates.h"

namespace lockstep::report {

namespace {

std::string settings_text(const SweepTable& table, const SweepRow& row) {
  std::string text = fmt::format("trial {}", row.trial);
  for (std::size_t i = 0; i < table.keys.size(); ++i)
    if (!row.values[i].empty()) text += fmt::format("\n{}: {}", table.keys[i], row.values[i]);
  return text +
         fmt::format("\n{}: {} at step {}", table.metric, number_text(row.last->value), row.last->step);
}

Section picture_section(const SweepPlan& plan, const SweepTable& table) {
  std::vector<const SweepRow*> rows = ranked(table);
  std::erase_if(rows, [](const SweepRow* row) { return !row->last; });
  if (rows.empty()) return {"trials", "Trials", missing("No trial has a result yet.")};
  std::vector<CoordinateAxis> axes;
  for (std::size_t i = 0; i < table.keys.size(); ++i) {
    CoordinateAxis& axis = axes.emplace_back(CoordinateAxis{.name = table.keys[i]});
    for (const SweepRow* row : rows) axis.values.push_back(row->values[i]);
  }
  CoordinateAxis& result = axes.emplace_back(CoordinateAxis{
      .name = table.metric, .is_result = true, .smaller_is_better = !plan.options.larger_is_better});
  std::vector<CoordinateLine> lines;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    result.values.push_back(fmt::format("{}", rows[i]->last->value));
    const double worse = rows.size() > 1 ? static_cast<double>(i) / static_cast<double>(rows.size() - 1) : 0;
    lines.push_back({.label = settings_text(table, *rows[i]),
                     .goodness = 1 - worse,
                     .is_best = table.best == rows[i]->trial,
                     .is_dashed = rows[i]->rungs < plan.rungs.size()});
  }
  std::string note = "<p>A line is a trial, from its settings to its result: the stronger, the better.";
  if (table.best) note += " The best one is <span class=\"key c1\">orange</span>.";
  if (plan.rungs.size() > 1)
    note += " A dashed one was stopped in an earlier rung, and has the result of that rung.";
  return {"trials", "Trials",
          fmt::format("{} Its values appear under the pointer.</p>\n<div class=\"scroll\">{}</div>\n", note,
                      parallel_coordinates(axes, lines))};
}

Section table_section(const SweepTable& table) {
  Table all{.head = {"trial"}, .rows = {}};
  all.head.insert(all.head.end(), table.keys.begin(), table.keys.end());
  all.head.insert(all.head.end(), {"step", table.metric, "state"});
  for (const SweepRow* row : ranked(table)) {
    std::vector<Cell>& cells = all.rows.emplace_back();
    cells.push_back(count_cell(static_cast<std::int64_t>(row->trial)));
    for (const std::string& value : row->values)
      cells.push_back({value.empty() ? "<small>–</small>" : fmt::format("<code>{}</code>", escaped(value))});
    cells.push_back(row->last ? count_cell(row->last->step) : Cell{"–", true});
    cells.push_back(row->last ? number_cell(row->last->value) : Cell{"–", true});
    cells.push_back(
        row->error.empty()
            ? text_cell(row->state)
            : Cell{fmt::format("<span class=\"bad\">failed</span> {}", escaped(row->error)), false, "wrap"});
    all.row_classes.emplace_back(row->state == "best" ? "best" : "");
  }
  return {"table", "Table", html_of(all)};
}

Section rungs_section(const SweepPlan& plan, const std::vector<TrialRecord>& records) {
  Table table{.head = {"rung", "ends at", "trials", "with a result"}, .rows = {}};
  for (std::size_t i = 0; i < plan.rungs.size(); ++i)
    table.rows.push_back(
        {count_cell(static_cast<std::int64_t>(i + 1)),
         text_cell(plan.rungs[i].end ? plan.end_text(plan.rungs[i]) : "the end of the training"),
         count_cell(plan.rungs[i].trials),
         count_cell(std::ranges::count_if(
             records, [&](const TrialRecord& record) { return record.results.size() > i; }))});
  return {"rungs", "Rungs", html_of(table)};
}

}  // namespace

Page sweep_page(const SweepPlan& plan, const SweepTable& table, const std::vector<TrialRecord>& records) {
  Page page{.title = "Sweep",
            .badge = fmt::format("<span class=\"badge {}\">{}</span>", table.finished ? "good" : "live",
                                 table.finished ? "finished" : "to be continued"),
            .subtitle = fmt::format("{} trials ({}), compared by {} ({})", plan.trials.size(),
                                    name_of(plan.options.method), escaped(table.metric),
                                    plan.options.larger_is_better ? "larger is better" : "smaller is better"),
            .sections = {picture_section(plan, table), table_section(table)},
            .data = "{}"};
  if (plan.rungs.size() > 1) page.sections.push_back(rungs_section(plan, records));
  return page;
}

}  // namespace lockstep::report
