// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Small sums have the bits of a recursive sum in one process, with and without groups, with addition, with
// Chan's merge of moments (not symmetric in its operands) and with a merge that depends on the whole tree.
#include "comm/small_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "core/philox.h"
#include "support/mpi_world.h"

namespace lockstep {
namespace {

using Leaf = std::vector<double>;

double leaf_value(int shard, int i, int step) {
  const PhiloxBlock words = philox_words(3, 4, static_cast<std::uint32_t>(step),
                                         static_cast<std::uint32_t>(shard), static_cast<std::uint32_t>(i));
  return (philox_uniform(words[0]) - 0.5) *
         std::ldexp(1.0 + philox_uniform(words[2]), static_cast<int>(words[1] % 24));
}

void add(double* into, const double* right, int width) {
  for (int i = 0; i < width; ++i) into[i] += right[i];
}

// Chan, Golub, LeVeque 1983: (count, mean, M2) of two sets. Its bits depend on the order of the operands.
void chan(double* into, const double* right, int) {
  const double count = into[0] + right[0], delta = right[1] - into[1];
  into[1] += delta * (right[0] / count);
  into[2] += right[2] + delta * delta * (into[0] * right[0] / count);
  into[0] = count;
}

// Neither commutative nor associative: any other tree, or swapped operands, gives another number.
void spell(double* into, const double* right, int width) {
  for (int i = 0; i < width; ++i) into[i] = 0.7 * into[i] + 0.4 * right[i] * right[i] + 0.1;
}

using Merge = void (*)(double*, const double*, int);

Leaf make_leaf(Merge merge, int shard, int width, int step) {
  Leaf leaf(static_cast<std::size_t>(width));
  for (int i = 0; i < width; ++i) leaf[static_cast<std::size_t>(i)] = leaf_value(shard, i, step);
  if (merge == spell)
    for (double& value : leaf) value = std::fmod(std::fabs(value), 1.0);
  if (merge == chan) leaf[0] = 1 + shard % 3, leaf[2] = std::fabs(leaf[2]);
  return leaf;
}

Leaf reference(Merge merge, int first, int last, int width, int step) {
  if (last - first == 1) return make_leaf(merge, first, width, step);
  int left = 1;
  while (2 * left < last - first) left *= 2;
  Leaf into = reference(merge, first, first + left, width, step);
  const Leaf right = reference(merge, first + left, last, width, step);
  merge(into.data(), right.data(), width);
  return into;
}

void check(Merge merge, int shards, int group, int width) {
  SmallSum::Merge custom;
  if (merge != add) custom = [merge, width](double* into, const double* right) { merge(into, right, width); };
  SmallSum sum(test_world(), shards, group, width, custom);
  const int leaves = group == 0 ? shards : group;
  ASSERT_EQ(sum.num_groups(), shards / leaves);
  for (int step = 0; step < 3; ++step) {
    for (auto shard = static_cast<int>(sum.shards().first); shard < sum.shards().last; ++shard) {
      const Leaf leaf = make_leaf(merge, shard, width, step);
      std::copy(leaf.begin(), leaf.end(), sum.leaf(shard));
    }
    sum.reduce("small sum");
    for (int g = 0; g < sum.num_groups(); ++g) {
      const Leaf expected = reference(merge, g * leaves, (g + 1) * leaves, width, step);
      for (int i = 0; i < width; ++i)
        EXPECT_EQ(std::bit_cast<std::uint64_t>(sum.total(g)[i]),
                  std::bit_cast<std::uint64_t>(expected[static_cast<std::size_t>(i)]))
            << shards << " shards in groups of " << leaves << ", group " << g << ", element " << i
            << ", step " << step;
    }
  }
}

TEST(SmallSum, Addition) {
  for (const int shards : {1, 2, 3, 5, 8, 12, 16})
    for (const int width : {1, 3, 8, 65}) check(add, shards, 0, width);
}

TEST(SmallSum, NonSymmetricMerges) {
  for (const int shards : {1, 5, 8, 12, 13}) {
    check(chan, shards, 0, 3);
    check(spell, shards, 0, 4);
  }
}

TEST(SmallSum, Groups) {
  for (const Merge merge : {&add, &chan, &spell})
    for (const auto& [shards, group] :
         {std::array{8, 2}, {8, 4}, {8, 1}, {12, 3}, {12, 6}, {12, 4}, {15, 5}, {10, 5}})
      check(merge, shards, group, 3);
}

TEST(SmallSum, TotalsOfGroupsAreMergedInOrder) {
  const int width = 3;
  const auto merge = [](const TreeMerges& tree, double* in, double* out) {
    run_merges(tree, width, in, out, [](double* into, const double* right) { spell(into, right, width); });
  };
  for (const auto& [shards, group] : {std::array{8, 2}, {8, 1}, {12, 4}, {5, 0}}) {
    SmallSum sum(test_world(), shards, group, width, merge,
                 {.device = cpu_device(), .stream = nullptr, .whole = true});
    for (int step = 0; step < 2; ++step) {
      for (auto shard = static_cast<int>(sum.shards().first); shard < sum.shards().last; ++shard)
        std::ranges::copy(make_leaf(spell, shard, width, step), sum.leaf(shard));
      sum.reduce("small sum");
      const int leaves = shards / sum.num_groups();
      Leaf expected = reference(spell, 0, leaves, width, step);
      for (int g = 1; g < sum.num_groups(); ++g)
        spell(expected.data(), reference(spell, g * leaves, (g + 1) * leaves, width, step).data(), width);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), sum.whole()))
          << shards << " in groups of " << group;
      EXPECT_TRUE(std::ranges::equal(reference(spell, 0, leaves, width, step), std::span(sum.total(0), 3)));
    }
  }
}

