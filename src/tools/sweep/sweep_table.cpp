// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/plain_nan.h"
#include "core/shown_text.h"
#include "io/json.h"
#include "session/number_text.h"

namespace lockstep {

namespace {

constexpr std::size_t kWidestError = 60;

/// Line breaks, with the blanks around them, become one blank.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == '\n' || c == ' ';
    if (!blank)
      line.push_back(c);
    else if (!line.empty() && line.back() != ' ')
      line.push_back(' ');
  }
  return line;
}

/// RFC 4180.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted(1, '"');
  for (const char c : text) {
    if (c == '"') quoted.push_back(c);
    quoted.push_back(c);
  }
  quoted.push_back('"');
  return quoted;
}

std::string value_text(const SweepRow& row) {
  return row.last ? fmt::format("{}", plain_nan(row.last->value)) : "";
}

}  // namespace

SweepTable sweep_table_of(const SweepPlan& plan, const std::vector<TrialRecord>& records) {
  SweepTable table{.metric = plan.options.metric,
                   .keys = keys_of(plan.trials),
                   .larger_is_better = plan.options.larger_is_better};
  const bool larger = plan.options.larger_is_better;
  // The rung that is under way: the first in which a trial has neither a result nor an error.
  std::size_t present = 0;
  std::vector<std::size_t> members;
  for (; present < plan.rungs.size(); ++present) {
    members = members_of(records, plan.rungs, present, larger);
    if (std::ranges::any_of(members, [&](std::size_t trial) {
          return records[trial].error.empty() && records[trial].results.size() <= present;
        }))
      break;
  }
  table.finished = present == plan.rungs.size();
  if (table.finished) table.best = best_trial(records, larger);
  for (std::size_t trial = 0; trial < records.size(); ++trial) {
    const TrialRecord& record = records[trial];
    SweepRow row{.trial = trial, .rungs = record.results.size(), .error = record.error};
    for (const std::string& key : table.keys) {
      const auto found = std::ranges::find(plan.trials[trial], key, &KeySetting::key);
      row.values.push_back(found == plan.trials[trial].end() ? "" : found->value);
    }
    if (!record.results.empty()) row.last = record.results.back();
    row.state = !record.error.empty()                                                  ? "failed"
                : table.best == trial                                                  ? "best"
                : record.results.size() == plan.rungs.size()                           ? "finished"
                : table.finished || std::ranges::find(members, trial) == members.end() ? "stopped"
                                                                                       : "waiting";
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<const SweepRow*> ranked(const SweepTable& table) {
  std::vector<const SweepRow*> rows;
  for (const SweepRow& row : table.rows) rows.push_back(&row);
  std::ranges::stable_sort(rows, [&](const SweepRow* a, const SweepRow* b) {
    if (!a->last || !b->last) return a->last && !b->last;
    if (a->rungs != b->rungs) return a->rungs > b->rungs;
    return table.larger_is_better ? a->last->value > b->last->value : a->last->value < b->last->value;
  });
  return rows;
}

std::string table_text(const SweepTable& table) {
  std::vector<std::vector<std::string>> lines{{"trial"}};
  lines[0].insert(lines[0].end(), table.keys.begin(), table.keys.end());
  lines[0].insert(lines[0].end(), {"step", table.metric, "state"});
  for (const SweepRow* const ranked_row : ranked(table)) {
    const SweepRow& row = *ranked_row;
    std::vector<std::string>& line = lines.emplace_back();
    line.push_back(std::to_string(row.trial));
    for (const std::string& value : row.values) line.push_back(one_line(value));
    line.push_back(row.last ? std::to_string(row.last->step) : "-");
    line.push_back(row.last ? number_text(row.last->value) : "-");
    std::string error = one_line(row.error);
    if (error.size() > kWidestError) error = shown_format("{}...", error.substr(0, kWidestError - 3));
    line.push_back(error.empty() ? row.state : shown_format("{}: {}", row.state, error));
  }
  for (std::vector<std::string>& line : lines)
    for (std::string& cell : line) cell = shown_text(cell);
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      std::size_t width = 0;
      for (const std::vector<std::string>& other : lines) width = std::max(width, other[i].size());
      if (i + 1 == line.size())
        text += line[i];
      else
        text += shown_format("{:>{}}  ", line[i], width);
    }
    text += '\n';
  }
  return text;
}

std::string table_csv(const SweepTable& table) {
  std::string text = "trial";
  for (const std::string& key : table.keys) text += fmt::format(",{}", csv_field(key));
  text += fmt::format(",rungs,step,{},state,digest,error\n", csv_field(table.metric));
  for (const SweepRow& row : table.rows) {
    text += std::to_string(row.trial);
    for (const std::string& value : row.values) text += fmt::format(",{}", csv_field(value));
    text += fmt::format(",{},{},{},{},{},{}\n", row.rungs, row.last ? std::to_string(row.last->step) : "",
                        value_text(row), row.state, row.last ? row.last->digest : "",
                        csv_field(one_line(row.error)));
  }
  return text;
}

std::string table_json(const SweepPlan& plan, const SweepTable& table,
                       const std::vector<TrialRecord>& records) {
  Json json;
  json["format"] = 1;
  json["method"] = name_of(plan.options.method);
  json["metric"] = table.metric;
  json["mode"] = plan.options.larger_is_better ? "max" : "min";
  json["finished"] = table.finished;
  json["best"] = table.best ? Json(*table.best) : Json();
  json["unit"] = plan.unit();
  for (const Rung& rung : plan.rungs)
    json["rungs"].push_back({{"end", rung.end ? Json(*rung.end) : Json()}, {"trials", rung.trials}});
  json["trials"] = Json::array();
  for (const SweepRow& row : table.rows) {
    Json one;
    one["trial"] = row.trial;
    one["state"] = row.state;
    one["settings"] = Json::object();
    for (const KeySetting& setting : plan.trials[row.trial]) one["settings"][setting.key] = setting.value;
    one["results"] = Json::array();
    for (const RungResult& result : records[row.trial].results)
      one["results"].push_back({{"step", result.step}, {"value", result.value}, {"digest", result.digest}});
    if (!row.error.empty()) one["error"] = row.error;
    json["trials"].push_back(std::move(one));
  }
  return json.dump(2) + "\n";
}

}  // namespace lockstep
