// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent.h"

#include "kernels/kernel_table.h"
#include "unit/kernels/recurrent_steps.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaRecurrent : public GpuTest {};

TEST_F(CudaRecurrent, CellsHaveTheBitsOfTheCpu) {
  for (const CellCase& test : cell_cases()) {
    const Matrices expected = cell_step<Floats>(cpu_kernels().recurrent, TestLane(), test, host_of);
    const CudaLane lane;
    const Matrices written = cell_step<DeviceFloats>(
        gpu().recurrent, lane, test, [](const DeviceFloats& memory) { return memory.host(); });
    for (std::size_t i = 0; i < written.size(); ++i)
      expect_same(written[i], expected[i], fmt::format("{}, matrix {}", describe(test), i));
  }
}

}  // namespace
}  // namespace lockstep
