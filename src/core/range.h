// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A range of items, and its part of several.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep {

/// The items [first, last).
struct Range {
  std::int64_t first, last;
  std::int64_t size() const { return last - first; }
};

/// The items of `count` that belong to `part` of `parts`, cut at multiples of `grain`.
inline Range part_of(std::int64_t count, int part, int parts, std::int64_t grain = 1) {
  const std::int64_t grains = (count + grain - 1) / grain;
  return {std::min(count, grains * part / parts * grain),
          std::min(count, grains * (part + 1) / parts * grain)};
}

}  // namespace lockstep
