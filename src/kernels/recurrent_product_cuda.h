// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One time step of a recurrent layer in one kernel: the product with the recurrent matrix, and the cells. A
// block owns kTileRows samples and kTileUnits units, with all gates of these cells, so only the state of the
// step before comes from other blocks. For *.cu files.
//
// A block has four warps. A warp computes one product per cell, of `depth` terms: that of one gate, or a part
// of a longer product. In float32, a sum is a chain of fused multiply-adds in the order of the inner index.
// In 16-bit types, the tensor cores add 16 terms at a time to a float32 sum. A cell's terms are then the
// products of its warps, or their sum along a tree (terms_of). So the bits depend on the units and the cell
// alone, and a sample's on no other sample.
//
// Operands pass through shared memory in chunks of 128 or 256 bytes per row. While a chunk is multiplied, the
// next two are on their way in registers.
#pragma once

#include "kernels/cuda_tensor_cores.h"
#include "kernels/recurrent_cells_cuda.h"

namespace lockstep::cuda {

inline constexpr int kStepWarps = 4, kStepThreads = 32 * kStepWarps, kTileRows = 16, kTileUnits = 8;
static_assert(kTileRows * kTileUnits == kStepThreads, "a thread has one cell");

/// What a warp multiplies. Forward: left[row][k] right[k][unit]. Backward: left[row][k] right[unit][k].
template <typename T>
struct WarpProduct {
  const T* left = nullptr;
  const T* right = nullptr;
  int left_stride = 0, right_stride = 0;
  int depth = 0;  ///< 0: the product is zero
};
/// Adjacent warps share a left operand, as many as the kernel's kLefts says.
template <typename T>
struct WarpProducts {
  WarpProduct<T> of[kStepWarps];
};

struct alignas(16) Piece {
  std::uint32_t at[4];
};

/// A chunk of the operands in shared memory.
template <typename T, int kLefts, bool kBackward>
struct StepChunk {
  static constexpr int kWide = 16 / sizeof(T);          ///< elements of a piece
  static constexpr int kPieces = kLefts == 1 ? 16 : 8;  ///< of a row
  static constexpr int kDepth = kPieces * kWide;        ///< terms of each product
  static constexpr int kStride = kDepth + kWide;        ///< the next row is 4 memory banks further on
  static constexpr int kShared = kStepWarps / kLefts;   ///< warps per left operand
  static constexpr int kLeftPieces = kLefts * kTileRows * kPieces, kRightPieces = kTileUnits * kPieces;
  static constexpr int kRight = kBackward ? kTileUnits * kStride : kTileUnits * kDepth;
  static constexpr int kLoads = (kLeftPieces + kStepWarps * kRightPieces) / kStepThreads;
  static_assert(kLeftPieces % kStepThreads == 0 && kStepWarps * kRightPieces % kStepThreads == 0);

  alignas(16) T left[kLefts * kTileRows * kStride];
  alignas(16) T right[kStepWarps * kRight];

  /// A thread's share of the chunk that begins with term k.
  static __device__ void load(const WarpProducts<T>& products, std::int64_t rows, std::int64_t first_row,
                              int first_unit, int k, Piece (&pieces)[kLoads]) {
#pragma unroll
    for (int n = 0; n < kLoads; ++n) {
      const int i = static_cast<int>(threadIdx.x) + n * kStepThreads;
      pieces[n] = {};
      if (n * kStepThreads < kLeftPieces) {
        const WarpProduct<T>& product = products.of[i / (kTileRows * kPieces) * kShared];
        const std::int64_t row = first_row + i / kPieces % kTileRows;
        const int term = k + i % kPieces * kWide;
        if (row < rows && term < product.depth)
          pieces[n] = *reinterpret_cast<const Piece*>(product.left + row * product.left_stride + term);
      } else {
        const int j = i - kLeftPieces, inner = j % kRightPieces;
        const WarpProduct<T>& product = products.of[j / kRightPieces];
        constexpr int kAcross = kTileUnits / kWide;  // pieces of a term's units
        const int term = k + (kBackward ? inner % kPieces * kWide : inner / kAcross);
        const int unit = first_unit + (kBackward ? inner / kPieces : inner % kAcross * kWide);
        const int at = kBackward ? unit * product.right_stride + term : term * product.right_stride + unit;
        if (term < product.depth) pieces[n] = *reinterpret_cast<const Piece*>(product.right + at);
      }
    }
  }
  __device__ void store(const Piece (&pieces)[kLoads]) {
#pragma unroll
    for (int n = 0; n < kLoads; ++n) {
      const int i = static_cast<int>(threadIdx.x) + n * kStepThreads;
      T* to = nullptr;
      if (n * kStepThreads < kLeftPieces) {
        to = left + i / kPieces * kStride + i % kPieces * kWide;
      } else {
        const int j = i - kLeftPieces, inner = j % kRightPieces;
        to = right + j / kRightPieces * kRight +
             (kBackward ? inner / kPieces * kStride + inner % kPieces * kWide : inner * kWide);
      }
      *reinterpret_cast<Piece*>(to) = pieces[n];
    }
  }

