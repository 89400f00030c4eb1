// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Predicted over true values of a regression, a plot per target, in the units of the data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::report {

struct ParityPoint {
  float truth, predicted;
};

/// One target, or several together. The numbers are of all pairs; the points are some of them, evenly chosen.
class ParityColumn {
 public:
  explicit ParityColumn(std::string name) : name_(std::move(name)) {}

  /// Pairs with a value that is not finite are left out. `is_drawn`: the pair is one of the points.
  void add(float truth, float predicted, bool is_drawn);

  const std::string& name() const { return name_; }
  std::int64_t pairs() const { return pairs_; }
  /// sqrt(sum (y - p)^2 / n), as the metric root_mean_squared_error.
  double root_mean_squared_error() const;
  /// 1 - sum (y - p)^2 / sum (y - mean y)^2, as the metric r2; NaN: all true values are equal.
  double r2() const;
  const std::vector<ParityPoint>& points() const { return points_; }

 private:
  std::string name_;
  std::int64_t pairs_ = 0;
  double mean_ = 0, deviations_ = 0, errors_ = 0;
  std::vector<ParityPoint> points_;
};

/// Of one head. Both axes of a plot have the same range, and the diagonal is where both are equal.
std::string parity_html(const std::vector<ParityColumn>& columns);

}  // namespace lockstep::report
