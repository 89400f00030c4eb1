// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/run_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

/// 60 samples in batches of 8: the eighth has 4.
const EpochShape kEights = {.steps = 8, .samples = 60, .batch = 8};
const EpochShape kFours = {.steps = 15, .samples = 60, .batch = 4};

TEST(RunClock, FollowsFromTheStepWhereNothingChanged) {
  const RunClock clock(kEights);
  EXPECT_EQ(clock.epochs(0), 0);
  EXPECT_EQ(clock.epochs(12), 1.5);
  EXPECT_EQ(clock.samples(8), 60);
  EXPECT_EQ(clock.samples(9), 68);
  EXPECT_EQ(clock.step_of_epoch(3), 24);
  EXPECT_EQ(clock.changed_at(), 0);
}

TEST(RunClock, EpochsThatAreDoneStayDone) {
  RunClock clock(kEights);
  clock.change(16, 2, {}, kFours);
  EXPECT_EQ(clock.epochs(8), 1);
  EXPECT_EQ(clock.epochs(16), 2);
  EXPECT_EQ(clock.epochs(31), 3);
  EXPECT_EQ(clock.samples(16), 120);
  EXPECT_EQ(clock.samples(17), 124);
  EXPECT_EQ(clock.samples(31), 180);
  EXPECT_EQ(clock.step_of_epoch(1), 8);
  EXPECT_EQ(clock.step_of_epoch(2), 16);
  EXPECT_EQ(clock.step_of_epoch(4), 46);
}

/// After 4 of 8 steps 32 of 60 samples are used; 28 are left, 7 batches of 4.
TEST(RunClock, AChangeInsideAnEpochReachesItsEndExactly) {
  RunClock clock(kEights);
  clock.change(12, 2, {.steps = 7, .samples = 28}, kFours);
  EXPECT_EQ(clock.epochs(12), 1.5);
  for (std::int64_t step = 12; step < 40; ++step)
    EXPECT_LT(clock.epochs(step), clock.epochs(step + 1)) << step;
  EXPECT_EQ(clock.epochs(19), 2);
  EXPECT_EQ(clock.epochs(34), 3);
  EXPECT_EQ(clock.samples(12), 92);
  EXPECT_EQ(clock.samples(18), 116);
  EXPECT_EQ(clock.samples(19), 120);
  EXPECT_EQ(clock.step_of_epoch(2), 19);
}

/// A job that ended before its first checkpoint leaves nothing behind.
TEST(RunClock, ASecondChangeAtTheSameStepReplacesTheFirst) {
  RunClock once(kEights), twice(kEights);
  once.change(16, 2, {}, kFours);
  twice.change(16, 2, {}, {.steps = 2, .samples = 60, .batch = 30});
  twice.change(16, 2, {}, kFours);
  EXPECT_EQ(once, twice);
  RunClock at_begin(kEights);
  at_begin.change(0, 0, {}, kFours);
  EXPECT_EQ(at_begin, RunClock(kFours));
}

TEST(RunClock, ComesBackFromItsText) {
  RunClock clock(kEights);
  clock.change(12, 2, {.steps = 7, .samples = 28}, kFours);
  clock.change(50, 5, {.steps = 2, .samples = 3}, kEights);
  EXPECT_EQ(RunClock::parse(clock.text(), "here"), clock);
  EXPECT_FALSE(RunClock::parse("", "here").knows_epochs());
  for (const char* const damaged :
       {"1 2 3\n", "0 0 0 0 0 8 60\n", "0 0 0 0 0 0 60 8\n", "5 0 0 0 0 8 60 8\n", "x\n"})
    EXPECT_THROW(RunClock::parse(damaged, "here"), Error) << damaged;
}

}  // namespace
}  // namespace lockstep
