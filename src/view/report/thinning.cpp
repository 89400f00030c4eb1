// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/thinning.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::report {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Values [begin, end) as one point. All that are no numbers: a gap.
ThinPoint together(const MetricSeries& series, std::size_t begin, std::size_t end) {
  ThinPoint point{.step = 0.5 * static_cast<double>(series.steps[begin] + series.steps[end - 1]),
                  .low = kNone,
                  .high = kNone,
                  .mean = kNone,
                  .values = 0};
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const double value = series.values[i];
    if (!std::isfinite(value)) continue;
    point.low = point.values == 0 ? value : std::min(point.low, value);
    point.high = point.values == 0 ? value : std::max(point.high, value);
    sum += value;
    ++point.values;
  }
  if (point.values > 0)
    point.mean = std::clamp(sum / static_cast<double>(point.values), point.low, point.high);
  else
    point.values = 1;
  return point;
}

}  // namespace

ThinCurve thin_curve(const MetricSeries& series, int columns) {
  const std::size_t size = series.steps.size();
  ThinCurve curve{.points = {}, .values = static_cast<std::int64_t>(size)};
  curve.no_numbers = std::ranges::count_if(series.values, [](double value) { return !std::isfinite(value); });
  curve.thinned = size > static_cast<std::size_t>(columns);
  if (!curve.thinned) {
    for (std::size_t i = 0; i < size; ++i) curve.points.push_back(together(series, i, i + 1));
    return curve;
  }
  const double first = static_cast<double>(series.steps.front());
  const double width = (static_cast<double>(series.steps.back()) - first) / columns;
  for (std::size_t begin = 0; begin < size;) {
    const double column =
        width > 0 ? std::floor((static_cast<double>(series.steps[begin]) - first) / width) : 0;
    std::size_t end = begin + 1;
    while (end < size &&
           (!(width > 0) || static_cast<double>(series.steps[end]) - first < (column + 1) * width))
      ++end;
    curve.points.push_back(together(series, begin, end));
    begin = end;
  }
  return curve;
}

}  // namespace lockstep::report
