// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/layout.h"

#include "unit/kernels/layout_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaLayout : public GpuTest {};

TEST_F(CudaLayout, CopiesWhatTheStridesSayAndNothingElse) {
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

}  // namespace
}  // namespace lockstep
