// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/error.h"

namespace lockstep {
namespace {

TEST(ArenaPlan, DisjointLifetimesShareAddresses) {
  ArenaPlan plan;
  const auto a = plan.add(1000, 0, 1), b = plan.add(1000, 2, 3);
  plan.commit();
  EXPECT_EQ(plan.offset_of(a), plan.offset_of(b));
  EXPECT_EQ(plan.total_bytes(), 1024U);  // rounded up to 64
  EXPECT_EQ(plan.bytes_of(a), 1024U);
}

TEST(ArenaPlan, LifetimeIncludesBothEnds) {
  ArenaPlan plan;
  const auto a = plan.add(64, 0, 1), b = plan.add(64, 1, 2);
  plan.commit();
  EXPECT_NE(plan.offset_of(a), plan.offset_of(b));
}

TEST(ArenaPlan, UseExtendsTheLifetime) {
  ArenaPlan plan;
  const auto a = plan.add(64, 0, 0), b = plan.add(64, 5, 5);
  plan.use(a, 7);
  plan.commit();
  EXPECT_NE(plan.offset_of(a), plan.offset_of(b));
}

TEST(ArenaPlan, RejectsWrongCallOrder) {
  ArenaPlan plan;
  const auto a = plan.add(64);
  EXPECT_THROW(plan.offset_of(a), Error);
  EXPECT_THROW(plan.add(64, 3, 2), Error);
  plan.commit();
  EXPECT_THROW(plan.add(64), Error);
  EXPECT_THROW(plan.use(a, 1), Error);
}

TEST(ArenaPlan, RandomPlansDoNotOverlapAndHoldThePeak) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 200; ++round) {
    struct Wish {
      int first, last;
    };
    ArenaPlan plan;
    std::vector<Wish> wishes;
    const int count = 1 + below(40);
    for (int i = 0; i < count; ++i) {
      const int first = below(20);
      const int last = below(10) == 0 ? ArenaPlan::kForever : first + below(6);
      wishes.push_back({first, last});
      plan.add(static_cast<std::size_t>(below(5000)), first, last);
    }
    plan.commit();
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(plan.offset_of(i) % ArenaPlan::kAlignment, 0U);
      ASSERT_LE(plan.offset_of(i) + plan.bytes_of(i), plan.total_bytes());
      for (int j = 0; j < i; ++j) {
        const Wish &a = wishes[static_cast<std::size_t>(i)], &b = wishes[static_cast<std::size_t>(j)];
        if (a.last < b.first || b.last < a.first || plan.bytes_of(i) == 0 || plan.bytes_of(j) == 0) continue;
        ASSERT_TRUE(plan.offset_of(i) + plan.bytes_of(i) <= plan.offset_of(j) ||
                    plan.offset_of(j) + plan.bytes_of(j) <= plan.offset_of(i))
            << "round " << round << ", blocks " << i << " and " << j;
      }
    }
    std::size_t peak = 0, sum = 0;
    for (int i = 0; i < count; ++i) sum += plan.bytes_of(i);
    for (int time = 0; time < 30; ++time) {
      std::size_t alive = 0;
      for (int i = 0; i < count; ++i) {
        const Wish& wish = wishes[static_cast<std::size_t>(i)];
        if (wish.first <= time && time <= wish.last) alive += plan.bytes_of(i);
      }
      peak = std::max(peak, alive);
    }
    ASSERT_GE(plan.total_bytes(), peak);
    ASSERT_LE(plan.total_bytes(), sum);
  }
}

}  // namespace
}  // namespace lockstep