TEST(SmallSum, MaximumAsControlFlag) {
  const int shards = 2 * test_world().size();
  SmallSum sum(test_world(), shards, 0, 2, [](double* into, const double* right) {
    into[0] = std::max(into[0], right[0]);
    into[1] = std::max(into[1], right[1]);
  });
  for (auto shard = static_cast<int>(sum.shards().first); shard < sum.shards().last; ++shard) {
    sum.leaf(shard)[0] = shard == shards - 1 ? 3 : 0;
    sum.leaf(shard)[1] = -shard;
  }
  sum.reduce("control");
  EXPECT_EQ(sum.total(0)[0], 3);
  EXPECT_EQ(sum.total(0)[1], 0);
}

TEST(SmallSum, ExchangesRankValues) {
  Communicator& world = test_world();
  SmallSum sum(world, 8, 0, 3);
  sum.set_rank_values(11);
  for (int step = 0; step < 3; ++step) {
    for (std::int64_t shard = sum.shards().first; shard < sum.shards().last; ++shard)
      std::fill_n(sum.leaf(static_cast<int>(shard)), 3, 1.0);
    for (int i = 0; i < 11; ++i)
      sum.rank_values()[static_cast<std::size_t>(i)] = 1000 * step + 100 * world.rank() + i;
    sum.reduce("values");
    EXPECT_EQ(sum.total(0)[2], 8);
    for (int rank = 0; rank < world.size(); ++rank)
      for (int i = 0; i < 11; ++i)
        EXPECT_EQ(sum.rank_values_of(rank)[static_cast<std::size_t>(i)], 1000 * step + 100 * rank + i);
  }
}

TEST(SmallSum, OneRankDoesNotCommunicate) {
  const auto group = test_world().duplicate("small sum");
  SmallSum sum(*group, 4, 0, 1);
  for (auto shard = static_cast<int>(sum.shards().first); shard < sum.shards().last; ++shard)
    *sum.leaf(shard) = 1;
  sum.reduce("counted");
  EXPECT_EQ(*sum.total(0), 4);
  EXPECT_EQ(group->bytes_moved() > 0, group->size() > 1);
}

}  // namespace
}  // namespace lockstep
