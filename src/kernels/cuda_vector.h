// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Vector access of four numbers where addresses allow, and element-wise kernels that use it. Numbers are of
// any type of core/half.h in memory and float32 in registers. For *.cu files.
#pragma once

#if defined(__CUDA_ARCH__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "core/data.h"
#include "kernels/cuda_launch.h"

namespace lockstep::cuda {

template <int kWidth>
struct Pack {
  float at[kWidth];
};

/// The conversions of core/half.h; each is one instruction on a GPU.
inline __device__ float widened(float value) { return value; }
inline __device__ float widened(BFloat16 value) { return to_float(value); }
inline __device__ float widened(Float16 value) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(value.bits));
#else
  return to_float(value);
#endif
}
template <typename T>
__device__ T narrowed(float value) {
#if defined(__CUDA_ARCH__)
  if constexpr (dtype_of<T> == DType::bf16)
    return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
  else if constexpr (dtype_of<T> == DType::f16)
    return {__half_as_ushort(__float2half_rn(value))};
  else
    return value;
#else
  return from_float<T>(value);
#endif
}

/// The largest access of a thread.
inline constexpr int kAccessBytes = 16;

/// How a kernel reads and writes kWidth adjacent elements. Wide, Wider: in accesses of 16 bytes (four 16-bit
/// numbers: 8 bytes), to which the address is aligned. OneByOne: one at a time. Narrow: a single element.
template <int kElements>
struct InPacks {
  static constexpr int kWidth = kElements;
  /// What an access moves: its elements as words of 32 bits.
  template <typename T>
  static constexpr int kBytes = kElements * sizeof(T) < kAccessBytes ? kElements * sizeof(T) : kAccessBytes;
  template <int kSize>
  struct alignas(kSize) Words {
    std::uint32_t at[kSize / 4];
  };
  template <typename T>
  static __device__ Pack<kElements> load(const T* p) {
    constexpr int kOfAccess = kBytes<T> / sizeof(T), kOfWord = 4 / sizeof(T);
    Pack<kElements> value;
    for (int first = 0; first < kElements; first += kOfAccess) {
      const auto words = *reinterpret_cast<const Words<kBytes<T>>*>(p + first);
      for (int i = 0; i < kOfAccess; ++i) {
        const std::uint32_t word = words.at[i / kOfWord];
        if constexpr (kOfWord == 1)
          value.at[first + i] = __builtin_bit_cast(float, word);
        else
          value.at[first + i] = widened(T{static_cast<std::uint16_t>(i % 2 == 0 ? word : word >> 16)});
      }
    }
    return value;
  }
  template <typename T>
  static __device__ void store(T* p, const Pack<kElements>& value) {
    constexpr int kOfAccess = kBytes<T> / sizeof(T), kOfWord = 4 / sizeof(T);
    for (int first = 0; first < kElements; first += kOfAccess) {
      Words<kBytes<T>> words;
      for (int w = 0; w < kOfAccess / kOfWord; ++w) {
        const float* from = value.at + first + w * kOfWord;
        if constexpr (kOfWord == 1)
          words.at[w] = __builtin_bit_cast(std::uint32_t, from[0]);
        else
          words.at[w] = narrowed<T>(from[0]).bits |
                        static_cast<std::uint32_t>(narrowed<T>(from[1]).bits) << 16;
      }
      *reinterpret_cast<Words<kBytes<T>>*>(p + first) = words;
    }
  }
  /// Whether a T may be read so at this address.
  template <typename T>
  static __host__ __device__ bool aligned(const T* p) {
    return reinterpret_cast<std::uintptr_t>(p) % kBytes<T> == 0;
  }
};
struct Wide : InPacks<4> {};
struct Wider : InPacks<8> {};
template <int kElements>
struct OneByOne {
  static constexpr int kWidth = kElements;
  template <typename T>
  static __device__ Pack<kElements> load(const T* p) {
    Pack<kElements> value;
    for (int i = 0; i < kElements; ++i) value.at[i] = widened(p[i]);
    return value;
  }
  template <typename T>
  static __device__ void store(T* p, const Pack<kElements>& value) {
    for (int i = 0; i < kElements; ++i) p[i] = narrowed<T>(value.at[i]);
  }
};
using Loose = OneByOne<4>;
using Narrow = OneByOne<1>;

/// True if all addresses (pointers, Data or ConstData; null is aligned) are aligned for Wide, each by its
/// type.
template <typename T>
bool wide_aligned(const T* pointer) {
  return Wide::aligned(pointer);
}
inline bool wide_aligned(ConstData data) {
  const std::size_t bytes = Wide::kWidth * size_in_bytes(data.type());
  return reinterpret_cast<std::uintptr_t>(data.address()) % bytes == 0;
}
template <typename First, typename Second, typename... Others>
bool wide_aligned(First first, Second second, Others... others) {
  return wide_aligned(first) && wide_aligned(second, others...);
}

inline __device__ float positive_part(float value) { return value < 0.0F ? 0.0F : value; }  // NaN stays NaN

/// Calls op.run<V>(element) for pieces of V::kWidth elements, then for the remaining elements one by one.
template <typename V, typename Op>
__global__ void __launch_bounds__(kThreads) elementwise_kernel(std::int64_t count, Op op) {
  const std::int64_t pieces = count / V::kWidth, stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (std::int64_t i = thread; i < pieces; i += stride) op.template run<V>(i * V::kWidth);
  if (const std::int64_t rest = pieces * V::kWidth + thread; rest < count) op.template run<Narrow>(rest);
}

/// Runs an element-wise operation, a struct with a device function template run<V>(element). `wide`: all its
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
