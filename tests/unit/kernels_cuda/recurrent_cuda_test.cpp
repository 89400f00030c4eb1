// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent.h"

#include "kernels/kernel_table.h"
#include "unit/kernels/recurrent_steps.h"
#include "unit/kernels_cuda/stored_cuda_testing.h"

namespace lockstep {
namespace {

class CudaRecurrent : public GpuTest {};

template <typename T>
struct OnGpu : OnDevice<T> {
  explicit OnGpu(const Values& values) : OnDevice<T>(Stored<T>(values).host()) {}
};

TEST_F(CudaRecurrent, CellsHaveTheBitsOfTheCpu) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    for (const CellCase& test : cell_cases()) {
      const Matrices expected =
          cell_step_in<Stored>(type, cpu_kernels().recurrent, TestLane(), test,
                               [](const auto& memory) { return host_of(memory.widened()); });
      const CudaLane lane;
      const Matrices written = cell_step_in<OnGpu>(type, gpu().recurrent, lane, test,
                                                   [](const auto& memory) { return widened(memory.host()); });
      for (std::size_t i = 0; i < written.size(); ++i)
        expect_same(written[i], expected[i],
                    fmt::format("{} {}, matrix {}", name_of(type), describe(test), i));
    }
}

/// Copies between the types, with some matrices inside wider ones.
TEST_F(CudaRecurrent, CopiesOfRowsHaveTheBitsOfTheCpu) {
  const auto check = [&]<typename From, typename To>(From, To) {
    for (const std::int64_t columns : {1, 5, 8, 40}) {
      const std::int64_t rows = 7, from_stride = columns + 8, to_stride = columns + 4;
      const Values values = random_values(rows * from_stride, 1), before = random_values(rows * to_stride, 2);
      const Stored<From> from(values);
      const Stored<To> to(before);
      cpu_kernels().sequence.copy_rows(TestLane(), rows, columns, from.data() + 4, from_stride, to.data(),
                                       to_stride);
      const CudaLane lane;
      const OnGpu<From> there(values);
      const OnGpu<To> back(before);
      gpu().sequence.copy_rows(lane, rows, columns, there.data() + 4, from_stride, back.data(), to_stride);
      expect_same(back, to, fmt::format("{} columns", columns));
      for (std::int64_t row = 0; row < rows; ++row)
        EXPECT_EQ(to_float(to.data()[row * to_stride]),
                  to_float(from_float<To>(to_float(from.data()[row * from_stride + 4]))));
    }
  };
  check(float{}, float{});
  check(float{}, BFloat16{});
  check(Float16{}, float{});
  check(BFloat16{}, BFloat16{});
}

}  // namespace
}  // namespace lockstep