  /// Adds the warp's products of the chunk.
  __device__ void multiply(int warp, Accumulator& sum) const {
    const T* a = left + warp / kShared * kTileRows * kStride;
    const T* b = right + warp * kRight;
    if constexpr (sizeof(T) == sizeof(float))
      multiply_in_order(a, b, sum);
    else
      multiply_on_tensor_cores(a, b, sum);
  }

 private:
  static __device__ void multiply_in_order(const float* a, const float* b, Accumulator& sum) {
    const int row = lane_of_warp() / 4, pair = lane_of_warp() % 4 * 2;
#pragma unroll 4
    for (int k = 0; k < kDepth; k += 4) {
      const Pack<4> low = Wide::load(a + row * kStride + k), high = Wide::load(a + (row + 8) * kStride + k);
      Pack<4> of[2];
      if constexpr (kBackward)
        for (int u = 0; u < 2; ++u) of[u] = Wide::load(b + (pair + u) * kStride + k);
      else
        for (int i = 0; i < 4; ++i)
          for (int u = 0; u < 2; ++u) of[u].at[i] = b[(k + i) * kTileUnits + pair + u];
      for (int i = 0; i < 4; ++i)
        for (int u = 0; u < 2; ++u) {
          sum.at[u] = fmaf(low.at[i], of[u].at[i], sum.at[u]);
          sum.at[2 + u] = fmaf(high.at[i], of[u].at[i], sum.at[2 + u]);
        }
    }
  }
  static __device__ void multiply_on_tensor_cores(const T* a, const T* b, Accumulator& sum) {
    const int lane = lane_of_warp();
#pragma unroll
    for (int k = 0; k < kDepth; k += 32) {
      std::uint32_t parts[4];  // 8 terms each
      if constexpr (kBackward)
        load_matrices<false>(b + lane % 8 * kStride + k + lane / 8 * 8, parts);
      else
        load_matrices<true>(b + (k + lane) * kTileUnits, parts);
      for (int half = 0; half < 2; ++half)
        multiply_add<T>(load_left(a + k + half * 16, kStride), Right{{parts[2 * half], parts[2 * half + 1]}},
                        sum);
    }
  }
};

/// A cell's terms from the products of the four warps.
template <int kTerms>
__device__ void terms_of(const float (&products)[kStepWarps], float (&terms)[kTerms]) {
  if constexpr (kTerms == 1) {
    terms[0] = (products[0] + products[1]) + (products[2] + products[3]);
  } else if constexpr (kTerms == 2) {
    for (int k = 0; k < 2; ++k) terms[k] = products[k] + products[k + 2];
  } else {
    for (int k = 0; k < kTerms; ++k) terms[k] = products[k];
  }
}

template <typename T, int kLefts, bool kBackward, typename Op>
__global__ void __launch_bounds__(kStepThreads)
    recurrent_step_kernel(const __grid_constant__ WarpProducts<T> products, RecurrentStep s, Op op) {
  using Chunk = StepChunk<T, kLefts, kBackward>;
  __shared__ Chunk chunks[2];
  __shared__ float results[kStepWarps][kTileRows][kTileUnits];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * kTileRows;
  const int first_unit = static_cast<int>(blockIdx.x) * kTileUnits, depth = products.of[0].depth;

  const auto load = [&](int k, Piece(&pieces)[Chunk::kLoads]) {
    Chunk::load(products, s.n, first_row, first_unit, k, pieces);
  };
  Piece even[Chunk::kLoads], odd[Chunk::kLoads];  // chunks on their way
  load(0, even);
  load(Chunk::kDepth, odd);
  const std::int64_t row = first_row + thread / kTileUnits;
  const bool mine = row < s.n;
  Cell cell = {};
  typename Op::Values values = {};
  if (mine) {
    cell = cell_of(s, row, first_unit + thread % kTileUnits);
    values = op.values(cell);
  }
  chunks[0].store(even);
  load(2 * Chunk::kDepth, even);
  __syncthreads();
  Accumulator sum = {};
  const auto multiply = [&](int k, int at, Piece(&next)[Chunk::kLoads]) {
    chunks[at].multiply(warp, sum);
    if (k + Chunk::kDepth < depth) {
      chunks[1 - at].store(next);
      load(k + 3 * Chunk::kDepth, next);
    }
    __syncthreads();
  };
  for (int k = 0; k < depth; k += 2 * Chunk::kDepth) {
    multiply(k, 0, odd);
    if (k + Chunk::kDepth < depth) multiply(k + Chunk::kDepth, 1, even);
  }
  const int lane = lane_of_warp();
  for (int i = 0; i < 4; ++i) results[warp][lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = sum.at[i];
  __syncthreads();
  if (!mine) return;
  float mine_of[kStepWarps], terms[Op::kTerms];
  for (int w = 0; w < kStepWarps; ++w) mine_of[w] = results[w][thread / kTileUnits][thread % kTileUnits];
  terms_of<Op::kTerms>(mine_of, terms);
  op.finish(cell, values, terms);
}

}  // namespace lockstep::cuda
