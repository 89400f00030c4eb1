// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "unit/kernels/rows_testing.h"
#include "unit/kernels/stored_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaEmbedding : public GpuTest {};

/// Ids of which some name no row and some are the padding (1).
Values some_ids(std::int64_t positions, std::int64_t rows) {
  Values ids;
  for (double u : random_values(positions, 1, 0.0, 1.0))
    ids.push_back(std::floor(u * u * u * static_cast<double>(rows)));
  const double bad[] = {-1.0, static_cast<double>(rows), 0.5, std::nan(""), 1.0};
  for (std::size_t i = 3; i < ids.size(); i += 9) ids[i] = bad[i / 9 % 5];
  return ids;
}

/// 64-bit words of workspace for grouping and sums.
std::int64_t work_words(const EmbeddingKernels& kernels, std::int64_t positions, std::int64_t units) {
  const std::size_t bytes = std::max(kernels.group_bytes(positions), kernels.sum_bytes(positions, units));
  return static_cast<std::int64_t>(bytes / sizeof(std::int64_t)) + 1;
}

void expect_same_groups(std::vector<std::int32_t> memory, const TouchedRows& expected, std::int64_t positions,
                        const std::string& what) {
  const TouchedRows grouped = TouchedRows::carve(memory.data(), positions);
  ASSERT_EQ(*grouped.count, *expected.count) << what;
  const std::int32_t count = *expected.count;
  for (std::int32_t k = 0; k < count; ++k) ASSERT_EQ(grouped.rows[k], expected.rows[k]) << what;
  for (std::int32_t k = 0; k <= count; ++k) ASSERT_EQ(grouped.starts[k], expected.starts[k]) << what;
  for (std::int32_t i = 0; i < expected.starts[count]; ++i)
    ASSERT_EQ(grouped.order[i], expected.order[i]) << what;
}

TEST_F(CudaEmbedding, HasTheBitsOfTheCpu) {
  const EmbeddingKernels &cpu = cpu_kernels().embedding, &kernels = gpu().embedding;
  for (std::int64_t rows : {1, 40, 70000})
    for (std::int64_t positions : {0, 1, 511, 512, 513, 4096, 4097, 9000})  // one tile of the sort, several
      for (std::int64_t units : {1, 5, 36, 1100})
        for (int shift : {0, 1}) {
          if (units == 1100 && (rows != 40 || positions != 513)) continue;
          if (rows == 70000 && (units == 36 || shift == 1)) continue;  // limits memory and time
          const std::string what = fmt::format("{} rows {} positions {} units", rows, positions, units);
          const Values ids = some_ids(positions, rows), table = random_values(rows * units, 2),
                       dy = random_values(positions * units, 3);
          const Floats cids(ids), ctable(table), cdy(dy), cy(positions * units), cgradient(rows * units),
              cvalues(positions * units);
          std::vector<std::int32_t> memory(static_cast<std::size_t>(TouchedRows::words(positions)));
          std::vector<std::int64_t> workspace(cpu.group_bytes(positions) / sizeof(std::int64_t) + 1);
          const TouchedRows expected = TouchedRows::carve(memory.data(), positions);
          cpu.gather(TestLane(), positions, rows, units, cids.data(), 1, ctable.data(), cy.data());
          cpu.group_by_row(TestLane(), positions, rows, cids.data(), 1, workspace.data(), expected);
          cpu.accumulate(TestLane(), positions, units, expected, cdy.data(), true, nullptr, cgradient.data());
          cpu.accumulate(TestLane(), positions, units, expected, cdy.data(), false, nullptr, cvalues.data());

          const CudaLane lane;
          const DeviceFloats dids(ids, shift), dtable(table, shift), ddy(dy, shift),
              y(positions * units, shift), gradient(Values(static_cast<std::size_t>(rows * units)), shift),
              values(Values(static_cast<std::size_t>(positions * units)), shift);
          const OnDevice<std::int32_t> device_memory(TouchedRows::words(positions));
          const OnDevice<std::int64_t> device_workspace(work_words(kernels, positions, units));
          const TouchedRows touched = TouchedRows::carve(device_memory.data(), positions);
          EXPECT_EQ(kernels.gather(lane, positions, rows, units, dids.data(), 1, dtable.data(), y.data()),
                    -1);
          kernels.group_by_row(lane, positions, rows, dids.data(), 1, device_workspace.data(), touched);
          kernels.accumulate(lane, positions, units, touched, ddy.data(), true, device_workspace.data(),
                             gradient.data());
          kernels.accumulate(lane, positions, units, touched, ddy.data(), false, device_workspace.data(),
                             values.data());

          expect_same(y.host(), host_of(cy), "rows of " + what);
          expect_same(gradient.host(), host_of(cgradient), "dense gradient of " + what);
          expect_same(values.host(), host_of(cvalues), "sparse gradient of " + what);
          expect_same_groups(device_memory.host(), expected, positions, what);
        }
}

