// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of all ranks, for many numbers of ranks and shards.
#include "comm/ownership.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/range.h"

namespace lockstep {
namespace {

constexpr auto next_block = [](std::int64_t i) { return (i + 99) / 100 * 100; };

TEST(Ownership, PartsCoverEachBucketOnce) {
  const std::vector<Range> buckets{{0, 700}, {700, 730}, {730, 12345}};
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (const int shards : {1, 4, 5, 8, 12, 16}) {
      const Ownership ownership(buckets, ranks, shards, next_block);
      for (int bucket = 0; bucket < 3; ++bucket) {
        std::vector<Range> parts;
        for (int rank = 0; rank < ranks; ++rank) parts.push_back(ownership.part(bucket, rank));
        std::ranges::sort(parts, {}, [](const Range& part) { return std::pair(part.first, part.last); });
        std::int64_t reached = buckets[static_cast<std::size_t>(bucket)].first;
        for (const Range& part : parts) {
          EXPECT_EQ(part.first, reached) << ranks << " ranks, " << shards << " shards";
          reached = part.last;
        }
        EXPECT_EQ(reached, buckets[static_cast<std::size_t>(bucket)].last);
      }
    }
}

TEST(Ownership, PartsBeginWhereTheyMay) {
  const Ownership ownership({{0, 12345}}, 5, 5, next_block);
  for (int rank = 1; rank < 5; ++rank) {
    EXPECT_EQ(ownership.part(0, rank).first % 100, 0);
    EXPECT_NEAR(static_cast<double>(ownership.part(0, rank).size()), 12345 / 5, 100);
  }
}

/// Neighbours in different buckets are one range.
TEST(Ownership, PartsOfARankAreJoined) {
  const Ownership one({{0, 700}, {700, 730}}, 1, 4, next_block);
  ASSERT_EQ(one.parts(0).size(), 1U);
  EXPECT_EQ(one.parts(0)[0].last, 730);
  const Ownership two({{0, 700}, {700, 730}}, 2, 4, next_block);
  std::int64_t sum = 0;
  for (int rank = 0; rank < 2; ++rank)
    for (const Range& part : two.parts(rank)) {
      EXPECT_GT(part.size(), 0);
      sum += part.size();
    }
  EXPECT_EQ(sum, 730);
}

}  // namespace
}  // namespace lockstep
