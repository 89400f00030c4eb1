// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/report/metric_series.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "io/input_file.h"

namespace lockstep::report {

namespace {

using Json = nlohmann::ordered_json;

double number_of(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

class Reader {
 public:
  explicit Reader(MetricRecords& records) : all_(records) {}

  void add(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const Json record = Json::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer() ||
        !record.contains("split") || !record["split"].is_string()) {
      ++all_.passed_over;
      return;
    }
    ++all_.records;
    const auto step = record["step"].get<std::int64_t>();
    const auto& split = record["split"].get_ref<const std::string&>();
    all_.last_step = std::max(all_.last_step, step);
    if (record.contains("epoch") && record["epoch"].is_number_integer()) epoch(step, record["epoch"]);
    for (const auto& [name, value] : record.items()) {
      if (name == "step" || name == "epoch" || name == "split") continue;
      if (value.is_number() || value.is_null()) {
        MetricSeries& series = series_of(split, name);
        series.steps.push_back(step);
        series.values.push_back(number_of(value));
      } else if (value.is_array()) {
        keep(split, name, step, value);
      }
    }
  }

  void finish() {
    if (!epochs_known_ || !(least_ < most_)) return;
    // step <= epoch * n and step > (epoch - 1) * n for every record.
    const auto n = static_cast<std::int64_t>(std::ceil(least_ - 1e-9));
    if (n > 0 && static_cast<double>(n) < most_) all_.steps_per_epoch = n;
  }

 private:
  void epoch(std::int64_t step, std::int64_t epoch) {
    all_.last_epoch = std::max(all_.last_epoch, epoch);
    if (epoch < 1 || step < 1) return;
    least_ = std::max(least_, static_cast<double>(step) / static_cast<double>(epoch));
    if (epoch > 1) {
      most_ = std::min(most_, static_cast<double>(step) / static_cast<double>(epoch - 1));
      epochs_known_ = true;
    }
  }

  MetricSeries& series_of(const std::string& split, const std::string& tag) {
    const auto [at, is_new] = index_.try_emplace(split + '\n' + tag, all_.series.size());
    if (is_new) all_.series.push_back({split, tag, {}, {}});
    return all_.series[at->second];
  }

  void keep(const std::string& split, const std::string& name, std::int64_t step, const Json& value) {
    MetricNumbers numbers{split, name, step, {}, 0};
    for (const Json& row : value) {
      if (!row.is_array()) {
        numbers.values.push_back(number_of(row));
        continue;
      }
      numbers.columns = static_cast<std::int64_t>(row.size());
      for (const Json& entry : row) numbers.values.push_back(number_of(entry));
    }
    if (numbers.columns > 0 && numbers.values.size() % static_cast<std::size_t>(numbers.columns) != 0) return;
    const auto known = std::ranges::find_if(
        all_.lists, [&](const MetricNumbers& list) { return list.split == split && list.name == name; });
    if (known == all_.lists.end())
      all_.lists.push_back(std::move(numbers));
    else
      *known = std::move(numbers);
  }

  MetricRecords& all_;
  std::unordered_map<std::string, std::size_t> index_;
  double least_ = 0, most_ = std::numeric_limits<double>::infinity();
  bool epochs_known_ = false;
};

}  // namespace

const MetricSeries* MetricRecords::find(std::string_view split, std::string_view tag) const {
  const auto found = std::ranges::find_if(
      series, [&](const MetricSeries& one) { return one.split == split && one.tag == tag; });
  return found == series.end() ? nullptr : &*found;
}

const MetricNumbers* MetricRecords::list(std::string_view split, std::string_view name) const {
  const auto found = std::ranges::find_if(
      lists, [&](const MetricNumbers& one) { return one.split == split && one.name == name; });
  return found == lists.end() ? nullptr : &*found;
}

MetricRecords read_metric_records(const std::string& path) {
  MetricRecords records;
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return records;
  records.exists = true;
  InputFile file(path);
  LineReader lines(file);
  Reader reader(records);
  for (std::string_view line; lines.next(line);) reader.add(line);
  reader.finish();
  return records;
}

bool is_clock_value(std::string_view tag) {
  // What the program measures by its clock has seconds or a rate in its name; docs/report.md lists them.
  for (const std::string_view part : {"per_second", "_seconds", "seconds_", "/sec", "blocks_ready", "time/",
                                      "ranks/", "memory", "_share", "input/"})
    if (tag.find(part) != std::string_view::npos) return true;
  return false;
}

bool smaller_is_better(std::string_view tag) {
  for (const std::string_view part : {"loss", "error", "perplexity", "distance", "percentage_below"})
    if (tag.find(part) != std::string_view::npos) return true;
  return false;
}

}  // namespace lockstep::report
