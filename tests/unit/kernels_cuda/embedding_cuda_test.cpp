// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.h"

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

TEST_F(CudaEmbedding, HasTheBitsOfTheCpu) {
  const EmbeddingKernels &cpu = cpu_kernels().embedding, &kernels = gpu().embedding;
  for (std::int64_t rows : {1, 40, 70000})
    for (std::int64_t positions : {0, 1, 511, 512, 513, 3000})  // one tile of the sort, and several
      for (std::int64_t units : {1, 5, 36})
        for (int shift : {0, 1}) {
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
          cpu.accumulate(TestLane(), positions, units, expected, cdy.data(), true, cgradient.data());
          cpu.accumulate(TestLane(), positions, units, expected, cdy.data(), false, cvalues.data());

          const CudaLane lane;
          const DeviceFloats dids(ids, shift), dtable(table, shift), ddy(dy, shift),
              y(positions * units, shift), gradient(Values(static_cast<std::size_t>(rows * units)), shift),
              values(Values(static_cast<std::size_t>(positions * units)), shift);
          const OnDevice<std::int32_t> device_memory(TouchedRows::words(positions));
          const OnDevice<std::int64_t> device_workspace(
              static_cast<std::int64_t>(kernels.group_bytes(positions) / sizeof(std::int64_t)) + 1);
          const TouchedRows touched = TouchedRows::carve(device_memory.data(), positions);
          EXPECT_EQ(kernels.gather(lane, positions, rows, units, dids.data(), 1, dtable.data(), y.data()),
                    -1);
          kernels.group_by_row(lane, positions, rows, dids.data(), 1, device_workspace.data(), touched);
          kernels.accumulate(lane, positions, units, touched, ddy.data(), true, gradient.data());
          kernels.accumulate(lane, positions, units, touched, ddy.data(), false, values.data());

          expect_same(y.host(), host_of(cy), "rows of " + what);
          expect_same(gradient.host(), host_of(cgradient), "dense gradient of " + what);
          expect_same(values.host(), host_of(cvalues), "sparse gradient of " + what);
          std::vector<std::int32_t> actual = device_memory.host();
          const TouchedRows grouped = TouchedRows::carve(actual.data(), positions);
          ASSERT_EQ(*grouped.count, *expected.count) << what;
          const std::int32_t count = *expected.count;
          for (std::int32_t k = 0; k < count; ++k) ASSERT_EQ(grouped.rows[k], expected.rows[k]) << what;
          for (std::int32_t k = 0; k <= count; ++k) ASSERT_EQ(grouped.starts[k], expected.starts[k]) << what;
          for (std::int32_t i = 0; i < expected.starts[count]; ++i)
            ASSERT_EQ(grouped.order[i], expected.order[i]) << what;
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
  cpu.accumulate(TestLane(), positions, units, grouped, dy.data(), true, cgradient.data());

  const CudaLane lane;
  const DeviceFloats dids(ids), dtable(table), gradient(Values(static_cast<std::size_t>(rows * units)));
  const OnDevice<T> ddy(dy.host(), shift), y(positions * units, shift);
  const OnDevice<std::int32_t> device_memory(memory);
  const TouchedRows touched = TouchedRows::carve(device_memory.data(), positions);
  kernels.gather(lane, positions, rows, units, dids.data(), 1, dtable.data(), y.data());
  kernels.accumulate(lane, positions, units, touched, ddy.data(), true, gradient.data());
  std::vector<float> wide;
  for (const T value : y.host()) wide.push_back(to_float(value));
  expect_same(wide, host_of(cy.widened()), "rows in " + what);
  expect_same(gradient.host(), host_of(cgradient), "gradient from " + what);
}

TEST_F(CudaEmbedding, In16BitsHasTheBitsOfTheCpu) {
  for (std::int64_t units : {1, 5, 36})
    for (int shift : {0, 1}) {
      expect_stored<BFloat16>(units, shift);
      expect_stored<Float16>(units, shift);
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
