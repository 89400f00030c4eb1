// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/branches.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

TEST(Branches, SmallMicroshardsHaveOneEach) {
  for (int microshards = 1; microshards <= kMostBranches; ++microshards) {
    EXPECT_EQ(choose_branches(microshards, kMegabyte, {}), microshards);
    EXPECT_EQ(choose_branches(microshards, 0, {}), microshards);
  }
  EXPECT_EQ(choose_branches(16, kMegabyte, {}), 8);
}

TEST(Branches, NoMoreThanEndInTheSameNumberOfRounds) {
  EXPECT_EQ(choose_branches(9, kMegabyte, {}), 5);
  EXPECT_EQ(choose_branches(12, kMegabyte, {}), 6);
  EXPECT_EQ(choose_branches(17, kMegabyte, {}), 6);
  EXPECT_EQ(choose_branches(4, 400 * kMegabyte, {}), 2) << "three would fit";
}

TEST(Branches, LargeMicroshardsRunOneAfterTheOther) {
  EXPECT_EQ(choose_branches(8, kBranchesBytes, {}), 2);
  EXPECT_EQ(choose_branches(8, kBranchesBytes + 1, {}), 1);
  EXPECT_EQ(choose_branches(8, 40 * kBranchesBytes, {}), 1);
}

TEST(Branches, AGivenNumberNeedsNoRoomButMicroshards) {
  EXPECT_EQ(choose_branches(8, 40 * kBranchesBytes, 8), 8);
  EXPECT_EQ(choose_branches(8, kMegabyte, 3), 3);
  EXPECT_EQ(choose_branches(2, kMegabyte, 8), 2);
  EXPECT_EQ(choose_branches(8, kMegabyte, 1), 1);
}

}  // namespace
}  // namespace lockstep
