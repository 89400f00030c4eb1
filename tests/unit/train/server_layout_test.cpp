// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/server_layout.h"

#include <gtest/gtest.h>

#include "comm/tree.h"

namespace lockstep {
namespace {

using Placement = ClusterOptions::Placement;

TEST(PlaceVariables, RoundRobinTakesOneServerAfterTheOther) {
  const std::vector<std::int64_t> bytes{100, 1, 1, 1, 1};
  EXPECT_EQ(place_variables(bytes, 2, Placement::round_robin), (std::vector<int>{0, 1, 0, 1, 0}));
}

TEST(PlaceVariables, GreedyTakesTheServerWithTheFewestBytesAndTheFirstOfSeveral) {
  const std::vector<std::int64_t> bytes{100, 60, 60, 10, 5};
  EXPECT_EQ(place_variables(bytes, 3, Placement::greedy), (std::vector<int>{0, 1, 2, 1, 2}));
}

TEST(PlaceVariables, GreedyKeepsServersWithinTheLargestVariable) {
  std::vector<std::int64_t> bytes;
  for (std::int64_t i = 0; i < 200; ++i) bytes.push_back(1 + i * 7919 % 1000);
  for (const int servers : {1, 2, 3, 5, 8}) {
    std::vector<std::int64_t> held(static_cast<std::size_t>(servers));
    const std::vector<int> places = place_variables(bytes, servers, Placement::greedy);
    for (std::size_t i = 0; i < bytes.size(); ++i) held[static_cast<std::size_t>(places[i])] += bytes[i];
    const auto [least, most] = std::ranges::minmax(held);
    EXPECT_LE(most - least, 1000) << servers;
  }
}

TEST(ShardsPerPart, GivesEachWorkerTwoPartsAndEachThreadAMicroshard) {
  EXPECT_EQ(shards_per_part(8, 1, 1, {}), 4);
  EXPECT_EQ(shards_per_part(8, 2, 1, {}), 2);
  EXPECT_EQ(shards_per_part(8, 4, 1, {}), 1);
  EXPECT_EQ(shards_per_part(8, 3, 1, {}), 1);
  EXPECT_EQ(shards_per_part(64, 4, 16, {}), 16);  // one part per worker, for the threads
  EXPECT_EQ(shards_per_part(7, 2, 4, {}), 1);     // no power of two divides it
  EXPECT_EQ(shards_per_part(8, 1, 1, 8), 1);
  EXPECT_EQ(shards_per_part(8, 1, 1, 100), 1);
}

TEST(ShardsPerPart, EveryPartIsANodeOfTheTreeOfAllMicroshards) {
  for (int shards = 1; shards <= 48; ++shards)
    for (int workers = 1; workers <= 5; ++workers) {
      const int size = shards_per_part(shards, workers, 2, {});
      ASSERT_EQ(shards % size, 0);
      for (int first = 0; first < shards; first += size)
        EXPECT_TRUE(is_tree_node(first, first + size, shards)) << first << " of " << shards << " by " << size;
    }
}

}  // namespace
}  // namespace lockstep
