// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/straggler.h"

#include <gtest/gtest.h>

#include "comm/adaptive_timeout.h"
#include "core/error.h"

namespace lockstep {
namespace {

constexpr StragglerOptions kOptions{.window_steps = 2, .factor = 1.2, .windows = 3};

/// Feeds whole windows in which every step takes `seconds`. Returns the reported stragglers.
std::vector<Straggler> feed(StragglerDetector& detector, int windows, const std::vector<double>& seconds) {
  std::vector<Straggler> found;
  for (int step = 0; step < windows * kOptions.window_steps; ++step)
    if (const auto straggler = detector.step(seconds)) found.push_back(*straggler);
  return found;
}

TEST(Straggler, ReportedOnceAfterThreeWindows) {
  StragglerDetector detector(4, kOptions);
  EXPECT_TRUE(feed(detector, 2, {1, 1, 1.3, 1}).empty());
  const auto found = feed(detector, 1, {1, 1, 1.3, 1});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 2);
  EXPECT_DOUBLE_EQ(found[0].seconds, 1.3);
  EXPECT_DOUBLE_EQ(found[0].median_seconds, 1);
  EXPECT_TRUE(feed(detector, 20, {1, 1, 1.3, 1}).empty()) << "one message per episode";
}

TEST(Straggler, ReportedAgainInANewEpisode) {
  StragglerDetector detector(3, kOptions);
  EXPECT_EQ(feed(detector, 5, {1, 2, 1}).size(), 1U);
  EXPECT_TRUE(feed(detector, 1, {1, 1, 1}).empty());
  EXPECT_TRUE(feed(detector, 2, {1, 2, 1}).empty());
  EXPECT_EQ(feed(detector, 1, {1, 2, 1}).size(), 1U);
}

TEST(Straggler, MustBeTheSameRankInAllWindows) {
  StragglerDetector detector(4, kOptions);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(feed(detector, 2, {2, 1, 1, 1}).empty());
    EXPECT_TRUE(feed(detector, 2, {1, 2, 1, 1}).empty());
  }
}

TEST(Straggler, MustExceedTheFactorOfTheMedian) {
  StragglerDetector detector(4, kOptions);
  EXPECT_TRUE(feed(detector, 10, {1, 1.25, 1, 1.1}).empty()) << "the median is 1.05: the limit 1.26";
  EXPECT_EQ(feed(detector, 10, {1, 1.27, 1, 1.1}).size(), 1U);
}

TEST(Straggler, SmallDifferencesAreNotReported) {
  StragglerOptions options = kOptions;
  options.least_seconds = 0.5;
  StragglerDetector detector(4, options);
  EXPECT_TRUE(feed(detector, 10, {1, 1.4, 1, 1}).empty());
  EXPECT_EQ(feed(detector, 10, {1, 1.6, 1, 1}).size(), 1U);
}

TEST(Straggler, OneSlowStepIsNotAWindow) {
  StragglerDetector detector(3, {.window_steps = 10, .windows = 3});
  int named = 0;
  for (int step = 0; step < 300; ++step)
    named += detector.step(std::vector<double>{1, 1, step % 40 == 0 ? 9.0 : 1.0}) ? 1 : 0;
  EXPECT_EQ(named, 0);
}

TEST(Straggler, TwoRanksAndOneRank) {
  StragglerDetector two(2, kOptions), one(1, kOptions);
  EXPECT_TRUE(feed(two, 9, {1, 1.4}).empty()) << "the median is 1.2: the limit 1.44";
  EXPECT_EQ(feed(two, 9, {1, 1.6}).size(), 1U);
  EXPECT_TRUE(feed(one, 9, {5}).empty());
}

TEST(Straggler, MessageHasRankHostAndFactor) {
  EXPECT_EQ(
      straggler_message({2, 0.13, 0.1}, kOptions, "n07"),
      "rank 2 (host n07) slows the other ranks down: its own work takes 0.13 s per step, 1.30 times the "
      "median of all ranks, in 3 consecutive windows of 2 steps");
}

TEST(Straggler, RejectsInvalidOptions) {
  EXPECT_THROW(StragglerDetector(0, kOptions), Error);
  EXPECT_THROW(StragglerDetector(2, {.window_steps = 0}), Error);
  EXPECT_THROW(StragglerDetector(2, {.factor = 1}), Error);
  StragglerDetector detector(2, kOptions);
  EXPECT_THROW(detector.step(std::vector<double>{1}), Error);
}

TEST(AdaptiveTimeout, LimitIsFiveTimesTheSlowestFirstStep) {
  AdaptiveTimeout fast, slow;
  EXPECT_EQ(fast.limit_seconds(), 300);
  for (int step = 1; step <= AdaptiveTimeout::kFirstSteps; ++step) {
    EXPECT_EQ(fast.step(0.01), step == AdaptiveTimeout::kFirstSteps);
    slow.step(step == 3 ? 40 : 1);
  }
  EXPECT_EQ(fast.limit_seconds(), 60);
  EXPECT_EQ(slow.limit_seconds(), 200);
  EXPECT_FALSE(slow.step(1000));
  EXPECT_EQ(slow.limit_seconds(), 200) << "later steps do not count";
}

TEST(AdaptiveTimeout, LimitGrowsWithSlowFirstSteps) {
  AdaptiveTimeout timeout;
  timeout.step(100);
  EXPECT_EQ(timeout.limit_seconds(), 500);
}

}  // namespace
}  // namespace lockstep
