// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/trial/rate_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lockstep {

namespace {
/// Steps that are averaged to see whether the loss has left its range, and how far it may: with 4 times the
/// least one, as in other programs, for positive losses.
constexpr std::size_t kLast = 5, kFirstEnd = 10;
constexpr double kAway = 3;

double mean_of(std::span<const RatePoint> points) {
  double sum = 0;
  for (const RatePoint& point : points) sum += point.loss;
  return sum / static_cast<double>(points.size());
}
}  // namespace

std::string growing_rate(double low, double high, std::int64_t steps) {
  return fmt::format("{{exponential_decay: {{initial: {}, decay_rate: 10, decay_steps: {}}}}}", low,
                     static_cast<double>(steps - 1) / std::log10(high / low));
}

std::string end_of_range_test(std::span<const RatePoint> points) {
  if (points.empty()) return {};
  if (!std::isfinite(points.back().loss)) return fmt::format("the loss is {}", points.back().loss);
  if (points.size() < kFirstEnd) return {};
  double least = std::numeric_limits<double>::infinity(), last = 0;
  for (std::size_t end = kLast; end <= points.size(); ++end) {
    last = mean_of(points.subspan(end - kLast, kLast));
    least = std::min(least, last);
  }
  if (last <= least + kAway * std::abs(least)) return {};
  return fmt::format("the mean loss of {} steps, {:.4g}, is above {:.4g}, 4 times the least one", kLast, last,
                     least + kAway * std::abs(least));
}

std::size_t smooth(std::vector<RatePoint>& points) {
  constexpr std::size_t kShare = 25;
  const std::size_t width = std::max<std::size_t>(1, points.size() / kShare);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t own = std::min({width, i, points.size() - 1 - i});
    points[i].smoothed = mean_of(std::span(points).subspan(i - own, 2 * own + 1));
  }
  return width;
}

std::optional<SuggestedRate> suggested_rate(std::span<const RatePoint> points, std::size_t width) {
  SuggestedRate found;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i].smoothed < points[found.least].smoothed) found.least = i;
  // Over a sixth of the test: between neighbours the noise of batches is larger than the fall.
  constexpr std::size_t kShareOfFall = 12;
  const std::size_t half = std::max({std::size_t{1}, width, points.size() / kShareOfFall});
  double fall = 0;
  for (std::size_t i = half; i + half < points.size() && i <= found.least; ++i) {
    const double here = points[i - half].smoothed - points[i + half].smoothed;
    if (here > fall) {
      fall = here;
      found.steepest = i;
    }
  }
  if (fall <= 0) return std::nullopt;
  return found;
}

}  // namespace lockstep
