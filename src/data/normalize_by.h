// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a data set is normalised by. For dataset.h; normalization.h computes the values.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// channels: mean and standard deviation of each channel; elements: of each value of a sample, such as a
/// channel in a grid cell; all: one of each for all values.
enum class NormalizeBy { none, channels, all, elements };

/// One value per channel or element, or one for all. Divisors of constant ones are 1.
struct Normalization {
  std::vector<float> mean, std;
  std::vector<std::int64_t> constant = {};  ///< those that are constant, if the values were computed just now
  std::vector<std::int64_t> shape = {};     ///< elements: extents of a sample; otherwise empty
  bool empty() const { return mean.empty(); }
};

}  // namespace lockstep
