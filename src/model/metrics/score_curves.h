// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts of positives and negatives above each threshold. Areas under curves and best thresholds are computed
// from them. There are two methods:
//
//   histogram  n thresholds in [0, 1]: -1e-7, i / (n - 1), 1 + 1e-7, as float32. State per column: positives,
//              then negatives, by the number of thresholds strictly below the score.
//   exact      every score is kept, 12 bytes each; at the end every rank has all scores. Each score is
//              a threshold.
//
// Both count scores that are NaN or outside [0, 1] separately; with such scores there is no curve.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "config/option.h"
#include "model/metric_cases.h"

namespace lockstep {

/// Positives and negatives whose score is above `threshold`. The counts are the same for every threshold
/// below `lowest`, the lowest of these scores, where it is known.
struct CurvePoint {
  double threshold, tp, fp;
  double lowest = 0;
};

struct Curve {
  std::vector<CurvePoint> points;  ///< by falling threshold, from no score to all scores
  bool exact = false;              ///< CurvePoint::lowest is known
  double positives = 0, negatives = 0;
};

/// Options of metrics with curves. `kPath` leads to them from the options of a metric.
struct CurveOptions {
  std::int64_t num_thresholds = 0;
  bool exact = false;
  double memory_mb = 0;
};
template <auto... kPath>
constexpr ParamSpec num_thresholds_option() {
  return option<kPath..., &CurveOptions::num_thresholds>(
      "num_thresholds", "200", between(3, 1000000),
      "Number of thresholds, evenly spaced in [0, 1], unless exact.");
}
template <auto... kPath>
constexpr ParamSpec exact_option() {
  return option<kPath..., &CurveOptions::exact>(
      "exact", "false", {},
      "Keep every score (12 bytes each, on every rank) instead of counts between thresholds.");
}
template <auto... kPath>
constexpr ParamSpec memory_option() {
  return option<kPath..., &CurveOptions::memory_mb>("memory_mb", "1024", above(0).up_to(1e9, "MB"),
                                                    "Limit of exact's memory on a rank; more is an error.");
}

class ScoreCurves {
 public:
  /// `single` as in LabelCases. `params` is for messages.
  ScoreCurves(const CurveOptions& options, const Params& params, const MetricInput& input, bool single);

  std::int64_t columns() const { return cases_.columns(); }
  bool exact() const { return exact_; }
  /// The number of points of a curve in a report.
  std::int64_t table_points() const {
    return exact_ ? 101 : std::min<std::int64_t>(static_cast<std::int64_t>(thresholds_.size()), 1001);
  }
  std::int64_t width() const { return exact_ ? 1 : 1 + columns() * 2 * bins(); }
  std::int64_t records_per_sample() const { return exact_ ? cases_.per_sample() : 0; }
  void add(const MetricBatch& batch, double* state) const;
  void record(const MetricBatch& batch, ScoreRecord* records) const;

  /// False if a score is NaN or outside [0, 1].
  bool valid(const double* totals) const { return totals[0] == 0; }
  Curve of_column(std::int64_t column, const double* totals, std::span<const ScoreRecord> records) const;
  /// All columns together.
  Curve of_all(const double* totals, std::span<const ScoreRecord> records) const;

 private:
  std::int64_t bins() const { return static_cast<std::int64_t>(thresholds_.size()) + 1; }
  std::int64_t bin_of(float score) const;
  Curve from_bins(const std::vector<double>& bins) const;
  Curve from_scores(std::vector<ScoreRecord> scores) const;

  LabelCases cases_;
  bool exact_;
  std::vector<float> thresholds_;
};

/// A table of metrics with curves: a row for each curve and threshold, by rising threshold, of number of the
/// curve, threshold, true positives, false positives, true negatives, false negatives.
inline constexpr std::string_view kCurveTable = "curve";
inline constexpr std::int64_t kCurveTableColumns = 6;
/// The first row counts all scores, at threshold 0; each other one the scores above its threshold. An exact
/// curve has the thresholds i / (points - 1), as float32; another one its own, evenly chosen.
void append_curve(const Curve& curve, std::int64_t number, std::int64_t points, std::vector<double>& table);

}  // namespace lockstep
