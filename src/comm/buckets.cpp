// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/buckets.h"

#include "core/error.h"
#include "core/range.h"

namespace lockstep {

std::vector<Range> make_buckets(std::int64_t num_elements, std::span<const std::int64_t> cut_points,
                                std::int64_t first_bytes, std::int64_t bytes) {
  LOCKSTEP_CHECK(num_elements >= 0 && first_bytes >= 0 && bytes >= 0);
  std::vector<Range> buckets;
  std::int64_t first = 0, previous = 0;
  for (const std::int64_t cut : cut_points) {
    LOCKSTEP_CHECK(previous <= cut && cut <= num_elements, "cut point {} after {} of {}", cut, previous,
                   num_elements);
    previous = cut;
    const std::int64_t enough = buckets.empty() ? first_bytes : bytes;
    if (cut == first || (cut - first) * std::int64_t{sizeof(float)} < enough) continue;
    buckets.push_back({first, cut});
    first = cut;
  }
  if (first < num_elements) buckets.push_back({first, num_elements});
  return buckets;
}

}  // namespace lockstep
