// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A curve through recorded points, cut into the columns of a drawing. Arithmetic only.
#pragma once

#include <span>
#include <vector>

#include "view/plot/chart.h"

namespace lockstep {

/// A value that is not finite is a gap: the points before and after it are not joined.
struct CurvePoint {
  double x = 0, y = 0;
};

/// Straight lines through the points, whose x do not decrease, over [low, high]. Columns that have none of
/// the curve are NaN. The extremes of all points survive, however many share a column.
std::vector<ChartColumn> point_columns(std::span<const CurvePoint> points, double low, double high,
                                       int count);

/// The exponential moving average of the values with weight `keep` in [0, 1) for what was before, without the
/// pull of the beginning (as TensorBoard smooths). Gaps stay gaps and are passed over.
void smooth(std::span<CurvePoint> points, double keep);

/// The axis of values of which all are positive and written as log10.
ChartAxis log_axis(double low, double high, int wanted);

}  // namespace lockstep
