// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/cluster_tasks.h"

#include <gtest/gtest.h>

#include "comm/tree.h"

namespace lockstep {
namespace {

TEST(FirstStepOfWorker, GrowsWithTheLogarithmOfItsNumber) {
  // int(8000 ln(n + 1)) of TensorFlow's Experiment.
  EXPECT_EQ(first_step_of_worker(8000, 0), 0);
  EXPECT_EQ(first_step_of_worker(8000, 1), 5545);
  EXPECT_EQ(first_step_of_worker(8000, 2), 8788);
  EXPECT_EQ(first_step_of_worker(8000, 5), 14334);
  EXPECT_EQ(first_step_of_worker(8000, 10), 19183);
  EXPECT_EQ(first_step_of_worker(0, 10), 0);
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
