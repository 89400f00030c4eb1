// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/timed_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr double kLong = 60;  // seconds; only a test that fails waits so long

TEST(FixedGrid, DoesNotDrift) {
  const FixedGrid::Clock::time_point start{seconds(100)};
  FixedGrid grid(start, 10, true);
  EXPECT_EQ(grid.next(), start);
  for (int k = 1; k < 1000; ++k) {
    grid.ran(grid.next() + milliseconds(3));  // each run takes 3 ms
    EXPECT_EQ(grid.next(), start + seconds(10 * k));
  }
  EXPECT_EQ(grid.skipped(), 0);
}

TEST(FixedGrid, CanStartAfterOneInterval) {
  const FixedGrid::Clock::time_point start{seconds(100)};
  EXPECT_EQ(FixedGrid(start, 10, false).next(), start + seconds(10));
}

TEST(FixedGrid, SkipsAndCountsMissedPoints) {
  const FixedGrid::Clock::time_point start{seconds(0)};
  FixedGrid grid(start, 10, true);
  grid.ran(start + seconds(35));  // covers the points 10, 20 and 30
  EXPECT_EQ(grid.next(), start + seconds(40));
  EXPECT_EQ(grid.skipped(), 3);
  grid.ran(start + seconds(50));  // ends on a point: the next run begins there
  EXPECT_EQ(grid.next(), start + seconds(50));
  EXPECT_EQ(grid.skipped(), 3);
  grid.ran(start + seconds(60) + milliseconds(1));
  EXPECT_EQ(grid.next(), start + seconds(70));
  EXPECT_EQ(grid.skipped(), 4);
}

TEST(FixedGrid, ZeroIntervalIsDueAtOnce) {
  const FixedGrid::Clock::time_point start{seconds(0)};
  FixedGrid grid(start, 0, true);
  grid.ran(start + seconds(7));
  EXPECT_EQ(grid.next(), start + seconds(7));
  EXPECT_EQ(grid.skipped(), 0);
}

TEST(TimedService, RunsUntilTheStop) {
  Coordinator coordinator;
  std::atomic<int> calls{0};
  const TimedService service = loop(coordinator, 0.001, [&] {
    if (++calls == 20) coordinator.request_stop();
  });
  EXPECT_TRUE(service.started());
  EXPECT_TRUE(coordinator.wait_for_stop(kLong));
  coordinator.join(kLong);
  EXPECT_EQ(calls, 20);
  EXPECT_EQ(service.runs(), 20);
}

TEST(TimedService, StopInterruptsTheWait) {
  Coordinator coordinator;
  std::atomic<int> calls{0};
  loop(coordinator, 1e8, [&] { ++calls; }, {.name = "rare"});
  EXPECT_THAT(coordinator.running_threads(), ElementsAre("rare"));
  coordinator.join(kLong);
  EXPECT_EQ(calls, 0) << "the first run comes after one interval";
}

TEST(TimedService, RunsAtStartIfRequested) {
  Coordinator coordinator;
  loop(coordinator, 1e8, [&] { coordinator.request_stop(); }, {.run_at_start = true});
  EXPECT_TRUE(coordinator.wait_for_stop(kLong));
}

TEST(TimedService, LongRunsDoNotAccumulate) {
  Coordinator coordinator;
  std::atomic<int> calls{0};
  const TimedService service = loop(coordinator, 0.001, [&] {
    std::this_thread::sleep_for(milliseconds(20));
    if (++calls == 5) coordinator.request_stop();
  });
  EXPECT_TRUE(coordinator.wait_for_stop(kLong));
  coordinator.join(kLong);
  EXPECT_EQ(calls, 5);
  EXPECT_GE(service.skipped(), 5 * 19) << "20 ms cover at least 19 points";
}

TEST(TimedService, ExceptionStopsAllAndNamesTheService) {
  Coordinator coordinator;
  loop(coordinator, 0, [] { throw Error(ErrorKind::device, "the disk is full"); }, {.name = "disk watch"});
  EXPECT_TRUE(coordinator.wait_for_stop(kLong));
  try {
    coordinator.join(kLong);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "thread 'disk watch': the disk is full");
  }
}

TEST(TimedService, ChiefServiceStartsOnRankZeroOnly) {
  Coordinator coordinator;
  const auto started = [&](RunsOn where, int rank) {
    return loop(coordinator, 1, [] {}, {.runs_on = where, .rank = rank}).started();
  };
  EXPECT_TRUE(started(RunsOn::chief, 0));
  EXPECT_FALSE(started(RunsOn::chief, 1));
  EXPECT_TRUE(started(RunsOn::all_ranks, 1));
  EXPECT_EQ(coordinator.running_threads().size(), 2U);
}

TEST(TimedService, RejectsInvalidIntervals) {
  Coordinator coordinator;
  for (const double bad : {-1.0, 1e9, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(loop(coordinator, bad, [] {}), Error);
}

}  // namespace
}  // namespace lockstep
