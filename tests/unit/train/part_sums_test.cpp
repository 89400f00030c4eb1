// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/part_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/thread_pool.h"

namespace lockstep {
namespace {

constexpr std::int64_t kElements = 3000;

/// Numbers whose sum depends on the order.
float value(int part, std::int64_t element) {
  std::mt19937 random(static_cast<unsigned>(part * 7919 + element));
  return std::uniform_real_distribution<float>(-1, 1)(random) * (part % 3 == 0 ? 1e6F : 1e-3F);
}

Buffer gradient(PartBuffers& buffers, int part) {
  Buffer buffer = buffers.take();
  for (std::int64_t i = 0; i < kElements; ++i) PartBuffers::values(buffer)[i] = value(part, i);
  return buffer;
}

/// The definition: comm/tree.h.
float tree_sum(int first, int last, std::int64_t element, const std::vector<char>& kept, bool& any) {
  if (last - first == 1) {
    any = kept[static_cast<std::size_t>(first)] != 0;
    return any ? value(first, element) : 0;
  }
  bool left_any = false, right_any = false;
  const int middle = first + tree_left_size(last - first);
  const float left = tree_sum(first, middle, element, kept, left_any);
  const float right = tree_sum(middle, last, element, kept, right_any);
  any = left_any || right_any;
  return left_any && right_any ? left + right : left_any ? left : right;
}

void expect_sum(const PartSums& sums, const std::vector<char>& kept) {
  for (std::int64_t i = 0; i < kElements; i += 97) {
    bool any = false;
    EXPECT_EQ(sums.total()[i], tree_sum(0, static_cast<int>(kept.size()), i, kept, any)) << i;
  }
}

TEST(PartSums, HaveTheBitsOfTheTreeInEveryOrderOfArrival) {
  ThreadPool pool(2);
  std::mt19937 random(1);
  for (int parts = 1; parts <= 13; ++parts) {
    PartBuffers buffers(kElements);
    PartSums sums(parts, true, buffers, host_arithmetic(), pool);
    std::vector<int> order(static_cast<std::size_t>(parts));
    std::iota(order.begin(), order.end(), 0);
    for (int round = 0; round < 5; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      sums.clear();
      for (const int part : order) sums.add(part, gradient(buffers, part));
      EXPECT_EQ(sums.added(), parts);
      expect_sum(sums, std::vector<char>(order.size(), 1));
    }
  }
}

TEST(PartSums, LeaveOutPartsThatAreNotKeptOrNeverCame) {
  ThreadPool pool(1);
  PartBuffers buffers(kElements);
  PartSums sums(6, false, buffers, host_arithmetic(), pool);
  const std::vector<std::vector<char>> kept{
      {1, 1, 0, 0, 0, 1}, {0, 0, 0, 0, 1, 1}, {0, 1, 1, 0, 1, 0}, {0, 0, 0, 1, 0, 0}};
  for (const std::vector<char>& parts : kept) {
    sums.clear();
    for (int part = 5; part >= 0; --part)
      if (part != 2 || parts[2] != 0)
        sums.add(part, gradient(buffers, part));  // the others come, and are dropped
    sums.close(parts);
    expect_sum(sums, parts);
  }
}

}  // namespace
}  // namespace lockstep
