// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Curves with more values than a picture has columns. Each column keeps the least and the greatest of its
// values, and their mean, so that extremes survive and smoothing stays right.
#pragma once

#include <cstdint>
#include <vector>

#include "view/report/metric_series.h"

namespace lockstep::report {

/// NaN: there is no number, and the curve has a gap.
struct ThinPoint {
  double step = 0, low = 0, high = 0, mean = 0;
  std::int64_t values = 1;
};

struct ThinCurve {
  std::vector<ThinPoint> points;
  std::int64_t values = 0;  ///< of the series, with those that are no numbers
  std::int64_t no_numbers = 0;
  bool thinned = false;  ///< points stand for several values
};

/// A series with at most `columns` values is kept as it is; another one is cut into `columns` columns of
/// equal numbers of steps.
ThinCurve thin_curve(const MetricSeries& series, int columns);

}  // namespace lockstep::report
