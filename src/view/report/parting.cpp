// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/parting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/shown_text.h"
#include "io/atomic_file.h"
#include "io/checkpoint_tools.h"
#include "session/step_record.h"
#include "view/run/checkpoint_rows.h"

namespace lockstep::report {

namespace {

/// Equal numbers; NaN (null) equals NaN.
bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void compare_series(const MetricSeries& a, const MetricSeries& b, Parting::Records& records,
                    std::vector<std::int64_t>& steps) {
  for (std::size_t i = 0, k = 0; i < a.steps.size() && k < b.steps.size();) {
    if (a.steps[i] != b.steps[k]) {
      ++(a.steps[i] < b.steps[k] ? i : k);
      continue;
    }
    ++records.values;
    steps.push_back(a.steps[i]);
    if (!same(a.values[i], b.values[k])) {
      ++records.different;
      if (!records.step || a.steps[i] < *records.step) {
        records.step = a.steps[i];
        records.split = a.split;
        records.tag = a.tag;
        records.first = a.values[i];
        records.second = b.values[k];
      }
    }
    ++i;
    ++k;
  }
}

void compare_records(const ReportRun& first, const ReportRun& second, Parting& parting) {
  std::vector<std::int64_t> steps;
  std::vector<std::string> only;
  for (const MetricSeries& series : first.records.series) {
    if (is_clock_value(series.tag)) continue;
    if (const MetricSeries* other = second.records.find(series.split, series.tag))
      compare_series(series, *other, parting.records, steps);
    else
      only.push_back(shown_format("{} {}", series.split, series.tag));
  }
  for (const MetricSeries& series : second.records.series)
    if (!is_clock_value(series.tag) && first.records.find(series.split, series.tag) == nullptr)
      only.push_back(shown_format("{} {}", series.split, series.tag));
  std::ranges::sort(steps);
  parting.records.steps = std::unique(steps.begin(), steps.end()) - steps.begin();
  if (!only.empty())
    parting.remarks.push_back(shown_format("only one of the runs records {}", fmt::join(only, ", ")));
  if (first.records.last_step != second.records.last_step)
    parting.remarks.push_back(
        shown_format("the records end at step {} and {}", first.records.last_step, second.records.last_step));
}

/// Files with the state of a run, by step: checkpoints, and the states before recorded steps.
std::map<std::int64_t, std::string> states_of(const std::string& dir, Parting& parting) {
  std::map<std::int64_t, std::string> states;
  try {
    for (const KeptCheckpoint& kept : checkpoints_of(dir)) states[kept.step] = kept.path;
  } catch (const Error&) {  // there is none
  }
  try {
    std::error_code failed;
    for (const std::int64_t step : recorded_steps(dir))
      if (std::filesystem::exists(record_state_path(dir, step), failed))
        states.try_emplace(step - 1, record_state_path(dir, step));
  } catch (const Error& error) {
    parting.remarks.push_back(error.what());
  }
  return states;
}

/// True if the states are equal.
bool compare_states(const std::string& first, const std::string& second, Parting::Checkpoints& found) {
  const CheckpointFile a(first), b(second);
  if (a.header().digest == b.header().digest) return true;
  std::vector<TensorDifference> all = compare_checkpoints(a, b);
  found.tensors = std::ssize(all);
  std::erase_if(all, [](const TensorDifference& one) { return one.kind == TensorDifference::Kind::equal; });
  found.different = std::ssize(all);
  if (all.empty()) {
    found.tensor = "no tensor";
    found.detail = shown_format(
        "but the position (epoch {}, sample {}; epoch {}, sample {}), the shards or the seed differ",
        a.header().epoch, a.header().samples_consumed, b.header().epoch, b.header().samples_consumed);
    return false;
  }
  // A variable says more than its slots and averages.
  const auto variable = std::ranges::find_if(
      all, [](const TensorDifference& one) { return one.path.starts_with("variables/"); });
  const TensorDifference& difference = variable != all.end() ? *variable : all.front();
  found.tensor = difference.path;
  switch (difference.kind) {
    case TensorDifference::Kind::values:
      found.detail = shown_format("[{}]: {:.9g} and {:.9g}; {} of its values differ, at most by {:.3g}",
                                  fmt::join(difference.first_place, ", "), difference.first_value,
                                  difference.second_value, difference.num_different, difference.max_absolute);
      break;
    case TensorDifference::Kind::shape:
      found.detail = difference.detail;
      break;
    default:
      found.detail = difference.kind == TensorDifference::Kind::only_first ? "is only in the first"
                                                                           : "is only in the second";
  }
  return false;
}

void compare_checkpoint_files(const ReportRun& first, const ReportRun& second, Parting& parting) {
  const auto a = states_of(first.dir, parting), b = states_of(second.dir, parting);
  for (const auto& [step, path] : a) {
    const auto other = b.find(step);
    if (other == b.end()) continue;
    try {
      if (compare_states(path, other->second, parting.checkpoints)) {
        parting.checkpoints.equal.push_back(step);
        continue;
      }
      parting.checkpoints.step = step;
      return;  // later ones differ, too
    } catch (const Error& error) {
      parting.remarks.push_back(shown_format("step {} is not compared: {}", step, error.what()));
    }
  }
}

void compare_recorded(const ReportRun& first, const ReportRun& second, Parting& parting) {
  try {
    const std::vector<std::int64_t> a = recorded_steps(first.dir), b = recorded_steps(second.dir);
    for (const std::int64_t step : a) {
      if (std::ranges::find(b, step) == b.end()) continue;
      const auto read = [&](const ReportRun& run) {
        const std::string path = record_path(run.dir, step);
        return record_from_json(read_whole_file(path, ErrorKind::checkpoint), path);
      };
      const StepRecord one = read(first), two = read(second);
      const std::vector<RecordDifference> found = differences(one, two);
      if (found.empty()) {
        parting.recorded.equal.push_back(step);
        continue;
      }
      parting.recorded.step = step;
      const RecordRow& row = one.rows[found[0].row];
      parting.recorded.row = row_text(row);
      parting.recorded.places =
          shown_format("{} {}", row.per_microshard ? "microshard" : "rank", fmt::join(found[0].places, ", "));
      return;
    }
  } catch (const Error& error) {
    parting.remarks.push_back(shown_format("recorded steps are not compared: {}", error.what()));
  }
}

std::string steps_text(const std::vector<std::int64_t>& steps) {
  if (steps.size() <= 8)
    return shown_format("{} {}", steps.size() == 1 ? "step" : "steps", fmt::join(steps, ", "));
  return shown_format("{} steps from {} to {}", steps.size(), steps.front(), steps.back());
}

}  // namespace

Parting find_parting(const ReportRun& first, const ReportRun& second) {
  Parting parting;
  compare_records(first, second, parting);
  compare_checkpoint_files(first, second, parting);
  compare_recorded(first, second, parting);
  return parting;
}

std::string parting_text(const Parting& parting) {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += shown_format("{:<12}{}\n", name, value);
  };
  const Parting::Records& records = parting.records;
  if (records.step)
    line("records", shown_format("part at step {}: {} {} is {} and {}; {} of {} values differ", *records.step,
                                 records.split, records.tag, records.first, records.second, records.different,
                                 records.values));
  else
    line("records", records.values > 0
                        ? shown_format("equal: {} values of {} steps", records.values, records.steps)
                        : "none that both runs have");
  const Parting::Checkpoints& checkpoints = parting.checkpoints;
  if (checkpoints.step)
    line("checkpoints",
         shown_format(
             "part at step {}: {} {}{}{}", *checkpoints.step, checkpoints.tensor, checkpoints.detail,
             checkpoints.different > 1
                 ? shown_format("; {} of {} tensors differ", checkpoints.different, checkpoints.tensors)
                 : "",
             checkpoints.equal.empty() ? ""
                                       : shown_format("; equal before: {}", steps_text(checkpoints.equal))));
  else
    line("checkpoints", checkpoints.equal.empty() ? "none of equal steps"
                                                  : shown_format("equal: {}", steps_text(checkpoints.equal)));
  const Parting::Steps& recorded = parting.recorded;
  if (recorded.step)
    line("recorded", shown_format("part in step {}: {}, {}", *recorded.step, recorded.row, recorded.places));
  else if (!recorded.equal.empty())
    line("recorded", shown_format("equal, layer by layer: {}", steps_text(recorded.equal)));
  for (const std::string& remark : parting.remarks) line("note", remark);
  return text;
}

}  // namespace lockstep::report
