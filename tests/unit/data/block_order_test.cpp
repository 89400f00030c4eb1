// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/range.h"
#include "data/step_plan.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using Numbers = std::vector<std::int64_t>;

Numbers epoch_of(const StepPlan& plan, std::int64_t epoch) {
  Numbers order(static_cast<std::size_t>(plan.samples_per_epoch()));
  plan.samples(epoch, 0, order);
  return order;
}

/// Sets of a few files, each read from some record on, and plans of all kinds.
struct RandomCase {
  std::mt19937 random;
  StepPlanSpec spec;

  explicit RandomCase(unsigned seed) : random(seed) {
    std::vector<BlockGrid::Piece> pieces;
    std::int64_t samples = 0;
    for (int file = 0, files = number(1, 5); file < files; ++file) {
      pieces.push_back({samples, number(0, 40)});
      samples += number(1, 90);
    }
    spec = {.num_samples = samples,
            .batch_size = number(1, static_cast<int>(samples)),
            .shards = number(1, 9),
            .seed = static_cast<std::uint64_t>(number(0, 1000000)),
            .shuffle = Shuffle::blocks,
            .last_batch = number(0, 1) == 1 ? LastBatch::drop : LastBatch::smaller,
            .blocks = BlockGrid(pieces, samples, number(1, 20)),
            .window_blocks = number(1, 6)};
  }
  int number(int first, int last) { return std::uniform_int_distribution(first, last)(random); }
};

TEST(KeyedPermutation, TheInverseFindsTheIndex) {
  for (const std::int64_t count : {1, 2, 7, 64, 65, 1000, 4097}) {
    const KeyedPermutation permutation(count);
    const KeyedPermutation::Key key{99, 7, 3};
    for (std::int64_t i = 0; i < count; ++i)
      ASSERT_EQ(permutation.index_of(key, permutation.at(key, i)), i) << count;
  }
}

TEST(BlockGrid, BlocksBeginAtMultiplesOfTheirSizeInEachFile) {
  // Records 6 to 13 of one file, 0 to 4 of another, in blocks of 4.
  const BlockGrid grid({{0, 6}, {8, 0}}, 13, 4);
  ASSERT_EQ(grid.num_blocks(), 5);
  Numbers starts;
  for (std::int64_t block = 0; block < 5; ++block) starts.push_back(grid.samples(block).first);
  EXPECT_THAT(starts, ElementsAre(0, 2, 6, 8, 12));
  EXPECT_EQ(grid.samples(4).last, 13);
  for (std::int64_t sample = 0; sample < 13; ++sample) {
    const Range range = grid.samples(grid.block_of(sample));
    EXPECT_TRUE(range.first <= sample && sample < range.last) << sample;
  }
  Numbers missing;
  for (const BlockGrid::Short& item : grid.short_blocks()) missing.push_back(item.block * 10 + item.missing);
  EXPECT_THAT(missing, ElementsAre(2, 22, 43));
}

TEST(BlockOrder, EachSampleOncePerEpochForRandomFilesBatchesShardsAndWindows) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    const RandomCase random(seed);
    if (random.spec.last_batch == LastBatch::drop && random.spec.batch_size > random.spec.num_samples)
      continue;
    const StepPlan plan(random.spec);
    for (const std::int64_t epoch : {0, 1, 17}) {
      Numbers order = epoch_of(plan, epoch);
      std::ranges::sort(order);
      ASSERT_EQ(std::ranges::adjacent_find(order), order.end()) << "case " << seed;
      ASSERT_TRUE(order.front() >= 0 && order.back() < plan.spec().num_samples) << "case " << seed;
    }
  }
}

TEST(BlockOrder, PiecesOfAnEpochInAnyOrderEqualTheWhole) {
  RandomCase random(5);
  const StepPlan plan(random.spec), other(random.spec);
  const Numbers first = epoch_of(plan, 4);
  for (int i = 0; i < 200; ++i) {
    const auto start = random.number(0, static_cast<int>(first.size()) - 1);
    const std::int64_t epoch = random.number(0, 1) == 0 ? 4 : random.number(0, 9);
    Numbers piece(static_cast<std::size_t>(random.number(0, static_cast<int>(first.size()) - start)));
    other.samples(epoch, start, piece);
    if (epoch == 4) {
      ASSERT_TRUE(
          std::ranges::equal(piece, std::span(first).subspan(static_cast<std::size_t>(start), piece.size())));
    }
  }
}

