// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers that a run has recorded in metrics.jsonl, as curves by tag: "loss" of training, "eval/loss" of
// evaluations. Also while the run goes on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "io/metrics_reader.h"

namespace lockstep {

/// A curve in the order of the records; NaN where a number was not finite.
struct RecordedCurve {
  std::vector<std::int64_t> steps;
  std::vector<double> values;
};

class RunCurves {
 public:
  /// Throws Error(config) if `run_dir` is no directory.
  explicit RunCurves(std::string run_dir);

  /// Reads what is new, and calls `record` for each. True if something is. Throws Error(data).
  bool update(FunctionRef<void(const MetricRecord&)> record);
  bool update();

  const std::string& run_dir() const { return run_dir_; }
  const std::map<std::string, RecordedCurve, std::less<>>& curves() const { return curves_; }
  /// Steps per epoch by the records so far: exact as soon as one is the last of its epoch. 0: unknown.
  double steps_per_epoch() const { return steps_per_epoch_; }
  std::int64_t last_step() const { return last_step_; }
  std::int64_t last_epoch() const { return last_epoch_; }

 private:
  void add(const MetricRecord& record);

  std::string run_dir_;
  MetricsReader reader_;
  std::map<std::string, RecordedCurve, std::less<>> curves_;
  double steps_per_epoch_ = 0;
  std::int64_t last_step_ = 0, last_epoch_ = 0;
};

/// The tag of a value: "eval/loss" where `split` is "eval", else the name.
std::string tag_of(const std::string& split, const std::string& name);

/// When steps were recorded, from the event files of a run (metrics.jsonl has no times): hours since the
/// first one, interpolated between recorded steps.
class RunHours {
 public:
  /// Throws Error(data) if there are no event files.
  explicit RunHours(const std::string& run_dir);
  double at(std::int64_t step) const;

 private:
  std::map<std::int64_t, double> hours_;
};

}  // namespace lockstep
