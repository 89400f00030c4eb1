// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Access to packs of 16 bytes (four float32 or eight 16-bit numbers) where addresses allow, and element-wise
// kernels that use it. Numbers are of any type of core/half.h in memory and float32 in registers. For *.cu
// files.
#pragma once

#include <cstdint>
#include <type_traits>

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

// How a kernel reads and writes kWidth adjacent elements: fetch() reads them as they are in memory, so that a
// thread can have several reads in flight in few registers; unpack() widens them; load() is both. store()
// writes to global memory.

/// In accesses of 16 bytes (four 16-bit numbers: of 8 bytes), to which the address must be aligned.
template <int kElements>
struct InPacks {
  static constexpr int kWidth = kElements;
  template <typename T>
  static constexpr int kBytes = kElements * sizeof(T) < kAccessBytes ? kElements * sizeof(T) : kAccessBytes;
  template <typename T>
  static constexpr int kReadsAhead = kAccessBytes / kBytes<T>;  ///< of kWidth elements, for 16 bytes
  /// One access, as words of 32 bits: the compiler would move 16-bit elements one at a time.
  template <int kSize>
  struct alignas(kSize) Words {
    std::uint32_t at[kSize / 4];
  };
  template <typename T>
  struct Raw {
    Words<kBytes<T>> access[kElements * sizeof(T) / kBytes<T>];
  };
  template <typename T>
  static __device__ Raw<T> fetch(const T* p) {
    Raw<T> raw;
    for (int i = 0; i < kElements * static_cast<int>(sizeof(T)) / kBytes<T>; ++i)
      raw.access[i] = reinterpret_cast<const Words<kBytes<T>>*>(p)[i];
    return raw;
  }
  template <typename T>
  static __device__ Pack<kElements> unpack(const Raw<T>& raw) {
    constexpr int kOfAccess = kBytes<T> / sizeof(T), kOfWord = 4 / sizeof(T);
    Pack<kElements> value;
    for (int i = 0; i < kElements; ++i) {
      const std::uint32_t word = raw.access[i / kOfAccess].at[i % kOfAccess / kOfWord];
      if constexpr (kOfWord == 1)
        value.at[i] = __builtin_bit_cast(float, word);
      else
        value.at[i] = widened(T{static_cast<std::uint16_t>(i % 2 == 0 ? word : word >> 16)});
    }
    return value;
  }
  template <typename T>
  static __device__ Pack<kElements> load(const T* p) {
    return unpack<T>(fetch(p));
  }
  /// Writes to global memory, and to no other. In PTX, because the compiler stores the words one at a time
  /// where the store stands in a branch.
  template <int kSize>
  static __device__ void put(void* p, const Words<kSize>& words) {
#if defined(__CUDA_ARCH__)
    const std::size_t address = __cvta_generic_to_global(p);
    if constexpr (kSize == 16)
      asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(words.at[0]),
                   "r"(words.at[1]), "r"(words.at[2]), "r"(words.at[3])
                   : "memory");
    else
      asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(address), "r"(words.at[0]), "r"(words.at[1])
                   : "memory");
#else
#if defined(LOCKSTEP_CUDA_EMULATION)
    emulation::require_global(p, kSize, "st.global");
#endif
    *static_cast<Words<kSize>*>(p) = words;
#endif
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
          words.at[w] = narrowed<T>(from[0]).bits | static_cast<std::uint32_t>(narrowed<T>(from[1]).bits)
                                                        << 16;
      }
      put(p + first, words);
    }
  }
};
struct Wide : InPacks<4> {};
struct Wider : InPacks<8> {};

/// One element at a time, at any address.
template <int kElements>
struct OneByOne {
  static constexpr int kWidth = kElements;
  template <typename T>
  static constexpr int kReadsAhead = 1;
  template <typename T>
  struct Raw {
    T at[kElements];
  };
  template <typename T>
  static __device__ Raw<T> fetch(const T* p) {
    Raw<T> raw;
    for (int i = 0; i < kElements; ++i) raw.at[i] = p[i];
    return raw;
  }
  template <typename T>
  static __device__ Pack<kElements> unpack(const Raw<T>& raw) {
    Pack<kElements> value;
    for (int i = 0; i < kElements; ++i) value.at[i] = widened(raw.at[i]);
    return value;
  }
  template <typename T>
  static __device__ Pack<kElements> load(const T* p) {
    return unpack<T>(fetch(p));
  }
  template <typename T>
  static __device__ void store(T* p, const Pack<kElements>& value) {
    for (int i = 0; i < kElements; ++i) p[i] = narrowed<T>(value.at[i]);
  }
};
using Loose = OneByOne<4>;
using Narrow = OneByOne<1>;

/// The access of 16 bytes, where the narrowest type among a kernel's arrays is T.
template <typename T>
using Whole = std::conditional_t<sizeof(T) == sizeof(float), Wide, Wider>;

/// True if all addresses (pointers, Data or ConstData; null is aligned) are aligned for accesses of 16 bytes.
template <typename T>
bool wide_aligned(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % kAccessBytes == 0;
}
inline bool wide_aligned(ConstData data) { return wide_aligned(static_cast<const char*>(data.address())); }
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

/// Runs an element-wise operation, a struct with a device function template run<V>(element). T: the narrowest
/// type of its arrays. `wide`: wide_aligned() for all of them.
template <typename T = float, typename Op>
void for_each_element(const Lane& lane, const char* name, std::int64_t count, bool wide, const Op& op) {
  using V = Whole<T>;
  if (count <= 0) return;
  if (wide)
    launch(lane, name, elementwise_kernel<V, Op>, blocks_for(count / V::kWidth), kThreads, count, op);
  else
    launch(lane, name, elementwise_kernel<Narrow, Op>, blocks_for(count), kThreads, count, op);
}

}  // namespace lockstep::cuda
