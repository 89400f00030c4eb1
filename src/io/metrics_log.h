// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// metrics.jsonl: one JSON object per line, for scripts.
//
//   {"step":200,"epoch":3,"split":"train","loss":0.25,"accuracy":0.9375}
//
// Numbers have as many digits as it takes to read the same double back. NaN and infinities are null: JSON has
// no word for them. As with event files, an error of the disk is one warning and does not end a training.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

class MetricsLog {
 public:
  /// Several numbers of one name; with `columns` above 0 a matrix, row by row.
  struct List {
    std::string name;
    std::span<const double> values;
    std::int64_t columns = 0;
  };

  /// Appends to `path`; created with the first record. A last line that a killed run cut short is removed.
  explicit MetricsLog(std::string path);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  /// Writes one record to the operating system at once. The names "step", "epoch" and "split" are taken.
  void append(std::int64_t step, std::int64_t epoch, std::string_view split,
              std::span<const std::pair<std::string, double>> values, std::span<const List> lists = {});
  /// Removes the records of steps above `step`, and of evaluations (split "eval") above `evaluated_step`,
  /// atomically: a resumed run repeats them. Lines that are not records are removed too, with a warning.
  void drop_after(std::int64_t step, std::int64_t evaluated_step);
  void drop_after(std::int64_t step) { drop_after(step, step); }

  /// The first error, or empty.
  std::string error() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
