// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The sum of sparse rows over shards has the bits of the dense sum along the tree, on any number of ranks and
// threads.
#include "comm/sparse_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/half.h"
#include "core/philox.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "support/mpi_world.h"

namespace lockstep {
namespace {

constexpr std::int64_t kRows = 40, kWidth = 3, kLeafRows = 12;

using Rows = std::map<std::int32_t, std::vector<float>>;

std::uint32_t word(int shard, int round, int i) {
  return philox_words(9, static_cast<std::uint32_t>(shard), static_cast<std::uint32_t>(round), 0,
                      static_cast<std::uint32_t>(i))[0];
}

/// The rows of a shard: none in some shards, the same rows in many, the maximum in one.
Rows leaf_rows(int shard, int round) {
  Rows rows;
  const int count = shard == 1 ? static_cast<int>(kLeafRows) : static_cast<int>(word(shard, round, 0) % 6);
  for (int i = 1; static_cast<int>(rows.size()) < count; ++i) {
    const auto row = static_cast<std::int32_t>(word(shard, round, i) % (shard % 2 == 0 ? 7 : kRows));
    std::vector<float>& values = rows[row];
    values.clear();
    for (int c = 0; c < kWidth; ++c)
      values.push_back((philox_uniform(word(shard, round, 1000 + 10 * i + c)) - 0.5F) *
                       static_cast<float>(1 << (i % 20)));
    if (shard % 2 == 0 && rows.size() == 7) break;
  }
  return rows;
}

float kept(float value) { return to_float(from_float<BFloat16>(value)); }

/// The dense sum along the tree; `compress` rounds every node.
std::vector<float> expected(int first, int last, int round, bool compress) {
  std::vector<float> table(static_cast<std::size_t>(kRows * kWidth), 0.0F);
  if (last - first == 1) {
    for (const auto& [row, values] : leaf_rows(first, round))
      std::copy(values.begin(), values.end(), table.begin() + row * kWidth);
    if (compress) std::ranges::transform(table, table.begin(), kept);
    return table;
  }
  const int middle = first + tree_left_size(last - first);
  table = expected(first, middle, round, compress);
  const std::vector<float> right = expected(middle, last, round, compress);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] += right[i];
  if (compress) std::ranges::transform(table, table.begin(), kept);
  return table;
}

void check_sums(bool compress) {
  for (const int shards : {1, 2, 3, 5, 8, 13}) {
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads);
      SparseSum sum(test_world(), pool, shards, kRows, kWidth, kLeafRows, compress);
      const Range own = shards_of_rank(test_world().rank(), test_world().size(), shards);
      for (int round = 0; round < 3; ++round) {
        sum.clear();
        for (auto shard = static_cast<int>(own.first); shard < own.last; ++shard) {
          const SparseRows& leaf = sum.leaf(shard);
          for (const auto& [row, values] : leaf_rows(shard, round)) {
            leaf.rows[*leaf.count] = row;
            std::copy(values.begin(), values.end(), leaf.values + *leaf.count * kWidth);
            ++*leaf.count;
          }
        }
        sum.reduce("test rows");
        std::vector<float> table(static_cast<std::size_t>(kRows * kWidth), 0.0F);
        const SparseRows& total = sum.total();
        for (std::int32_t k = 0; k < *total.count; ++k) {
          ASSERT_TRUE(k == 0 || total.rows[k - 1] < total.rows[k]);
          std::copy_n(total.values + k * kWidth, kWidth, table.begin() + total.rows[k] * kWidth);
        }
        std::size_t touched = 0;
        Rows all;
        for (int shard = 0; shard < shards; ++shard) all.merge(leaf_rows(shard, round));
        touched = all.size();
        EXPECT_EQ(static_cast<std::size_t>(*total.count), touched);
        EXPECT_EQ(table, expected(0, shards, round, compress)) << shards << " shards, round " << round;
      }
    }
  }
}

TEST(SparseSum, SameBitsAsTheDenseTree) { check_sums(false); }
TEST(SparseSum, CompressedSameBitsAsTheCompressedDenseTree) { check_sums(true); }

TEST(SparseSum, NoRowsGiveAnEmptyTotal) {
  ThreadPool pool(1);
  SparseSum sum(test_world(), pool, 4, kRows, kWidth, kLeafRows);
  sum.clear();
  sum.reduce("nothing");
  EXPECT_EQ(*sum.total().count, 0);
}

}  // namespace
}  // namespace lockstep
