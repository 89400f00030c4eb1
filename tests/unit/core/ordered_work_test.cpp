// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace lockstep {
namespace {

constexpr std::int64_t kCount = 200;

TEST(OrderedWork, TakesAllItemsInOrderAndNoMoreAtATimeThanAllowed) {
  for (const int threads : {1, 2, 3, 7}) {
    std::vector<std::int64_t> taken;
    std::atomic<int> present{0}, most{0};
    ordered_work<std::int64_t>(
        threads, kCount,
        [&](std::int64_t i) {
          const int now = ++present;
          int seen = most;
          while (seen < now && !most.compare_exchange_weak(seen, now)) {
          }
          return i * i;
        },
        [&](std::int64_t i, std::int64_t item) {
          EXPECT_EQ(item, i * i);
          taken.push_back(i);
          --present;
        });
    std::vector<std::int64_t> all(kCount);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(taken, all);
    EXPECT_LE(most, 2 * threads);
  }
}

TEST(OrderedWork, RethrowsTheErrorOfTheLowestItemAfterThoseBeforeIt) {
  for (const int threads : {1, 2, 5}) {
    std::int64_t taken = 0;
    try {
      ordered_work<int>(
          threads, kCount,
          [](std::int64_t i) {
            if (i == 40 || i == 41) throw std::runtime_error(std::to_string(i));
            return 0;
          },
          [&](std::int64_t i, int) { EXPECT_EQ(i, taken++); });
      ADD_FAILURE() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "40");
    }
    EXPECT_EQ(taken, 40);
  }
}

TEST(OrderedWork, AnErrorOfTheTakerEndsTheThreads) {
  std::atomic<std::int64_t> made{0};
  const auto work = [&] {
    ordered_work<int>(
        3, kCount, [&](std::int64_t) { return static_cast<int>(++made); },
        [](std::int64_t i, int) {
          if (i == 5) throw std::runtime_error("full");
        });
  };
  EXPECT_THROW(work(), std::runtime_error);
  EXPECT_LE(made, 5 + 2 * 3);
}

TEST(OrderedWork, OfNothing) {
  ordered_work<int>(
      4, 0, [](std::int64_t) { return 0; }, [](std::int64_t, int) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace lockstep
