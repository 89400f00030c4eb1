// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of a warp on the tensor cores, in 16-bit types with float32 sums: 16 x 8 += (16 x 16) (16 x 8).
// For *.cu files. All 32 threads of a warp must call these functions together. The result of each instruction
// depends on its operands alone, so the order of instructions in a kernel fixes the bits.
//
// Elements held by each thread (PTX ISA, "Matrix fragments for mma.m16n8k16"), with `lane` its index in the
// warp, row = lane / 4 and pair = lane % 4 * 2:
//   Accumulator  (row, pair), (row, pair + 1), (row + 8, pair), (row + 8, pair + 1)
//   Left         pairs along the inner index: (row, pair), (row + 8, pair), (row, pair + 8),
//                (row + 8, pair + 8)
//   Right        (pair, column lane / 4), (pair + 8, column lane / 4)
//
// Tiles are in shared memory; their rows begin at multiples of 16 bytes. If the row stride is 16 bytes more
// than a multiple of 128 bytes, the eight rows of a load fall into different banks.
#pragma once

#include "kernels/cuda_vector.h"
#if defined(LOCKSTEP_CUDA_EMULATION)
#include "tensor_cores_emulation.h"
#endif

namespace lockstep::cuda {

struct Accumulator {
  float at[4];
};
struct Left {
  std::uint32_t at[4];
};
struct Right {
  std::uint32_t at[2];
};

/// Loads four matrices of 8 x 8. Threads 0 - 7, 8 - 15, 16 - 23 and 24 - 31 pass the addresses of their rows.
template <bool kTransposed>
__device__ void load_matrices(const void* row, std::uint32_t (&to)[4]) {
#if defined(LOCKSTEP_CUDA_EMULATION)
  emulation::load_matrices<kTransposed>(row, to);
#elif defined(__CUDA_ARCH__)
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
#endif
}

/// c += a b.
template <typename T>
__device__ void multiply_add(const Left& a, const Right& b, Accumulator& c) {
  static_assert(dtype_of<T> == DType::bf16 || dtype_of<T> == DType::f16);
#if defined(LOCKSTEP_CUDA_EMULATION)
  emulation::multiply_matrices<T>(a.at, b.at, c.at);
#elif defined(__CUDA_ARCH__)
  if constexpr (dtype_of<T> == DType::bf16)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c.at[0]), "+f"(c.at[1]), "+f"(c.at[2]), "+f"(c.at[3])
        : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "r"(b.at[0]), "r"(b.at[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c.at[0]), "+f"(c.at[1]), "+f"(c.at[2]), "+f"(c.at[3])
        : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "r"(b.at[0]), "r"(b.at[1]));
#endif
}

inline __device__ int lane_of_warp() { return static_cast<int>(threadIdx.x) % 32; }

/// Loads the 16 x 16 operand whose element (i, k) is tile[i * stride + k].
template <typename T>
__device__ Left load_left(const T* tile, int stride) {
  const int lane = lane_of_warp();
  Left value;
  load_matrices<false>(tile + (lane % 16) * stride + lane / 16 * 8, value.at);
  return value;
}

/// Loads two adjacent 16 x 8 operands whose element (k, j) is tile[j * stride + k].
template <typename T>
__device__ void load_right(const T* tile, int stride, Right (&value)[2]) {
  const int lane = lane_of_warp();
  std::uint32_t parts[4];
  load_matrices<false>(tile + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8, parts);
  for (int i = 0; i < 4; ++i) value[i / 2].at[i % 2] = parts[i];
}
/// Loads two adjacent 16 x 8 operands whose element (k, j) is tile[k * stride + j].
template <typename T>
__device__ void load_right_transposed(const T* tile, int stride, Right (&value)[2]) {
  const int lane = lane_of_warp();
  std::uint32_t parts[4];
  load_matrices<true>(tile + (lane % 16) * stride + lane / 16 * 8, parts);
  for (int i = 0; i < 4; ++i) value[i / 2].at[i % 2] = parts[i];
}

template <typename T>
__device__ std::uint32_t pair_of(float first, float second) {
#if defined(__CUDA_ARCH__)
  // One instruction rounds and packs both.
  std::uint32_t pair;
  if constexpr (dtype_of<T> == DType::bf16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return static_cast<std::uint32_t>(narrowed<T>(first).bits) |
         static_cast<std::uint32_t>(narrowed<T>(second).bits) << 16;
#endif
}
/// Two adjacent accumulators, rounded to T, as the left operand of the next product.
template <typename T>
__device__ Left as_left(const Accumulator& first, const Accumulator& second) {
  return {{pair_of<T>(first.at[0], first.at[1]), pair_of<T>(first.at[2], first.at[3]),
           pair_of<T>(second.at[0], second.at[1]), pair_of<T>(second.at[2], second.at[3])}};
}

}  // namespace lockstep::cuda
