// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The tree as pure arithmetic, for every number of ranks and shards up to 17, compared with a recursive
// definition.
#include "comm/tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

#include "core/range.h"

namespace lockstep {
namespace {

constexpr int kMost = 17;

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// The definition: the left child of n leaves has the largest power of two below n.
float reference(const std::vector<float>& leaves, int first, int last) {
  if (last - first == 1) return leaves[static_cast<std::size_t>(first)];
  int left = 1;
  while (2 * left < last - first) left *= 2;
  return reference(leaves, first, first + left) + reference(leaves, first + left, last);
}

std::vector<float> random_leaves(int count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> leaves(static_cast<std::size_t>(count));
  for (float& leaf : leaves) leaf = normal(generator) * std::ldexp(1.0F, static_cast<int>(generator() % 4));
  return leaves;
}

TEST(Tree, LeftSizes) {
  const int expected[] = {1, 2, 2, 4, 4, 4, 4, 8};
  for (int n = 2; n <= 9; ++n) EXPECT_EQ(tree_left_size(n), expected[n - 2]) << n;
  EXPECT_EQ(tree_left_size(1 << 30), 1 << 29);
  EXPECT_EQ(tree_left_size((1 << 30) + 1), 1 << 30);
}

TEST(Tree, MaximalSubtrees) {
  using V = std::vector<Subtree>;
  EXPECT_EQ(maximal_subtrees(0, 8, 8), (V{{0, 8}}));
  EXPECT_EQ(maximal_subtrees(2, 5, 8), (V{{2, 4}, {4, 5}}));
  EXPECT_EQ(maximal_subtrees(1, 8, 8), (V{{1, 2}, {2, 4}, {4, 8}}));
  EXPECT_EQ(maximal_subtrees(8, 12, 12), (V{{8, 12}}));
  EXPECT_EQ(maximal_subtrees(3, 6, 12), (V{{3, 4}, {4, 6}}));
  EXPECT_EQ(maximal_subtrees(3, 3, 12), V{});
}

TEST(Tree, MaximalSubtreesTileEveryRange) {
  for (int shards = 1; shards <= kMost; ++shards)
    for (int first = 0; first <= shards; ++first)
      for (int last = first; last <= shards; ++last) {
        int reached = first;
        const auto parts = maximal_subtrees(first, last, shards);
        for (const Subtree& part : parts) {
          EXPECT_EQ(part.first, reached);
          EXPECT_TRUE(is_tree_node(part.first, part.last, shards));
          reached = part.last;
        }
        EXPECT_EQ(reached, last);
        EXPECT_EQ(is_tree_node(first, last, shards), parts.size() == 1);
        EXPECT_LE(parts.size(), 2 * std::bit_width(static_cast<unsigned>(shards)));
      }
}

TEST(Tree, ShardsOfRanksCoverAllShards) {
  for (int ranks = 1; ranks <= kMost; ++ranks)
    for (int shards = 1; shards <= kMost; ++shards) {
      std::int64_t reached = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range range = shards_of_rank(rank, ranks, shards);
        EXPECT_EQ(range.first, reached);
        EXPECT_GE(range.size(), shards / ranks);
        EXPECT_LE(range.size(), (shards + ranks - 1) / ranks);
        for (std::int64_t shard = range.first; shard < range.last; ++shard)
          EXPECT_EQ(rank_of_shard(static_cast<int>(shard), ranks, shards), rank);
        reached = range.last;
      }
      EXPECT_EQ(reached, shards);
    }
}

// Leaves -> partials of each range by a binary counter -> the total by a plan over the ranges.
float sum_over_ranges(const std::vector<float>& leaves, const std::vector<Range>& ranges) {
  const int shards = static_cast<int>(leaves.size());
  const TreePlan plan(shards, ranges);
  std::vector<float> partials;
  for (const Range& range : ranges) {
    const CounterPlan counter(shards, range);
    std::vector<float> slots(static_cast<std::size_t>(counter.peak_slots()), NAN);
    for (int i = 0; i < counter.num_leaves(); ++i) {
      slots.at(static_cast<std::size_t>(counter.leaf_slot(i))) =
          leaves[static_cast<std::size_t>(range.first + i)];
      for (const TreeStep& step : counter.merges_after(i))
        slots.at(static_cast<std::size_t>(step.into)) += slots.at(static_cast<std::size_t>(step.from));
    }
    EXPECT_EQ(static_cast<std::size_t>(counter.num_results()),
              maximal_subtrees(static_cast<int>(range.first), static_cast<int>(range.last), shards).size());
    for (int k = 0; k < counter.num_results(); ++k) partials.push_back(slots[static_cast<std::size_t>(k)]);
  }
  EXPECT_EQ(plan.inputs().size(), partials.size());
  tree_combine(plan, [&](int into, int from) {
    EXPECT_LT(into, from);
    partials.at(static_cast<std::size_t>(into)) += partials.at(static_cast<std::size_t>(from));
  });
  EXPECT_EQ(plan.outputs().size(), 1U);
  return partials.at(static_cast<std::size_t>(plan.output_slot(0)));
}

TEST(Tree, SameBitsForEveryNumberOfRanks) {
  int differs_from_left_to_right = 0;
  for (int sample = 0; sample < 8 * kMost; ++sample) {
    const int shards = 1 + sample % kMost;
    const std::vector<float> leaves = random_leaves(shards, static_cast<unsigned>(sample));
    const float expected = reference(leaves, 0, shards);
    float plain = 0;
    for (float leaf : leaves) plain += leaf;
    differs_from_left_to_right += bits(plain) != bits(expected) ? 1 : 0;
    for (int ranks = 1; ranks <= kMost; ++ranks)
      EXPECT_EQ(bits(sum_over_ranges(leaves, shards_of_all_ranks(ranks, shards))), bits(expected))
          << ranks << " ranks, " << shards << " shards";
  }
  EXPECT_GT(differs_from_left_to_right, 3 * kMost) << "the data must be able to reveal a wrong order";
}

// The last merge, whoever makes it, and no other.
TEST(Tree, OneMergeIsTheRoot) {
  for (int shards = 1; shards <= kMost; ++shards)
    for (int ranks = 1; ranks <= kMost; ++ranks) {
      int merges = 0, roots = 0;
      const auto count = [&](std::span<const TreeStep> steps) {
        for (const TreeStep& step : steps) {
          ++merges;
          roots += step.root ? 1 : 0;
          EXPECT_TRUE(!step.root || merges == shards - 1) << shards << " shards, " << ranks << " ranks";
        }
      };
      const std::vector<Range> ranges = shards_of_all_ranks(ranks, shards);
      for (const Range& range : ranges) {
        const CounterPlan counter(shards, range);
        for (int i = 0; i < counter.num_leaves(); ++i) count(counter.merges_after(i));
      }
      count(TreePlan(shards, ranges).steps());
      EXPECT_EQ(merges, shards - 1);
      EXPECT_EQ(roots, shards > 1 ? 1 : 0) << shards << " shards, " << ranks << " ranks";
    }
}

// The threads of a rank: ranges within a range, merged to the rank's partials.
TEST(Tree, PlanWithinARange) {
  for (int shards = 1; shards <= kMost; ++shards)
    for (int first = 0; first < shards; ++first)
      for (int last = first + 1; last <= shards; ++last)
        for (int threads = 1; threads <= 5; ++threads) {
          const std::vector<float> leaves = random_leaves(shards, 99U + static_cast<unsigned>(shards));
          std::vector<Range> ranges;
          for (int thread = 0; thread < threads; ++thread) {
            const Range part = part_of(last - first, thread, threads);
            ranges.push_back({first + part.first, first + part.last});
          }
          const TreePlan plan(shards, ranges);
          std::vector<float> partials;
          for (const Subtree& input : plan.inputs())
            partials.push_back(reference(leaves, input.first, input.last));
          tree_combine(plan, [&](int into, int from) {
            partials[static_cast<std::size_t>(into)] += partials[static_cast<std::size_t>(from)];
          });
          const auto outputs = maximal_subtrees(first, last, shards);
          ASSERT_EQ(plan.outputs().size(), outputs.size());
          for (std::size_t k = 0; k < outputs.size(); ++k)
            EXPECT_EQ(bits(partials[static_cast<std::size_t>(plan.output_slot(static_cast<int>(k)))]),
                      bits(reference(leaves, outputs[k].first, outputs[k].last)));
        }
}

TEST(Tree, CounterKeepsFewSlots) {
  EXPECT_EQ(CounterPlan(8, {0, 8}).peak_slots(), 4);
  EXPECT_EQ(CounterPlan(1024, {0, 1024}).peak_slots(), 11);
  for (int shards = 1; shards <= 40; ++shards)
    EXPECT_LE(CounterPlan(shards, {0, shards}).peak_slots(),
              1 + static_cast<int>(std::bit_width(static_cast<unsigned>(shards - 1))));
  EXPECT_EQ(CounterPlan(8, {3, 3}).num_results(), 0);
}

}  // namespace
}  // namespace lockstep
