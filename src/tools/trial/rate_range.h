// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The learning-rate range test: the loss of steps whose learning rate grows by the same factor from step to
// step. Leslie N. Smith, "Cyclical learning rates for training neural networks", arXiv:1506.01186,
// section 3.3. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct RatePoint {
  double rate = 0;
  double loss = 0;      ///< of the step's batch, before its update
  double smoothed = 0;  ///< the mean of the losses around it
};

/// The schedule of the learning rate from `low` in the first step to `high` in the last one, as the value of
/// a configuration. Needs 0 < low < high and at least 2 steps.
std::string growing_rate(double low, double high, std::int64_t steps);

/// Why the test ends after these steps: the loss is not finite, or the mean of the last ones is far above the
/// least mean so far. Empty: it goes on.
std::string end_of_range_test(std::span<const RatePoint> points);

/// Sets `smoothed`: the mean over `width` steps before and after, fewer at the ends. Returns the width.
std::size_t smooth(std::vector<RatePoint>& points);

struct SuggestedRate {
  std::size_t steepest = 0;  ///< the point where the smoothed loss falls most per factor of the rate
  std::size_t least = 0;     ///< the point of the least smoothed loss
};
/// Of smoothed points. Nothing if the loss falls nowhere.
std::optional<SuggestedRate> suggested_rate(std::span<const RatePoint> points, std::size_t width);

}  // namespace lockstep
