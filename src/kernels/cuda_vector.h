// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Four floats at a time where addresses allow, and element-wise kernels over them. For *.cu files.
#pragma once

#include "kernels/cuda_launch.h"

namespace lockstep::cuda {

template <int kWidth>
struct Pack {
  float at[kWidth];
};

/// How a kernel reads and writes kWidth neighbours: Wide in one access (16-byte aligned), Loose one by one,
/// Narrow is one element.
struct Wide {
  static constexpr int kWidth = 4;
  struct alignas(16) Access {
    Pack<4> pack;
  };
  static __device__ Pack<4> load(const float* p) { return reinterpret_cast<const Access*>(p)->pack; }
  static __device__ void store(float* p, const Pack<4>& value) { reinterpret_cast<Access*>(p)->pack = value; }
};
template <int kElements>
struct OneByOne {
  static constexpr int kWidth = kElements;
  static __device__ Pack<kElements> load(const float* p) {
    Pack<kElements> value;
    for (int i = 0; i < kElements; ++i) value.at[i] = p[i];
    return value;
  }
  static __device__ void store(float* p, const Pack<kElements>& value) {
    for (int i = 0; i < kElements; ++i) p[i] = value.at[i];
  }
};
using Loose = OneByOne<4>;
using Narrow = OneByOne<1>;

/// True if all addresses (null counts) are aligned for Wide.
template <typename... Pointers>
bool wide_aligned(Pointers... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) | ... | std::uintptr_t{0}) % 16) == 0;
}

inline __device__ float positive_part(float value) { return value < 0.0F ? 0.0F : value; }  // NaN stays NaN

/// Calls op.run<V>(element) for pieces of V::kWidth elements, and for the rest one by one.
template <typename V, typename Op>
__global__ void __launch_bounds__(kThreads) elementwise_kernel(std::int64_t count, Op op) {
  const std::int64_t pieces = count / V::kWidth, stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (std::int64_t i = thread; i < pieces; i += stride) op.template run<V>(i * V::kWidth);
  if (const std::int64_t rest = pieces * V::kWidth + thread; rest < count) op.template run<Narrow>(rest);
}

/// Runs an element-wise operation: a struct with a device function template run<V>(element). `wide`: all its
/// addresses are aligned for Wide.
template <typename Op>
void for_each_element(const Lane& lane, const char* name, std::int64_t count, bool wide, const Op& op) {
  if (count <= 0) return;
  if (wide)
    launch(lane, name, elementwise_kernel<Wide, Op>, blocks_for(count / 4), kThreads, count, op);
  else
    launch(lane, name, elementwise_kernel<Narrow, Op>, blocks_for(count), kThreads, count, op);
}

}  // namespace lockstep::cuda
