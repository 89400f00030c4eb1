// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.h"

#include <map>

#include "kernel_testing.h"
#include "rows_testing.h"
#include "stored_testing.h"

namespace lockstep {
namespace {

/// Ids with many duplicates of a few rows, some other rows, padding and (if `broken`) ids that name no row.
Values some_ids(std::int64_t positions, std::int64_t rows, bool broken) {
  Values ids;
  for (double u : random_values(positions, 1, 0.0, 1.0))
    ids.push_back(std::floor(u * u * u * static_cast<double>(rows)));
  if (!broken) return ids;
  const double bad[] = {-1.0, static_cast<double>(rows), 0.5, std::nan(""), INFINITY, -0.25};
  for (std::size_t i = 0; i < ids.size(); i += 7) ids[i] = bad[i / 7 % 6];
  return ids;
}

struct Grouped {
  explicit Grouped(std::int64_t positions)
      : memory(static_cast<std::size_t>(TouchedRows::words(positions)), -7),
        touched(TouchedRows::carve(memory.data(), positions)) {}
  std::vector<std::int32_t> memory;
  TouchedRows touched;
};

Grouped group(const EmbeddingKernels& kernels, const Floats& ids, std::int64_t rows, std::int64_t padding) {
  const auto positions = static_cast<std::int64_t>(ids.size());
  Grouped grouped(positions);
  std::vector<std::int64_t> workspace(kernels.group_bytes(positions) / sizeof(std::int64_t) + 1);
  kernels.group_by_row(TestLane(), positions, rows, ids.data(), padding, workspace.data(), grouped.touched);
  return grouped;
}

TEST(EmbeddingKernels, GatherReturnsRowsZerosForPaddingAndNan) {
  for (const Level& level : levels())
    for (std::int64_t units : {1, 3, 17, 64, 130}) {
      const std::int64_t rows = 5;
      const Floats table(random_values(rows * units, 2));
      const Floats ids(Values{4, 0, 2, -1, 5, 1.5, 2, std::nan("")});
      Floats y(8 * units);
      EXPECT_EQ(level.embedding.gather(TestLane(), 8, rows, units, ids.data(), 2, table.data(), y.data()), 3);
      const int expected[] = {4, 0, -1, -2, -2, -2, -1, -2};  // -1: zeros, -2: NaN
      for (std::size_t p = 0; p < 8; ++p)
        for (std::size_t u = 0; u < static_cast<std::size_t>(units); ++u) {
          const float value = y[p * static_cast<std::size_t>(units) + u];
          if (expected[p] == -2)
            EXPECT_TRUE(std::isnan(value)) << level.name << " position " << p;
          else if (expected[p] == -1)
            EXPECT_EQ(value, 0.0F);
          else
            EXPECT_EQ(value,
                      table[static_cast<std::size_t>(expected[p]) * static_cast<std::size_t>(units) + u]);
        }
      EXPECT_EQ(level.embedding.gather(TestLane(), 3, rows, units, ids.data(), -1, table.data(), y.data()),
                -1);
    }
}

TEST(EmbeddingKernels, GroupsPositionsByRowInAscendingOrder) {
  for (const Level& level : levels())
    for (std::int64_t rows : {1, 3, 255, 256, 257, 70000})
      for (std::int64_t positions : {0, 1, 17, 1000})
        for (bool broken : {false, true}) {
          const Floats ids(some_ids(positions, rows, broken));
          const std::int64_t padding = 1;
          const Grouped grouped = group(level.embedding, ids, rows, padding);
          std::map<std::int32_t, std::vector<std::int32_t>> expected;
          for (std::size_t p = 0; p < ids.size(); ++p) {
            const float id = ids[p];
            if (id >= 0.0F && id < static_cast<float>(rows) && id == std::floor(id) && id != 1.0F)
              expected[static_cast<std::int32_t>(id)].push_back(static_cast<std::int32_t>(p));
          }
          ASSERT_EQ(*grouped.touched.count, static_cast<std::int32_t>(expected.size())) << level.name;
          std::int32_t k = 0, next = 0;
          for (const auto& [row, its] : expected) {
            EXPECT_EQ(grouped.touched.rows[k], row);
            ASSERT_EQ(grouped.touched.starts[k++], next);
            for (std::int32_t position : its) ASSERT_EQ(grouped.touched.order[next++], position);
          }
          EXPECT_EQ(grouped.touched.starts[k], next);
        }
}

TEST(EmbeddingKernels, AccumulatesTheSameBitsSparseAndDense) {
  for (std::int64_t units : {1, 3, 17, 64, 130})
    for (std::int64_t rows : {1, 4, 300}) {
      const std::int64_t positions = 700;  // several blocks of 64 for some rows
      const Floats ids(some_ids(positions, rows, false)), dy(random_values(positions * units, 3));
      Values expected(static_cast<std::size_t>(rows * units)), magnitude = expected;
      for (std::size_t p = 0; p < ids.size(); ++p)
        for (std::size_t u = 0; u < static_cast<std::size_t>(units); ++u) {
          const std::size_t to = static_cast<std::size_t>(ids[p]) * static_cast<std::size_t>(units) + u;
          const double value = static_cast<double>(dy[p * static_cast<std::size_t>(units) + u]);
          expected[to] += value;
          magnitude[to] += std::abs(value);
        }
      const std::vector<Level> all = levels();
      Floats first(rows * units);
      for (const Level& level : all) {
        const Grouped grouped = group(level.embedding, ids, rows, -1);
        Floats dense(rows * units), values(positions * units);
        level.embedding.accumulate(TestLane(), positions, units, grouped.touched, dy.data(), true, nullptr,
                                   dense.data());
        level.embedding.accumulate(TestLane(), positions, units, grouped.touched, dy.data(), false, nullptr,
                                   values.data());
        // At most 64 additions in float32 and one rounding of the result.
        expect_close(dense.values(), expected, magnitude, 65 * kRounding, 0.0, level.name);
        for (std::int32_t k = 0; k < *grouped.touched.count; ++k)
          for (std::int64_t u = 0; u < units; ++u)
            ASSERT_EQ(values[static_cast<std::size_t>(k * units + u)],
                      dense[static_cast<std::size_t>(grouped.touched.rows[k] * units + u)]);
        if (level.name == all.front().name) first = dense.copy();
        EXPECT_TRUE(same_bits(dense, first)) << level.name << " " << units;
      }
    }
}

/// Gathered rows in T are the float32 rows, rounded. The table's gradient has the bits of the float32 kernel
/// on the same numbers.
template <typename T>
void expect_stored(const Level& level, std::int64_t units, int shift) {
  const std::string what = level.name + " " + std::string(name_of(dtype_of<T>)) + " " + std::to_string(units);
  const EmbeddingKernels& kernels = level.embedding;
  const std::int64_t rows = 40, positions = 700;  // several blocks of 64 for some rows
  const Floats ids(some_ids(positions, rows, true)), table(random_values(rows * units, 2));
  Floats exact(positions * units);
  const Stored<T> y(positions * units, shift), dy(random_values(positions * units, 3), shift);
  EXPECT_EQ(kernels.gather(TestLane(), positions, rows, units, ids.data(), 2, table.data(), y.data()),
            kernels.gather(TestLane(), positions, rows, units, ids.data(), 2, table.data(), exact.data()));
  expect_rounded(y, exact, what);
  const Grouped grouped = group(kernels, ids, rows, 2);
  for (bool dense : {true, false}) {
    const std::int64_t count = dense ? rows * units : positions * units;
    Floats gradient(count), expected(count);
    kernels.accumulate(TestLane(), positions, units, grouped.touched, dy.data(), dense, nullptr,
                       gradient.data());
    kernels.accumulate(TestLane(), positions, units, grouped.touched, dy.widened().data(), dense, nullptr,
                       expected.data());
    EXPECT_TRUE(same_bits(gradient, expected)) << what << " dense " << dense;
  }
}

TEST(EmbeddingKernels, In16BitsRowsAreRoundedOnceAndGradientsAreNot) {
  for (const Level& level : levels())
    for (std::int64_t units : {1, 3, 17, 64, 130})
      for (int shift : {0, 1, 5}) {
        expect_stored<BFloat16>(level, units, shift);
        expect_stored<Float16>(level, units, shift);
      }
}

TEST(EmbeddingKernels, AddsTheRowsOfLeavesAlongTheShardTree) {
  for (const Level& level : levels())
    for (const LeafCase& test : leaf_cases()) {
      const std::int64_t places = test.leaves * test.leaf_rows;
      const Floats ids(places), leaf_values(test.values), values(places * test.width);
      level.embedding.ids_of_rows(TestLane(), test.leaves, test.leaf_rows, test.counts.data(),
                                  test.row_of_place.data(), ids.data());
      const Grouped grouped = group(level.embedding, ids, test.rows, -1);
      level.embedding.add_leaves(TestLane(), test.leaves, test.leaf_rows, test.width, grouped.touched,
                                 leaf_values.data(), values.data());
      std::int32_t k = 0;
      for (std::int32_t row = 0; row < test.rows; ++row) {
        bool found = false;
        (void)test.sum(0, test.leaves, row, 0, found);
        if (!found) continue;
        ASSERT_LT(k, *grouped.touched.count) << test.text();
        ASSERT_EQ(grouped.touched.rows[k], row) << test.text();
        for (std::int64_t c = 0; c < test.width; ++c)
          ASSERT_EQ(values[static_cast<std::size_t>(k * test.width + c)],
                    test.sum(0, test.leaves, row, c, found))
              << level.name << " " << test.text() << " row " << row;
        ++k;
      }
      EXPECT_EQ(k, *grouped.touched.count) << test.text();
    }
}

}  // namespace
}  // namespace lockstep
