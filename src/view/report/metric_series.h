// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// metrics.jsonl of a run as series: a tag's values over the steps, apart for training and evaluation. Lines
// that are no records (the last one of a running or killed run may be incomplete) are counted and passed
// over; null is NaN.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/metrics_reader.h"

namespace lockstep::report {

struct MetricSeries {
  std::string split, tag;  ///< "train" or "eval"; "loss"
  std::vector<std::int64_t> steps;
  std::vector<double> values;
};

/// Several numbers with one name ("confusion_matrix/matrix"), of the last record that has them.
struct MetricNumbers : MetricList {
  std::string split;
  std::int64_t step = 0;
};

struct MetricRecords {
  bool exists = false;               ///< the file
  std::vector<MetricSeries> series;  ///< in the order in which they appear
  std::vector<MetricNumbers> lists;
  std::int64_t records = 0, passed_over = 0;
  std::int64_t last_step = 0, last_epoch = 0;
  /// Derived from the steps and epochs of all records; empty if no one number explains them.
  std::optional<std::int64_t> steps_per_epoch;

  const MetricSeries* find(std::string_view split, std::string_view tag) const;
  const MetricNumbers* list(std::string_view split, std::string_view name) const;
};

/// Throws Error(data) if the file cannot be read; a missing one is no error.
MetricRecords read_metric_records(const std::string& path);

/// Measured by a clock: differs between runs that compute the same.
bool is_clock_value(std::string_view tag);

}  // namespace lockstep::report
