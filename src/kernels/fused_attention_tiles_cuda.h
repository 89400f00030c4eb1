// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A warp's work on tiles, for the kernels of fused_attention_cuda.h: copies from global to shared memory,
// products, sums of rows, and stores of results. For fused_attention*_cuda.cu.
#pragma once

#include "kernels/cuda_shared_memory.h"
#include "kernels/cuda_tensor_cores.h"
#include "kernels/fused_attention_problem_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr unsigned int kWholeWarp = 0xFFFFFFFFU;

/// 2^x for x <= 0, or slightly above. Its relative error is at most 2 units in the last place of a float32,
/// below a rounding of the 16-bit types; results below 2^-126 are zero.
inline __device__ float exponential2(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

/// Starts the copies of kRows rows to the tile, beginning with row `first`. Rows from `last` on and columns
/// from head_size on are cleared. Rows that cannot be read 16 bytes at a time are copied at once.
template <typename Tiles, int kRows, int kHead, typename T>
__device__ void copy_tile(const Problem<T>& p, HeadRows<const T> from, int first, int last, T* tile) {
  constexpr int kPieces = kHead / 8;
  constexpr int kStep = Tiles::kThreads / kPieces;  // rows of one pass of the block
  constexpr bool kWholeRows = Tiles::kThreads % kPieces == 0 && kRows % kStep == 0;
  const int thread = static_cast<int>(threadIdx.x), column = thread % kPieces * 8;
  const T* source = from.row(first + thread / kPieces) + column;
  T* target = tile + thread / kPieces * kStride<kHead> + column;
  const int rows = last - first - thread / kPieces;
  // With heads of 96, a row's 12 pieces do not divide the threads: the last ones copy nothing.
  const int most = kWholeRows ? kRows : thread < kStep * kPieces ? kRows - thread / kPieces : 0;
  if (p.wide) {
    const int present = column < p.head_size ? rows : 0;
#pragma unroll
    for (int i = 0; i < kRows; i += kStep, source += kStep * from.stride)
      if (kWholeRows || i < most)
        copy_async<16>(target + i * kStride<kHead>, i < present ? source : from.at, i < present);
  } else {
#pragma unroll 1
    for (int i = 0; i < most; i += kStep, source += kStep * from.stride)
#pragma unroll 1
      for (int e = 0; e < 8; ++e)
        target[i * kStride<kHead> + e] = i < rows && column + e < p.head_size ? source[e] : T{};
  }
}

/// Stores 16 result rows, the sums times one factor for each of the thread's two rows; with a factor of zero,
/// zeros. Rows from `last` on are not written.
template <int kHead, typename T>
__device__ void store_rows(const Problem<T>& p, HeadRows<T> to, int first, int last, const float (&factor)[2],
                           const Accumulator (&sums)[kHead / 8]) {
  const int lane = lane_of_warp();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + lane / 4 + 8 * half;
    if (row >= last) continue;
    T* at = to.row(row);
    const bool live = factor[half] != 0.0F;
#pragma unroll
    for (int n = 0; n < kHead / 8; ++n) {
      const int column = n * 8 + lane % 4 * 2;
      const float a = live ? factor[half] * sums[n].at[2 * half] : 0.0F;
      const float b = live ? factor[half] * sums[n].at[2 * half + 1] : 0.0F;
      if (p.wide && column < p.head_size) {
        *reinterpret_cast<std::uint32_t*>(at + column) = pair_of<T>(a, b);
      } else {
        if (column < p.head_size) at[column] = narrowed<T>(a);
        if (column + 1 < p.head_size) at[column + 1] = narrowed<T>(b);
      }
    }
  }
}

/// A warp's own rows as left operands.
template <bool kHeld, int kParts, int kHead, typename T>
class OwnRows {
 public:
  __device__ void take(const T* rows) {
    if constexpr (kHeld) {
#pragma unroll
      for (int m = 0; m < kParts; ++m)
#pragma unroll
        for (int k = 0; k < kHead / 16; ++k)
          held_[m][k] = load_left(rows + m * 16 * kStride<kHead> + k * 16, kStride<kHead>);
    } else {
      rows_ = rows;
    }
  }
  __device__ Left operator()(int m, int k) const {
    if constexpr (kHeld)
      return held_[m][k];
    else
      return load_left(rows_ + m * 16 * kStride<kHead> + k * 16, kStride<kHead>);
  }

 private:
  Left held_[kHeld ? kParts : 1][kHeld ? kHead / 16 : 1];
  const T* rows_ = nullptr;
};

/// sums = own (16 kParts x kHead) times the transpose of the tile (kColumns x kHead).
template <int kColumns, int kHead, bool kHeld, int kParts, typename T>
__device__ void multiply_by_rows(const OwnRows<kHeld, kParts, kHead, T>& own, const T* tile,
                                 Accumulator (&sums)[kParts][kColumns / 8]) {
#pragma unroll
  for (int m = 0; m < kParts; ++m)
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) sums[m][n] = {};
#pragma unroll
  for (int k = 0; k < kHead / 16; ++k) {
    Left left[kParts];
#pragma unroll
    for (int m = 0; m < kParts; ++m) left[m] = own(m, k);
#pragma unroll
    for (int n = 0; n < kColumns / 16; ++n) {
      Right right[2];
      load_right(tile + n * 16 * kStride<kHead> + k * 16, kStride<kHead>, right);
#pragma unroll
      for (int m = 0; m < kParts; ++m)
#pragma unroll
        for (int i = 0; i < 2; ++i) multiply_add<T>(left[m], right[i], sums[m][2 * n + i]);
    }
  }
}

/// sums (16 kParts x kHead) += factors (16 kParts x kColumns, rounded to T) times the tile (kColumns x
/// kHead).
template <int kColumns, int kHead, int kParts, typename T>
__device__ void add_product(const Accumulator (&factors)[kParts][kColumns / 8], const T* tile,
                            Accumulator (&sums)[kParts][kHead / 8]) {
#pragma unroll
  for (int k = 0; k < kColumns / 16; ++k) {
    Left left[kParts];
#pragma unroll
    for (int m = 0; m < kParts; ++m) left[m] = as_left<T>(factors[m][2 * k], factors[m][2 * k + 1]);
#pragma unroll
    for (int n = 0; n < kHead / 16; ++n) {
      Right right[2];
      load_right_transposed(tile + k * 16 * kStride<kHead> + n * 16, kStride<kHead>, right);
#pragma unroll
      for (int m = 0; m < kParts; ++m)
#pragma unroll
        for (int i = 0; i < 2; ++i) multiply_add<T>(left[m], right[i], sums[m][2 * n + i]);
    }
  }
}

/// The maximum, or the sum, over the four threads that share a row.
inline __device__ float max_of_row(float value) {
  for (int step = 1; step < 4; step *= 2) value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, step));
  return value;
}
inline __device__ double sum_of_row(double value) {
  for (int step = 1; step < 4; step *= 2) value += __shfl_xor_sync(kWholeWarp, value, step);
  return value;
}

/// The warp's number. The exchange tells the compiler that branches on it do not divide the warp.
inline __device__ int warp_of_block() {
  return __shfl_sync(kWholeWarp, static_cast<int>(threadIdx.x) / 32, 0);
}
}  // namespace
}  // namespace lockstep::cuda
