// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/buckets.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/range.h"

namespace lockstep {
namespace {

using Cuts = std::vector<std::int64_t>;

std::vector<std::pair<std::int64_t, std::int64_t>> pairs(const std::vector<Range>& buckets) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (const Range& bucket : buckets) all.emplace_back(bucket.first, bucket.last);
  return all;
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

TEST(Buckets, CutsOnlyAtCutPoints) {
  // 4 bytes per element: the first bucket needs 10 elements, the others 100.
  EXPECT_EQ(pairs(make_buckets(500, Cuts{4, 12, 40, 111, 113, 300, 350, 499}, 40, 400)),
            (Pairs{{0, 12}, {12, 113}, {113, 300}, {300, 499}, {499, 500}}));
}

TEST(Buckets, SmallModelIsOneBucket) {
  EXPECT_EQ(pairs(make_buckets(100, Cuts{10, 50, 100})), (Pairs{{0, 100}}));
}

TEST(Buckets, EmptyRangeAndMissingCutPoints) {
  EXPECT_EQ(pairs(make_buckets(0, Cuts{})), Pairs{});
  EXPECT_EQ(pairs(make_buckets(10, Cuts{}, 4, 4)), (Pairs{{0, 10}}));
  EXPECT_EQ(pairs(make_buckets(10, Cuts{0, 5, 5, 10}, 4, 4)), (Pairs{{0, 5}, {5, 10}}));
}

TEST(Buckets, ExactSizeClosesABucket) {
  EXPECT_EQ(pairs(make_buckets(30, Cuts{10, 20, 30}, 40, 40)), (Pairs{{0, 10}, {10, 20}, {20, 30}}));
}

TEST(Buckets, RejectsInvalidCutPoints) {
  EXPECT_THROW(make_buckets(10, Cuts{5, 4}), Error);
  EXPECT_THROW(make_buckets(10, Cuts{11}), Error);
}

}  // namespace
}  // namespace lockstep
