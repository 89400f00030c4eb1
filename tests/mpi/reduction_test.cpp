// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The gradient sum has the bits of a recursive sum in one process, for this number of ranks, for several
// numbers of shards, bucket layouts and sizes, with and without overlap.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "comm/gradient_reducer.h"
#include "core/philox.h"
#include "support/mpi_world.h"

namespace lockstep {
namespace {

// Differs per shard and element, with magnitudes far apart, so that another order gives other bits.
float leaf_value(int shard, std::int64_t element) {
  const PhiloxBlock words =
      philox_words(7, 1, 2, static_cast<std::uint32_t>(shard), static_cast<std::uint32_t>(element));
  return (philox_uniform(words[0]) - 0.5F) * std::ldexp(1.0F, static_cast<int>(words[1] % 16));
}

float reference(int first, int last, std::int64_t element) {
  if (last - first == 1) return leaf_value(first, element);
  int left = 1;
  while (2 * left < last - first) left *= 2;
  return reference(first, first + left, element) + reference(first + left, last, element);
}

std::vector<Range> cut(std::int64_t count, int buckets) {
  std::vector<Range> all;
  for (int i = 0; i < buckets; ++i) all.push_back(part_of(count, i, buckets));
  return all;
}

void check(int shards, std::int64_t count, int buckets, GradientReducer::Options options, int steps = 2) {
  Communicator& world = test_world();
  GradientReducer reducer(world, nullptr, shards, count, cut(count, buckets), options);
  ASSERT_TRUE(world.size() > 1 || reducer.num_partials() == 1);
  for (int step = 0; step < steps; ++step) {
    for (int k = 0; k < reducer.num_partials(); ++k) {
      const Subtree subtree = reducer.partial_subtree(k);
      for (std::int64_t i = 0; i < count; ++i)
        reducer.partial(k)[i] = reference(subtree.first, subtree.last, i + step);
    }
    for (int bucket = buckets - 1; bucket >= 0; --bucket) reducer.start(bucket);
    reducer.wait_all();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < count; ++i)
      wrong += std::bit_cast<std::uint32_t>(reducer.result()[i]) !=
                       std::bit_cast<std::uint32_t>(reference(0, shards, i + step))
                   ? 1
                   : 0;
    EXPECT_EQ(wrong, 0) << shards << " shards, " << count << " elements, " << buckets << " buckets, step "
                        << step;
  }
}

TEST(Reduction, SameBitsAsOneProcess) {
  for (const int shards : {8, 5, 12, 1, 16})
    for (const std::int64_t count :
         {std::int64_t{1}, std::int64_t{17}, std::int64_t{5003}, std::int64_t{40000}})
      for (const int buckets : {1, 3})
        for (const bool overlap : {false, true}) check(shards, count, buckets, {.overlap = overlap});
}

TEST(Reduction, SmallPieces) {
  for (const int shards : {8, 5, 12}) check(shards, 100003, 2, {.piece_bytes = 1024});
}

TEST(Reduction, Large) {
  for (const int shards : {8, 5, 12})
    for (const bool overlap : {false, true}) check(shards, 1000003, 4, {.overlap = overlap}, 1);
}

}  // namespace
}  // namespace lockstep
