// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/metric_series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace lockstep::report {

namespace {

class Collector {
 public:
  explicit Collector(MetricRecords& records) : all_(records) {}

  void add(const MetricRecord& record) {
    ++all_.records;
    all_.last_step = std::max(all_.last_step, record.step);
    if (record.epoch > 0) epoch(record.step, record.epoch);
    for (const auto& [name, value] : record.values) {
      MetricSeries& series = series_of(record.split, name);
      series.steps.push_back(record.step);
      series.values.push_back(value);
    }
    for (const MetricList& list : record.lists) keep(record, list);
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
    if (step < 1) return;
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

  void keep(const MetricRecord& record, const MetricList& list) {
    const auto known = std::ranges::find_if(all_.lists, [&](const MetricNumbers& one) {
      return one.split == record.split && one.name == list.name;
    });
    MetricNumbers& to = known == all_.lists.end() ? all_.lists.emplace_back() : *known;
    to = {list, record.split, record.step};
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
  Collector collector(records);
  MetricsReader reader(path);
  records.exists = reader.read([] {}, [&](const MetricRecord& record) { collector.add(record); });
  records.passed_over = reader.odd_lines() + (reader.ends_in_a_line() ? 1 : 0);
  collector.finish();
  return records;
}

bool is_clock_value(std::string_view tag) {
  // What the program measures by its clock has seconds or a rate in its name; docs/report.md lists them.
  for (const std::string_view part : {"per_second", "_seconds", "seconds_", "/sec", "blocks_ready", "time/",
                                      "ranks/", "memory", "_share", "input/"})
    if (tag.find(part) != std::string_view::npos) return true;
  return false;
}

}  // namespace lockstep::report