/// Numbers of runs of the sort, and of rounds in which they become one, up to two.
TEST_F(CudaEmbedding, GroupsManyPositions) {
  const EmbeddingKernels &cpu = cpu_kernels().embedding, &kernels = gpu().embedding;
  for (const std::int64_t rows : {3, 50304})
    for (const std::int64_t positions : {1023, 1024, 1025, 8192, 65536, 65537, 70001}) {
      const std::string what = fmt::format("{} rows {} positions", rows, positions);
      const Values ids = some_ids(positions, rows);
      const Floats cids(ids);
      std::vector<std::int32_t> memory(static_cast<std::size_t>(TouchedRows::words(positions)));
      std::vector<std::int64_t> workspace(cpu.group_bytes(positions) / sizeof(std::int64_t) + 1);
      const TouchedRows expected = TouchedRows::carve(memory.data(), positions);
      cpu.group_by_row(TestLane(), positions, rows, cids.data(), 1, workspace.data(), expected);
      const CudaLane lane;
      const DeviceFloats dids(ids);
      const OnDevice<std::int32_t> device_memory(TouchedRows::words(positions));
      const OnDevice<unsigned char> device_workspace(
          static_cast<std::int64_t>(kernels.group_bytes(positions)));
      kernels.group_by_row(lane, positions, rows, dids.data(), 1, device_workspace.data(),
                           TouchedRows::carve(device_memory.data(), positions));
      (void)device_workspace.host();  // nothing was written past it
      expect_same_groups(device_memory.host(), expected, positions, what);
    }
}

template <typename T>
void expect_stored(std::int64_t units, int shift) {
  const std::string what = fmt::format("{} {} units shift {}", name_of(dtype_of<T>), units, shift);
  const EmbeddingKernels &cpu = cpu_kernels().embedding, &kernels = gpu().embedding;
  const std::int64_t rows = 40, positions = 513;
  const Values ids = some_ids(positions, rows), table = random_values(rows * units, 2);
  const Stored<T> dy(random_values(positions * units, 3));
  const Floats cids(ids), ctable(table);
  const Stored<T> cy(positions * units);
  Floats cgradient(rows * units);
  std::vector<std::int32_t> memory(static_cast<std::size_t>(TouchedRows::words(positions)));
  std::vector<std::int64_t> workspace(cpu.group_bytes(positions) / sizeof(std::int64_t) + 1);
  const TouchedRows grouped = TouchedRows::carve(memory.data(), positions);
  cpu.gather(TestLane(), positions, rows, units, cids.data(), 1, ctable.data(), cy.data());
  cpu.group_by_row(TestLane(), positions, rows, cids.data(), 1, workspace.data(), grouped);
  cpu.accumulate(TestLane(), positions, units, grouped, dy.data(), true, nullptr, cgradient.data());

  const CudaLane lane;
  const DeviceFloats dids(ids), dtable(table), gradient(Values(static_cast<std::size_t>(rows * units)));
  const OnDevice<T> ddy(dy.host(), shift), y(positions * units, shift);
  const OnDevice<std::int32_t> device_memory(memory);
  const TouchedRows touched = TouchedRows::carve(device_memory.data(), positions);
  kernels.gather(lane, positions, rows, units, dids.data(), 1, dtable.data(), y.data());
  const OnDevice<std::int64_t> device_workspace(work_words(kernels, positions, units));
  kernels.accumulate(lane, positions, units, touched, ddy.data(), true, device_workspace.data(),
                     gradient.data());
  std::vector<float> wide;
  for (const T value : y.host()) wide.push_back(to_float(value));
  expect_same(wide, host_of(cy.widened()), "rows in " + what);
  expect_same(gradient.host(), host_of(cgradient), "gradient from " + what);
}

TEST_F(CudaEmbedding, In16BitsHasTheBitsOfTheCpu) {
  for (std::int64_t units : {1, 5, 36, 264, 1100})
    for (int shift : {0, 1}) {
      expect_stored<BFloat16>(units, shift);
      expect_stored<Float16>(units, shift);
    }
}

