// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of microshards for tests of compressed sums: no sum of two is exact in bfloat16.
#pragma once

#include <cstdint>
#include <vector>

#include "core/half.h"
#include "core/range.h"

namespace lockstep {

/// A float32 with random sign, fraction and an exponent out of `exponents`.
inline float leaf_value(int shard, std::int64_t element, std::uint32_t exponents) {
  std::uint32_t hash = static_cast<std::uint32_t>(shard) * 0x9E3779B9U + static_cast<std::uint32_t>(element);
  hash = (hash ^ (hash >> 16)) * 0x85EBCA6BU;
  hash = (hash ^ (hash >> 13)) * 0xC2B2AE35U;
  hash ^= hash >> 16;
  return static_cast<float>(static_cast<std::int32_t>(hash)) * static_cast<float>(1U << (hash % exponents));
}

/// What rounding to bfloat16 leaves.
inline float kept(float value) { return to_float(from_float<BFloat16>(value)); }

/// Consecutive buckets of about the same size.
inline std::vector<Range> cut(std::int64_t count, int buckets) {
  std::vector<Range> all;
  for (int i = 0; i < buckets; ++i) all.push_back(part_of(count, i, buckets));
  return all;
}

}  // namespace lockstep
