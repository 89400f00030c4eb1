// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a data set is normalised by. For dataset.h; normalization.h computes the values.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// channels: mean and standard deviation of each channel; all: one of each for all values.
enum class NormalizeBy { none, channels, all };

/// One value per channel, or one for all. Divisors of constant channels are 1.
struct Normalization {
  std::vector<float> mean, std;
  std::vector<std::int64_t> constant = {};  ///< the constant channels, if the values were computed just now
  bool empty() const { return mean.empty(); }
};

}  // namespace lockstep
