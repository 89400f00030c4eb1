// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums of microshards' rows on a GPU compared with the sum in host memory. One rank;
// tests/e2e/gpu_sparse_test.py covers more.
#include "train/device_sparse_sum.h"

#include "comm/self_communicator.h"
#include "core/thread_pool.h"
#include "cuda_testing.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "unit/kernels/rows_testing.h"

namespace lockstep {
namespace {

class SparseSumOnGpu : public GpuTest {};

TEST_F(SparseSumOnGpu, HasTheBitsOfTheHostSumInEachStep) {
  Device& device = cuda_backend().open(0);
  SelfCommunicator self;
  ThreadPool pool(1);
  for (const LeafCase& test : leaf_cases()) {
    const auto shards = static_cast<int>(test.leaves);
    // A bound above the table's number of rows acts as that number.
    const std::int64_t bound = test.leaf_rows == test.rows ? 3 * test.rows : test.leaf_rows;
    const CudaLane lane;
    SparseSum host(self, pool, shards, test.rows, test.width, bound);
    DeviceSparseSum sum({cuda_backend().kernels({}), device, lane.lane.stream}, self, pool, shards, test.rows,
                        test.width, bound);
    const Buffer workspace(device, sum.workspace_bytes());
    for (int step = 0; step < 3; ++step) {
      host.clear();
      sum.clear();
      for (int shard = 0; shard < shards; ++shard) {
        // In each step another leaf is empty, and its count is not written.
        if (shard % 3 == step) continue;
        const std::int32_t count = test.counts[static_cast<std::size_t>(shard)];
        const std::int32_t* const rows = test.row_of_place.data() + shard * test.leaf_rows;
        std::vector<float> values;
        for (std::int64_t i = 0; i < count * test.width; ++i)
          values.push_back(static_cast<float>(
              test.values[static_cast<std::size_t>(shard * test.leaf_rows * test.width + i)] + step));
        const SparseRows &leaf = host.leaf(shard), &on_device = sum.leaf(shard);
        *leaf.count = count;
        std::copy_n(rows, count, leaf.rows);
        std::ranges::copy(values, leaf.values);
        device.copy_from_host(on_device.count, &count, sizeof count);
        device.copy_from_host(on_device.rows, rows, static_cast<std::size_t>(count) * sizeof(std::int32_t));
        device.copy_from_host(on_device.values, values.data(), values.size() * sizeof(float));
      }
      host.reduce("rows");
      sum.add(workspace.data());
      const std::int32_t count = *host.total().count;
      ASSERT_LE(count, sum.total_on_device().most) << test.text();
      ASSERT_EQ(*sum.total().count, count) << test.text() << " step " << step;
      std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
      std::vector<float> values(static_cast<std::size_t>(count * test.width));
      device.copy_to_host(rows.data(), sum.total().rows, rows.size() * sizeof(std::int32_t));
      device.copy_to_host(values.data(), sum.total().values, values.size() * sizeof(float));
      EXPECT_EQ(rows, std::vector<std::int32_t>(host.total().rows, host.total().rows + count)) << test.text();
      expect_same(values, {host.total().values, host.total().values + count * test.width}, test.text());
    }
  }
}

}  // namespace
}  // namespace lockstep
