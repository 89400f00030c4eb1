// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads metrics.jsonl (metrics_log.h), also while a run writes it: each call reads what is new. A last line
// without its end waits for the next call. null is NaN; texts are left out. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/function_ref.h"

namespace lockstep {

/// Numbers with one name: a list, or a row-major matrix.
struct MetricList {
  std::string name;
  std::vector<double> values;
  std::int64_t columns = 0;  ///< of a matrix; 0: a list
};

struct MetricRecord {
  std::int64_t step = 0, epoch = 0;  ///< epoch 0: it has none
  std::string split;                 ///< "train" or "eval"
  std::vector<std::pair<std::string, double>> values;
  std::vector<MetricList> lists;
};

class MetricsReader {
 public:
  explicit MetricsReader(std::string path) : path_(std::move(path)) {}

  /// Calls `begin` if records begin anew: the first time, and when the file was replaced, because a job went
  /// back to a checkpoint. Then `record` for each new one. Lines that are no records are skipped and counted.
  /// False if there is no file. Throws Error(data) if it cannot be read.
  bool read(FunctionRef<void()> begin, FunctionRef<void(const MetricRecord&)> record);
  /// Lines that are no records, in the present file.
  std::int64_t odd_lines() const { return odd_lines_; }
  /// The file ends in the middle of a line.
  bool ends_in_a_line() const { return ends_in_a_line_; }

 private:
  std::string path_;
  std::uint64_t device_ = 0, inode_ = 0;
  std::int64_t offset_ = 0, odd_lines_ = 0;
  bool begun_ = false, ends_in_a_line_ = false;
};

}  // namespace lockstep
