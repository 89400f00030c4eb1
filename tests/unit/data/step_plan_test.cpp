// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/step_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/range.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using Sizes = std::vector<std::int64_t>;

StepPlan plan_of(std::int64_t samples, std::int64_t batch, std::int64_t shards = 1, bool drop = false,
                 std::uint64_t seed = 1) {
  return StepPlan({.num_samples = samples,
                   .batch_size = batch,
                   .shards = shards,
                   .seed = seed,
                   .shuffle = Shuffle::samples,
                   .last_batch = drop ? LastBatch::drop : LastBatch::smaller});
}

Sizes order_of(const StepPlan& plan, std::int64_t epoch) {
  Sizes order(static_cast<std::size_t>(plan.spec().num_samples));
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = plan.sample_at(epoch, static_cast<std::int64_t>(i));
  return order;
}

bool is_permutation_of_all(Sizes order) {
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

TEST(StepPlan, EachSampleOncePerEpochForSmallSizes) {
  for (std::int64_t samples = 1; samples <= 200; ++samples)
    for (std::int64_t epoch = 0; epoch < 4; ++epoch)
      for (const std::uint64_t seed : {0ULL, 12345678901234567ULL})
        ASSERT_TRUE(is_permutation_of_all(order_of(plan_of(samples, 1, 1, false, seed), epoch)))
            << samples << " " << epoch;
}

TEST(StepPlan, EachSampleOncePerEpochForLargeSizes) {
  for (const std::int64_t samples : {1023, 1024, 1025, 1797, 60000, 65537, 300007})
    EXPECT_TRUE(is_permutation_of_all(order_of(plan_of(samples, 32), 3))) << samples;
}

TEST(StepPlan, PositionsBeyond32BitsStayInRangeAndDiffer) {
  const std::int64_t samples = (std::int64_t{1} << 40) + 12345;
  const StepPlan plan = plan_of(samples, 1);
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t sample = plan.sample_at(0, i * 1099511640);
    ASSERT_GE(sample, 0);
    ASSERT_LT(sample, samples);
    seen.insert(sample);
  }
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(StepPlan, OrderDependsOnSeedAndEpochOnly) {
  const Sizes order = order_of(plan_of(1797, 32), 5);
  EXPECT_EQ(order, order_of(plan_of(1797, 64, 8, true), 5)) << "not on batch size, shards, remainder";
  EXPECT_NE(order, order_of(plan_of(1797, 32), 6));
  EXPECT_NE(order, order_of(plan_of(1797, 32, 1, false, 2), 5));
  EXPECT_NE(order, order_of(plan_of(1797, 32, 1, false, 1 | 1ULL << 32), 5))
      << "the upper half of the seed matters";
}

// The order for a seed must not change between versions, because runs are resumed and compared.
TEST(StepPlan, OrderIsPinned) {
  const StepPlan plan = plan_of(1797, 32, 1, false, 42);
  Sizes first;
  for (std::int64_t i = 0; i < 8; ++i) first.push_back(plan.sample_at(3, i));
  EXPECT_THAT(first, ElementsAre(1263, 409, 820, 838, 109, 1463, 1298, 1759));
}

TEST(StepPlan, WithoutShuffleInFileOrder) {
  const StepPlan plan({.num_samples = 50, .batch_size = 7, .shuffle = Shuffle::none});
  for (std::int64_t epoch = 0; epoch < 3; ++epoch)
    for (std::int64_t i = 0; i < 50; ++i) EXPECT_EQ(plan.sample_at(epoch, i), i);
}

// Every order of n samples is about equally frequent: chi-square with n! - 1 degrees of freedom.
TEST(StepPlan, OrdersOfFewSamplesAreUniform) {
  constexpr int kEpochs = 36000;
  std::size_t factorial = 2;
  for (const std::int64_t n : {3, 4}) {
    factorial *= static_cast<std::size_t>(n);
    std::map<Sizes, int> counts;
    const StepPlan plan = plan_of(n, 1);
    for (int epoch = 0; epoch < kEpochs; ++epoch) ++counts[order_of(plan, epoch)];
    ASSERT_EQ(counts.size(), factorial) << n;
    const double expected = kEpochs / static_cast<double>(factorial),
                 freedom = static_cast<double>(factorial) - 1;
    double chi_square = 0;
    for (const auto& [order, count] : counts) chi_square += std::pow(count - expected, 2) / expected;
    EXPECT_LT(chi_square, freedom + 6 * std::sqrt(2 * freedom)) << n;
  }
}

// Each sample is about equally frequent at each position: (n-1)^2 degrees of freedom, which is the mean; the
// variance is twice that.
TEST(StepPlan, SamplesAndPositionsAreIndependent) {
  for (const std::int64_t n : {7, 30, 64, 100}) {
    const int epochs = static_cast<int>(n) * 50;
    std::vector<int> counts(static_cast<std::size_t>(n * n));
    const StepPlan plan = plan_of(n, 1);
    for (int epoch = 0; epoch < epochs; ++epoch)
      for (std::int64_t i = 0; i < n; ++i)
        ++counts[static_cast<std::size_t>(i * n + plan.sample_at(epoch, i))];
    double chi_square = 0;
    for (const int count : counts) chi_square += std::pow(count - 50.0, 2) / 50.0;
    const double freedom = static_cast<double>((n - 1) * (n - 1));
    EXPECT_LT(std::abs(chi_square - freedom), 6 * std::sqrt(2 * freedom)) << n;
  }
}

// Neighbours in the file are not neighbours in the epoch. A random order has 2 such pairs on average
// (Poisson).
TEST(StepPlan, NeighboursAreSeparated) {
  const StepPlan plan = plan_of(10000, 32);
  int pairs = 0;
  for (std::int64_t epoch = 0; epoch < 50; ++epoch) {
    const Sizes order = order_of(plan, epoch);
    for (std::size_t i = 1; i < order.size(); ++i) pairs += std::abs(order[i] - order[i - 1]) == 1;
  }
  EXPECT_NEAR(pairs, 100, 60);
}

TEST(StepPlan, BatchesCoverAnEpochFromAnyCursor) {
  for (const bool drop : {false, true})
    for (std::int64_t samples = 1; samples <= 40; ++samples)
      for (std::int64_t size = 1; size <= 42; ++size) {
        if (drop && size > samples) {
          EXPECT_THROW(plan_of(samples, size, 1, drop), Error);
          continue;
        }
        const StepPlan plan = plan_of(samples, size, 1, drop);
        for (std::int64_t start = 0; start <= samples; ++start) {
          Cursor cursor{7, start};
          std::int64_t at = start, steps = 0;
          while (true) {
            const Batch batch = plan.batch(cursor);
            const Cursor next = plan.advance(cursor);
            if (batch.epoch != 7) {  // the start was already the end
              ASSERT_TRUE(at == samples || (drop && samples - at < size))
                  << samples << " " << size << " " << start;
              ASSERT_EQ(batch.epoch, 8);
              ASSERT_EQ(batch.first, 0);
              break;
            }
            ASSERT_EQ(batch.first, at);
            ASSERT_GE(batch.count, 1);
            ASSERT_TRUE(batch.count == size || (!drop && batch.count < size && at + batch.count == samples));
            at += batch.count;
            ++steps;
            cursor = next;
            if (cursor.epoch == 7) {
              ASSERT_EQ(cursor.samples_consumed, at);
            } else {
              ASSERT_EQ(cursor, (Cursor{8, 0}));
            }
          }
          if (start == 0) {
            ASSERT_EQ(steps, plan.steps_per_epoch());
            ASSERT_EQ(at, plan.samples_per_epoch());
            ASSERT_EQ(at, drop ? samples / size * size : samples);
          } else if (!drop) {
            ASSERT_EQ(at, samples);
          }
        }
      }
}

TEST(StepPlan, ShardRangesCoverTheBatchNearlyEqually) {
  for (std::int64_t shards = 1; shards <= 17; ++shards) {
    const StepPlan plan = plan_of(100, 50, shards);
    for (std::int64_t count = 0; count <= 70; ++count) {
      std::int64_t at = 0;
      for (std::int64_t shard = 0; shard < shards; ++shard) {
        const Range range = plan.shard_range(count, shard);
        ASSERT_EQ(range.first, at);
        ASSERT_GE(range.last - range.first, count / shards);
        ASSERT_LE(range.last - range.first, (count + shards - 1) / shards);
        at = range.last;
      }
      ASSERT_EQ(at, count);
    }
  }
}

TEST(StepPlan, DistinctShardSizesAgainstBruteForce) {
  for (const bool drop : {false, true})
    for (std::int64_t samples = 1; samples <= 24; ++samples)
      for (std::int64_t size = 1; size <= 26; ++size)
        for (std::int64_t shards = 1; shards <= 9; ++shards) {
          if (drop && size > samples) continue;
          const StepPlan plan = plan_of(samples, size, shards, drop);
          for (std::int64_t start = 0; start <= samples; ++start) {
            std::set<std::int64_t> sizes;
            for (Cursor cursor{0, start}; cursor.epoch < 3; cursor = plan.advance(cursor))
              for (std::int64_t shard = 0; shard < shards; ++shard) {
                const Range range = plan.shard_range(plan.batch(cursor).count, shard);
                if (range.last > range.first) sizes.insert(range.last - range.first);
              }
            ASSERT_EQ(plan.distinct_shard_sizes({0, start}), Sizes(sizes.begin(), sizes.end()))
                << samples << " samples, batch " << size << ", shards " << shards << ", start " << start
                << ", drop " << drop;
          }
        }
}

TEST(StepPlan, BadSpecsAreConfigErrors) {
  for (const StepPlanSpec& spec :
       {StepPlanSpec{.num_samples = 0, .batch_size = 1}, StepPlanSpec{.num_samples = 1, .batch_size = 0},
        StepPlanSpec{.num_samples = 1, .batch_size = 1, .shards = 0},
        StepPlanSpec{.num_samples = 3, .batch_size = 4, .last_batch = LastBatch::drop}}) {
    try {
      const StepPlan plan(spec);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
    }
  }
}

}  // namespace
}  // namespace lockstep
