// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// (x - mean) / std per channel, the last axis.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

class ChannelNormalizer {
 public:
  /// Changes nothing.
  ChannelNormalizer() = default;
  /// `mean` and `std`: one value per channel, one for all channels, or none (0 and 1).
  ChannelNormalizer(std::vector<float> mean, std::vector<float> std, std::int64_t channels);

  bool empty() const { return mean_.empty(); }
  /// `count` values: whole pixels. in == out is allowed.
  void apply(const float* in, float* out, std::int64_t count) const;

 private:
  std::vector<float> mean_, std_;  ///< repeated over whole pixels to a length that vectorises
};

}  // namespace lockstep
