// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lengths of a microshard's sequences, as layers get them: whole numbers stored as floats.
#pragma once

#include "model/layer.h"

namespace lockstep {

/// Returns the largest of n lengths in host memory. Throws Error(data), with layer, sample and value, if one
/// is not a whole number in [0, steps].
inline std::int64_t longest_of(const Layer& layer, const float* lengths, std::int64_t n,
                               std::int64_t first_sample, std::int64_t steps) {
  std::int64_t longest = 0;
  for (std::int64_t s = 0; s < n; ++s) {
    const float length = lengths[s];
    const bool in_range = length >= 0.0F && length <= static_cast<float>(steps);
    const std::int64_t whole = in_range ? static_cast<std::int64_t>(length) : -1;
    LOCKSTEP_REQUIRE(
        in_range && static_cast<float>(whole) == length, ErrorKind::data,
        "layer {}: sample {} of the batch has length {}, which is not a whole number from 0 to {}",
        layer.name(), first_sample + s, length, steps);
    longest = whole > longest ? whole : longest;
  }
  return longest;
}

}  // namespace lockstep