// The reason for this order: what one rank reads, no other one does, but for the ends of the parts.
TEST(BlockOrder, RanksReadDifferentBlocks) {
  const BlockGrid grid({{0, 0}, {3000, 5}, {5000, 0}}, 9000, 16);
  const StepPlan plan({.num_samples = 9000,
                       .batch_size = 120,
                       .shards = 8,
                       .seed = 3,
                       .shuffle = Shuffle::blocks,
                       .blocks = grid,
                       .window_blocks = 8});
  const Numbers order = epoch_of(plan, 2);
  std::size_t read = 0;
  for (std::int64_t shard = 0; shard < 8; ++shard) {
    std::set<std::int64_t> blocks;
    for (std::int64_t batch = 0; batch < plan.steps_per_epoch(); ++batch) {
      const std::int64_t first = batch * 120;
      const Range range = plan.shard_range(std::min<std::int64_t>(120, 9000 - first), shard);
      for (std::int64_t i = range.first; i < range.last; ++i)
        blocks.insert(grid.block_of(order[static_cast<std::size_t>(first + i)]));
    }
    read += blocks.size();
  }
  EXPECT_LE(read, static_cast<std::size_t>(grid.num_blocks() + 8));
}

TEST(BlockOrder, AMicroshardNeedsTheBlocksOfOneWindow) {
  const BlockGrid grid({{0, 0}}, 6400, 10);
  const StepPlan plan({.num_samples = 6400,
                       .batch_size = 64,
                       .shards = 4,
                       .seed = 3,
                       .shuffle = Shuffle::blocks,
                       .blocks = grid,
                       .window_blocks = 8});
  const Numbers order = epoch_of(plan, 0);
  for (std::int64_t shard = 0; shard < 4; ++shard)
    for (std::int64_t batch = 0; batch < 100; batch += 5) {  // five batches are a window of 80 samples
      std::set<std::int64_t> blocks;
      for (std::int64_t b = batch; b < batch + 5; ++b)
        for (std::int64_t i = shard * 16; i < shard * 16 + 16; ++i)
          blocks.insert(grid.block_of(order[static_cast<std::size_t>(b * 64 + i)]));
      EXPECT_EQ(blocks.size(), 8U);
    }
}

TEST(BlockOrder, DependsOnSeedAndEpoch) {
  StepPlanSpec spec{.num_samples = 500,
                    .batch_size = 20,
                    .shards = 3,
                    .shuffle = Shuffle::blocks,
                    .blocks = BlockGrid({{0, 0}}, 500, 8)};
  const Numbers order = epoch_of(StepPlan(spec), 0);
  EXPECT_NE(order, epoch_of(StepPlan(spec), 1));
  spec.seed = std::uint64_t{1} << 32;
  EXPECT_NE(order, epoch_of(StepPlan(spec), 0));
}

// Runs are resumed and compared: the order of a seed must not change between versions.
TEST(BlockOrder, IsPinned) {
  const StepPlan plan({.num_samples = 1797,
                       .batch_size = 32,
                       .shards = 8,
                       .seed = 42,
                       .shuffle = Shuffle::blocks,
                       .blocks = BlockGrid({{0, 0}}, 1797, 50),
                       .window_blocks = 4});
  Numbers first(8);
  plan.samples(3, 0, first);
  EXPECT_THAT(first, ElementsAre(1618, 1524, 904, 1538, 1029, 1013, 187, 223));
}

TEST(BlockOrder, ABillionSamplesNeedNoIndex) {
  const std::int64_t samples = 1'000'000'007;
  const StepPlan plan({.num_samples = samples,
                       .batch_size = 4096,
                       .shards = 64,
                       .shuffle = Shuffle::blocks,
                       .blocks = BlockGrid({{0, 0}, {400'000'001, 3}}, samples, 64),
                       .window_blocks = 16});
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t sample = plan.sample_at(1, i * 999'999);
    ASSERT_TRUE(sample >= 0 && sample < samples);
    seen.insert(sample);
  }
  EXPECT_EQ(seen.size(), 1000U);
}

}  // namespace
}  // namespace lockstep