/// Rows of the given numbers of positions, which are mixed.
template <typename T>
void expect_frequent_rows(const std::vector<std::int64_t>& lengths, std::int64_t units) {
  Values ids;
  for (std::size_t row = 0; row < lengths.size(); ++row)
    ids.insert(ids.end(), static_cast<std::size_t>(lengths[row]), static_cast<double>(row));
  const auto positions = static_cast<std::int64_t>(ids.size()),
             rows = static_cast<std::int64_t>(lengths.size());
  const Values keys = random_values(positions, 4, 0.0, 1.0);
  for (std::size_t i = ids.size(); i-- > 1;)
    std::swap(ids[i], ids[static_cast<std::size_t>(keys[i] * static_cast<double>(i))]);
  const Stored<T> dy(random_values(positions * units, 3));
  const Floats cids(ids);
  Floats expected(rows * units);
  const EmbeddingKernels &cpu = cpu_kernels().embedding, &kernels = gpu().embedding;
  std::vector<std::int32_t> memory(static_cast<std::size_t>(TouchedRows::words(positions)));
  std::vector<std::int64_t> workspace(cpu.group_bytes(positions) / sizeof(std::int64_t) + 1);
  const TouchedRows grouped = TouchedRows::carve(memory.data(), positions);
  cpu.group_by_row(TestLane(), positions, rows, cids.data(), -1, workspace.data(), grouped);
  cpu.accumulate(TestLane(), positions, units, grouped, dy.data(), true, nullptr, expected.data());

  const CudaLane lane;
  const OnDevice<T> ddy(dy.host());
  const OnDevice<std::int32_t> device_memory(memory);
  const OnDevice<std::int64_t> sums(
      static_cast<std::int64_t>(kernels.sum_bytes(positions, units) / sizeof(std::int64_t)));
  const DeviceFloats gradient(Values(static_cast<std::size_t>(rows * units))),
      values(Values(static_cast<std::size_t>(positions * units)));
  const TouchedRows touched = TouchedRows::carve(device_memory.data(), positions);
  kernels.accumulate(lane, positions, units, touched, ddy.data(), true, sums.data(), gradient.data());
  kernels.accumulate(lane, positions, units, touched, ddy.data(), false, sums.data(), values.data());
  const std::string what =
      fmt::format("{} {} units, rows of {}", name_of(dtype_of<T>), units, fmt::join(lengths, ", "));
  expect_same(gradient.host(), host_of(expected), "gradient of " + what);
  std::vector<float> sparse = values.host(), first;
  for (std::size_t row = 0, k = 0; row < lengths.size(); ++row)
    for (std::int64_t u = 0; u < units; ++u) first.push_back(lengths[row] == 0 ? 0.0F : sparse[k++]);
  expect_same(first, host_of(expected), "sparse gradient of " + what);
}

TEST_F(CudaEmbedding, AddsBlocksOfFrequentRowsInOrder) {
  const std::vector<std::vector<std::int64_t>> cases = {
      {1},
      {64},
      {65},
      {2000},
      {1, 63, 64, 65, 1000},
      {65, 65, 65, 65, 1, 128, 129},
      {1000, 65, 64, 63, 1},
      {0, 3, 0, 61, 700, 0, 64, 65, 66, 64, 200, 2},
      std::vector<std::int64_t>(40, 50),
  };
  for (const auto& lengths : cases)
    for (const std::int64_t units : {1, 36}) {
      expect_frequent_rows<float>(lengths, units);
      expect_frequent_rows<BFloat16>(lengths, units);
    }
}

TEST_F(CudaEmbedding, AddsTheRowsOfLeavesAlongTheShardTree) {
  const EmbeddingKernels& kernels = gpu().embedding;
  for (const LeafCase& test : leaf_cases())
    for (const int shift : {0, 1}) {
      const std::int64_t places = test.leaves * test.leaf_rows;
      const CudaLane lane;
      const OnDevice<std::int32_t> counts(test.counts), rows(test.row_of_place),
          memory(TouchedRows::words(places)), sum_rows(std::min(places, test.rows)),
          count(std::vector<std::int32_t>{-1});
      const OnDevice<std::int64_t> keys(
          static_cast<std::int64_t>(kernels.group_bytes(places) / sizeof(std::int64_t)) + 1);
      const DeviceFloats ids(places, shift), leaf_values(test.values, shift),
          values(std::min(places, test.rows) * test.width, shift);
      // As in the sum of sparse gradients: the rows and their count are in other memory.
      const TouchedRows touched =
          TouchedRows::carve(memory.data(), places).with(sum_rows.data(), count.data());
      kernels.ids_of_rows(lane, test.leaves, test.leaf_rows, counts.data(), rows.data(), ids.data());
      kernels.group_by_row(lane, places, test.rows, ids.data(), -1, keys.data(), touched);
      kernels.add_leaves(lane, test.leaves, test.leaf_rows, test.width, touched, leaf_values.data(),
                         values.data());
      const std::vector<float> actual = values.host();
      const std::vector<std::int32_t> which = sum_rows.host();
      std::size_t k = 0;
      for (std::int32_t row = 0; row < test.rows; ++row) {
        bool found = false;
        (void)test.sum(0, test.leaves, row, 0, found);
        if (!found) continue;
        ASSERT_LT(k, which.size()) << test.text();
        ASSERT_EQ(which[k], row) << test.text();
        for (std::int64_t c = 0; c < test.width; ++c)
          ASSERT_EQ(actual[k * static_cast<std::size_t>(test.width) + static_cast<std::size_t>(c)],
                    test.sum(0, test.leaves, row, c, found))
              << test.text() << " row " << row;
        ++k;
      }
      EXPECT_EQ(static_cast<std::size_t>(count.host()[0]), k) << test.text();
    }
}

}  // namespace
}  // namespace lockstep
