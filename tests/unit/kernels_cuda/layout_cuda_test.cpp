// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/layout.h"

#include "unit/kernels/layout_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaLayout : public GpuTest {};

TEST_F(CudaLayout, CopiesWhatTheStridesSelectAndNothingElse) {
  for (const NamedCopy& test : copies())
    for (int shift : {0, 1}) {
      const CudaLane lane(0);
      const Values values = random_values(test.from_size, 1);
      Values expected(static_cast<std::size_t>(test.to_size), -7.0);
      const DeviceFloats from(values, shift), to(expected, shift);
      copy_by_definition(test.copy, test.samples, values, expected);
      gpu().layout.copy(lane, test.copy, test.samples, from.data(), to.data());
      EXPECT_EQ(to.values(), expected) << test.name << " shift " << shift;
    }
}

template <typename T>
void check_halves(const NamedCopy& test, int shift) {
  const CudaLane lane(0);
  std::vector<T> numbers, to_begin(static_cast<std::size_t>(test.to_size), T{0x1234});
  Values bits, expected(to_begin.size(), 0x1234);
  for (std::int64_t i = 0; i < test.from_size; ++i) {
    numbers.push_back({static_cast<std::uint16_t>(i * 40503 + 0x7F81)});
    bits.push_back(numbers.back().bits);
  }
  const OnDevice<T> from(numbers, shift), to(to_begin, shift);
  copy_by_definition(test.copy, test.samples, bits, expected);
  gpu().layout.copy(lane, test.copy, test.samples, from.data(), to.data());
  Values moved;
  for (const T number : to.host()) moved.push_back(number.bits);
  EXPECT_EQ(moved, expected) << test.name << " shift " << shift;
}

TEST_F(CudaLayout, CopiesAllBitsOf16BitTypes) {
  for (const NamedCopy& test : copies())
    for (int shift : {0, 1, 4}) {
      check_halves<BFloat16>(test, shift);
      check_halves<Float16>(test, shift);
    }
}

}  // namespace
}  // namespace lockstep
