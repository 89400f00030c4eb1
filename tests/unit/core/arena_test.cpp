// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

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

struct Wanted {
  std::size_t bytes;
  int first, last;
};

/// Largest block first, each at the lowest offset that is free, by comparing it with all others.
std::vector<std::size_t> offsets_by_comparing_all(const std::vector<Wanted>& blocks) {
  std::vector<std::size_t> order(blocks.size()), placed, offsets(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  for (const std::size_t index : order) {
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      if (blocks[other].last < blocks[index].first || blocks[index].last < blocks[other].first) continue;
      if (offset + blocks[index].bytes <= offsets[other]) break;
      offset = std::max(offset, offsets[other] + blocks[other].bytes);
    }
    offsets[index] = offset;
    placed.push_back(index);
    std::stable_sort(placed.begin(), placed.end(),
                     [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
  }
  return offsets;
}

TEST(ArenaPlan, TakesTheLowestFreeOffset) {
  std::mt19937 random(11);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 8; ++round) {
    std::vector<Wanted> blocks;
    const int layers = 200, sizes = 1 + below(40);
    for (int i = 0; i < layers; ++i) {  // lifetimes of a net: the outer ones contain the inner ones
      const std::size_t bytes = 64 * static_cast<std::size_t>(1 + below(sizes));
      blocks.push_back({bytes, i, 2 * layers - i});
      blocks.push_back({bytes, 2 * layers - i - 1, 2 * layers - i});
      blocks.push_back({64, i, i + below(9)});
    }
    ArenaPlan plan;
    for (const Wanted& block : blocks) plan.add(block.bytes, block.first, block.last);
    plan.commit();
    const std::vector<std::size_t> expected = offsets_by_comparing_all(blocks);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      ASSERT_EQ(plan.offset_of(static_cast<int>(i)), expected[i]) << "round " << round << ", block " << i;
  }
}

// 200,000 blocks that overlap in time take a quarter of a second; comparing each pair takes a minute.
TEST(ArenaPlan, PlansTheManyBlocksOfASplit) {
  constexpr int kBlocks = 200'000;
  ArenaPlan plan;
  for (int i = 0; i < kBlocks; ++i) plan.add(64, i / 2, kBlocks);
  plan.commit();
  EXPECT_EQ(plan.total_bytes(), 64U * kBlocks);
}

}  // namespace
}  // namespace lockstep
