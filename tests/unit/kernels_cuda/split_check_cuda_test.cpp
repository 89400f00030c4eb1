// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The check of algorithms that split the inner dimension, with products that lose a part of it.
#include "kernels/split_check_cuda.h"

#include <vector>

#include "core/half.h"
#include "cuda_testing.h"

namespace lockstep {
namespace {

using cuda::ProductShape;

/// The product of a shape, by plain loops on the host, over the first `used` of the inner dimension.
template <typename From, typename To>
bool adds_all_of(const ProductShape& s, std::int64_t used) {
  return cuda::adds_all_parts(s, [&](cudaStream_t, const void* a, const void* b, const void* bias, void* d) {
    EXPECT_EQ(bias != nullptr, s.bias);
    std::vector<From> from_a(static_cast<std::size_t>(s.m * s.k)),
        from_b(static_cast<std::size_t>(s.n * s.k));
    std::vector<To> to(static_cast<std::size_t>(s.m * s.n));
    cuda::check(cudaMemcpy(from_a.data(), a, from_a.size() * sizeof(From), cudaMemcpyDeviceToHost), "a");
    cuda::check(cudaMemcpy(from_b.data(), b, from_b.size() * sizeof(From), cudaMemcpyDeviceToHost), "b");
    for (std::int64_t j = 0; j < s.n; ++j)
      for (std::int64_t i = 0; i < s.m; ++i) {
        float sum = 0;
        for (std::int64_t l = 0; l < used; ++l)
          sum += to_float(from_a[static_cast<std::size_t>(s.transposed_a ? l + i * s.k : i + l * s.m)]) *
                 to_float(from_b[static_cast<std::size_t>(s.transposed_b ? j + l * s.n : l + j * s.k)]);
        to[static_cast<std::size_t>(i + j * s.m)] = from_float<To>(sum);
      }
    cuda::check(cudaMemcpy(d, to.data(), to.size() * sizeof(To), cudaMemcpyHostToDevice), "d");
    cuda::check(cudaDeviceSynchronize(), "copies");
  });
}

class SplitCheck : public GpuTest {};

TEST_F(SplitCheck, FindsALostTail) {
  for (const bool transposed : {false, true}) {
    const ProductShape wide{.m = 3, .n = 5, .k = 700, .transposed_a = transposed, .bias = transposed};
    EXPECT_TRUE((adds_all_of<float, float>(wide, 700)));
    EXPECT_FALSE((adds_all_of<float, float>(wide, 699)));
    // 4,099 and 4,096 are the same in bfloat16: only the tail alone shows the loss.
    ProductShape narrow{.m = 2, .n = 3, .k = 4099, .transposed_b = transposed};
    narrow.from = narrow.to = DType::bf16;
    EXPECT_TRUE((adds_all_of<BFloat16, BFloat16>(narrow, 4099)));
    EXPECT_FALSE((adds_all_of<BFloat16, BFloat16>(narrow, 4096)));
  }
}

TEST_F(SplitCheck, TakesTheFirstAlgorithmThatAddsAllParts) {
  const auto first = [](const std::vector<int>& splits, const std::vector<bool>& exact) {
    return cuda::first_exact(splits, [&](int i) { return exact[static_cast<std::size_t>(i)]; });
  };
  EXPECT_EQ(first({1, 4}, {false, false}), 0);  // without splits there is nothing to try
  EXPECT_EQ(first({4, 1}, {true, false}), 0);
  EXPECT_EQ(first({4, 2, 1}, {false, true, false}), 1);
  EXPECT_EQ(first({4, 2, 1}, {false, false, false}), 2);
  EXPECT_EQ(first({4, 2}, {false, false}), -1);
}

}  // namespace
}  // namespace lockstep
