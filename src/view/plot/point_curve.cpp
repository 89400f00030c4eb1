// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/plot/point_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {

namespace {

void include(ChartColumn& column, double y) {
  if (std::isnan(column.least)) {
    column = {y, y, y, y};
    return;
  }
  column.least = std::min(column.least, y);
  column.most = std::max(column.most, y);
  column.last = y;
}

}  // namespace

std::vector<ChartColumn> point_columns(std::span<const CurvePoint> points, double low, double high,
                                       int count) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<ChartColumn> columns(static_cast<std::size_t>(count), {kNone, kNone, kNone, kNone});
  const double scale = (count - 1) / (high - low);
  // Column i is the range [i - 0.5, i + 0.5] of what place() gives.
  const auto place = [&](double x) { return std::clamp((x - low) * scale, 0.0, double(count - 1)); };
  const auto column_at = [&](double at) -> ChartColumn& {
    return columns[static_cast<std::size_t>(std::lround(at))];
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const CurvePoint& to = points[i];
    if (!std::isfinite(to.y)) continue;
    const double end = place(to.x);
    if (i > 0 && std::isfinite(points[i - 1].y)) {
      const CurvePoint& from = points[i - 1];
      const double begin = place(from.x);
      const auto value_at = [&](double at) {
        return from.y + (to.y - from.y) * std::clamp((at - begin) / (end - begin), 0.0, 1.0);
      };
      for (long column = std::lround(begin); column < std::lround(end); ++column) {
        const double border = value_at(static_cast<double>(column) + 0.5);
        include(column_at(static_cast<double>(column)), border);
        include(column_at(static_cast<double>(column + 1)), border);
      }
    }
    include(column_at(end), to.y);
  }
  return columns;
}

void smooth(std::span<CurvePoint> points, double keep) {
  double sum = 0, weight = 0;
  for (CurvePoint& point : points) {
    if (!std::isfinite(point.y)) continue;
    sum = keep * sum + (1 - keep) * point.y;
    weight = keep * weight + (1 - keep);
    point.y = sum / weight;
  }
}

ChartAxis log_axis(double low, double high, int wanted) {
  ChartAxis axis{std::floor(low + 1e-9), std::ceil(high - 1e-9), {}};
  if (axis.high <= axis.low) axis.high = axis.low + 1;
  const double decades = axis.high - axis.low;
  if (decades <= 2) {
    const double one = std::log10(2.0), two = std::log10(5.0);
    for (double power = axis.low; power < axis.high; ++power)
      for (const double tick : {power, power + one, power + two}) axis.ticks.push_back(tick);
    axis.ticks.push_back(axis.high);
    // Only as much as the values need.
    while (axis.ticks.size() > 2 && axis.ticks[1] <= low) axis.ticks.erase(axis.ticks.begin());
    while (axis.ticks.size() > 2 && axis.ticks[axis.ticks.size() - 2] >= high) axis.ticks.pop_back();
    axis.low = axis.ticks.front();
    axis.high = axis.ticks.back();
    return axis;
  }
  const double step = std::max(1.0, std::ceil(decades / wanted));
  for (double tick = axis.low; tick <= axis.high + 1e-9; tick += step) axis.ticks.push_back(tick);
  return axis;
}

}  // namespace lockstep
