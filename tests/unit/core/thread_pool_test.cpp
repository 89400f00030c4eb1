// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/cpu.h"
#include "core/error.h"
#include "core/range.h"

namespace lockstep {
namespace {

TEST(ThreadPool, EveryThreadRunsOnceCallerIsThreadZero) {
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(threads));
    std::vector<std::thread::id> ids(static_cast<std::size_t>(threads));
    pool.run([&](int thread) {
      calls[static_cast<std::size_t>(thread)].fetch_add(1);
      ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id();
    });
    for (const auto& count : calls) EXPECT_EQ(count.load(), 1);
    EXPECT_EQ(ids[0], std::this_thread::get_id());
    for (std::size_t i = 1; i < ids.size(); ++i) EXPECT_NE(ids[i], ids[0]);
  }
}

// Empty rounds, with few threads and with more threads than cores. A lost wake-up would hang until CTest's
// time limit.
TEST(ThreadPool, ManyShortRounds) {
  for (int threads : {2, available_cores() + 3}) {
    ThreadPool pool(threads);
    std::vector<long> counts(static_cast<std::size_t>(threads) * 16);
    constexpr int kRounds = 3000;
    for (int round = 0; round < kRounds; ++round)
      pool.run([&](int thread) { ++counts[static_cast<std::size_t>(thread) * 16]; });
    for (int thread = 0; thread < threads; ++thread)
      EXPECT_EQ(counts[static_cast<std::size_t>(thread) * 16], kRounds);
  }
}

TEST(ThreadPool, WakesUpAfterALongPause) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  pool.run([&](int) { ++calls; });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // longer than the spin phase
  pool.run([&](int thread) {
    if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++calls;
  });
  EXPECT_EQ(calls.load(), 4);
}

TEST(ThreadPool, RethrowsTheLowestThreadsException) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ended{0};
    try {
      pool.run([&](int thread) {
        if (thread == 3) std::this_thread::yield();
        ++ended;
        if (thread >= 2) throw std::runtime_error("thread " + std::to_string(thread));
      });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "thread 2");
      EXPECT_EQ(ended.load(), 4);
    }
    pool.run([](int) {});  // the pool still works, and the old error is cleared
  }
}

TEST(ThreadPool, NeedsAtLeastOneThread) { EXPECT_THROW(ThreadPool(0), Error); }

// The limit on memory stands for that on threads, which does not hold for root.
TEST(ThreadPool, NamesAThreadThatCannotStart) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more address space than the limit";
#endif
  const auto start = [] {
    const rlimit limit{std::size_t{512} << 20, std::size_t{512} << 20};
    setrlimit(RLIMIT_AS, &limit);
    try {
      const ThreadPool pool(1000);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(error.kind() == ErrorKind::device ? 3 : 4);
    }
    std::_Exit(5);
  };
  EXPECT_EXIT(start(), testing::ExitedWithCode(3), "the compute thread [0-9]+ of 1000 cannot be started");
}

TEST(PartOf, PartsCoverTheCountAndCutAtTheGrain) {
  for (std::int64_t count : {0, 1, 5, 64, 1000})
    for (int parts : {1, 2, 3, 7})
      for (std::int64_t grain : {1, 8, 64}) {
        std::int64_t next = 0, least = count, most = 0;
        for (int part = 0; part < parts; ++part) {
          const Range range = part_of(count, part, parts, grain);
          ASSERT_EQ(range.first, next);
          ASSERT_GE(range.size(), 0);
          ASSERT_TRUE(range.first % grain == 0 || range.first == count);
          least = std::min(least, range.size());
          most = std::max(most, range.size());
          next = range.last;
        }
        ASSERT_EQ(next, count);
        if (grain == 1) {
          ASSERT_LE(most - least, 1);
        }
      }
}

}  // namespace
}  // namespace lockstep
