// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A compressed sum has the bits of a recursive sum in one process that rounds every node of the tree to
// bfloat16, for several numbers of shards, bucket layouts and sizes, with and without overlap and parts.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "comm/gradient_reducer.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "support/gradient_leaves.h"
#include "support/mpi_world.h"

namespace lockstep {
namespace {

using Options = GradientReducer::Options;

float leaf(int shard, std::int64_t element) { return leaf_value(shard, element, 16); }

/// The value of a node before it is rounded.
float node(int first, int last, std::int64_t element, bool compress = true) {
  if (last - first == 1) return leaf(first, element);
  int left = 1;
  while (2 * left < last - first) left *= 2;
  const float a = node(first, first + left, element, compress),
              b = node(first + left, last, element, compress);
  return compress ? kept(a) + kept(b) : a + b;
}

std::int64_t wrong_bits(const float* values, Range range, int shards, int step) {
  std::int64_t wrong = 0;
  for (std::int64_t i = range.first; i < range.last; ++i)
    wrong += std::bit_cast<std::uint32_t>(values[i]) !=
                     std::bit_cast<std::uint32_t>(kept(node(0, shards, i + step)))
                 ? 1
                 : 0;
  return wrong;
}

void run_step(GradientReducer& reducer, std::int64_t count, int step) {
  for (int k = 0; k < reducer.num_partials(); ++k) {
    const Subtree tree = reducer.partial_subtree(k);
    // Of one rank, the caller's last addition has rounded the total; a single leaf comes as it is.
    const bool total = test_world().size() == 1 && tree.size() > 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = node(tree.first, tree.last, i + step);
      reducer.partial(k)[i] = total ? kept(value) : value;
    }
  }
  for (int bucket = static_cast<int>(reducer.buckets().size()) - 1; bucket >= 0; --bucket)
    reducer.start(bucket);
  reducer.wait_all();
}

void check(int shards, std::int64_t count, int buckets, Options options, int steps = 2,
           ThreadPool* pool = nullptr) {
  std::get<HostTreeSum>(options.sum).nodes = HostTreeSum::Nodes::rounded;
  GradientReducer reducer(test_world(), pool, shards, count, cut(count, buckets), options);
  for (int step = 0; step < steps; ++step) {
    run_step(reducer, count, step);
    EXPECT_EQ(wrong_bits(reducer.result(), {0, count}, shards, step), 0)
        << shards << " shards, " << count << " elements, " << buckets << " buckets, step " << step;
  }
}

TEST(CompressedReduction, SameBitsAsOneProcess) {
  for (const int shards : {8, 5, 12, 1, 16})
    for (const std::int64_t count :
         {std::int64_t{1}, std::int64_t{17}, std::int64_t{5003}, std::int64_t{20000}})
      for (const int buckets : {1, 3})
        for (const bool overlap : {false, true})
          for (const bool shared : {false, true})
            check(shards, count, buckets, {.sum = HostTreeSum{.shared_memory = shared}, .overlap = overlap});
}

TEST(CompressedReduction, RandomShardsAndSizes) {
  std::mt19937 generator(11);  // the same numbers on all ranks
  for (int i = 0; i < 30; ++i) {
    const auto shards = static_cast<int>(1 + generator() % 40);
    const auto count = static_cast<std::int64_t>(1 + generator() % 9000);
    const auto buckets = static_cast<int>(1 + generator() % 4);
    const bool overlap = generator() % 2 == 0, shared = generator() % 2 == 0;
    check(shards, count, buckets, {.sum = HostTreeSum{.shared_memory = shared}, .overlap = overlap}, 1);
  }
}

TEST(CompressedReduction, InPiecesAndBlocks) {
  for (const int shards : {8, 5}) check(shards, 30003, 2, {.sum = HostTreeSum{.piece_bytes = 1024}}, 1);
  check(8, 1200003, 1, {}, 1);  // more than a block of 16-bit numbers
}

TEST(CompressedReduction, WithAThreadPool) {
  ThreadPool pool(3);
  for (const int shards : {8, 5})
    for (const bool shared : {false, true})
      check(shards, 400003, 1, {.sum = HostTreeSum{.shared_memory = shared}}, 1, &pool);
}

/// The owner of a part has the same bits; gather() sends what it is given without rounding.
TEST(CompressedReduction, PartsHaveTheSameBits) {
  const std::int64_t count = 40007;
  for (const auto& [shards, shared] :
       {std::pair{8, false}, {5, false}, {12, false}, {1, false}, {8, true}, {5, true}, {1, true}}) {
    HostTreeSum sum{.nodes = HostTreeSum::Nodes::rounded, .shared_memory = shared};
    sum.ownership = std::make_shared<Ownership>(cut(count, 3), test_world().size(), shards,
                                                [](std::int64_t i) { return (i + 47) / 48 * 48; });
    GradientReducer reducer(test_world(), nullptr, shards, count, cut(count, 3), {.sum = sum});
    run_step(reducer, count, 0);
    std::vector<float> variables(static_cast<std::size_t>(count));
    for (const Range& part : sum.ownership->parts(test_world().rank())) {
      EXPECT_EQ(wrong_bits(reducer.result(), part, shards, 0), 0) << shards << " shards";
      for (std::int64_t i = part.first; i < part.last; ++i)
        variables[static_cast<std::size_t>(i)] = leaf(99, i);
    }
    reducer.gather(variables.data(), "variables");
    for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(variables[static_cast<std::size_t>(i)], leaf(99, i));
  }
}

TEST(CompressedReduction, SendsHalfTheBytes) {
  const std::int64_t count = 1 << 20;
  for (const int shards : {8, 5}) {
    GradientReducer plain(test_world(), nullptr, shards, count, cut(count, 4));
    GradientReducer compressed(test_world(), nullptr, shards, count, cut(count, 4),
                               {.sum = HostTreeSum{.nodes = HostTreeSum::Nodes::rounded}});
    EXPECT_NEAR(2.0 * static_cast<double>(compressed.bytes_per_step()),
                static_cast<double>(plain.bytes_per_step()),
                64);  // parts are counted in whole bytes
    std::uint64_t moved[2] = {0, 0};
    for (GradientReducer* reducer : {&plain, &compressed}) {
      const std::uint64_t before = reducer->communicator().bytes_moved();
      for (int bucket = 0; bucket < 4; ++bucket) reducer->start(bucket);
      reducer->wait_all();
      moved[reducer == &plain ? 0 : 1] = reducer->communicator().bytes_moved() - before;
    }
    EXPECT_EQ(2 * moved[1], moved[0]) << shards << " shards";
    EXPECT_EQ(moved[1] > 0, test_world().size() > 1);
  }
}

TEST(CompressedReduction, NonFiniteNumbersReachEveryRank) {
  const float quiet = std::bit_cast<float>(0x7F800001U);  // a NaN that truncation would turn into infinity
  for (const std::int64_t count : {std::int64_t{100}, std::int64_t{20000}}) {
    GradientReducer reducer(test_world(), nullptr, 8, count, {{0, count}},
                            {.sum = HostTreeSum{.nodes = HostTreeSum::Nodes::rounded}});
    for (int k = 0; k < reducer.num_partials(); ++k) {
      std::fill_n(reducer.partial(k), count, 1.0F);
      if (reducer.partial_subtree(k).last != 8) continue;
      reducer.partial(k)[3] = quiet;
      reducer.partial(k)[4] = -INFINITY;
      reducer.partial(k)[5] = std::numeric_limits<float>::max();  // bfloat16 has no such number
      reducer.partial(k)[count - 1] = INFINITY;
    }
    reducer.start(0);
    reducer.wait_all();
    EXPECT_TRUE(std::isnan(reducer.result()[3]));
    EXPECT_EQ(reducer.result()[4], -INFINITY);
    EXPECT_EQ(reducer.result()[count - 1], INFINITY);
    if (test_world().size() > 1) {
      EXPECT_EQ(reducer.result()[5], INFINITY);
    }
    EXPECT_TRUE(std::isfinite(reducer.result()[6]));
  }
}

TEST(CompressedReduction, TestDataRevealARoundingThatIsMissing) {
  int differs = 0, without_leaves = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    differs += kept(node(0, 8, i, false)) != kept(node(0, 8, i)) ? 1 : 0;
    without_leaves += kept(leaf(0, i)) + kept(leaf(1, i)) != leaf(0, i) + leaf(1, i);
  }
  EXPECT_GT(differs, 100);
  EXPECT_GT(without_leaves, 900);
}

}  // namespace
}  // namespace lockstep
