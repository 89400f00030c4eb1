// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of all heads of attention_cuda.cu at once, in tiles of shared memory. A number of the result adds
// in float32 in the order of the inner index, with fused multiply-adds.
#pragma once

#include "kernels/cuda_vector.h"

namespace lockstep::cuda {
namespace {

constexpr int kEdge = 64, kDepth = 16;      ///< edge of a tile of the result; depth of its operands
constexpr int kAcross = 16, kOfThread = 4;  ///< threads along an edge; each handles 4 x 4 numbers
static_assert(kAcross * kAcross == kThreads && kAcross * kOfThread == kEdge);
static_assert(kThreads * kOfThread == kEdge * kDepth);
constexpr int kTileRow = kEdge + 4;        ///< numbers of a tile's row in memory: 16-byte aligned
constexpr std::int64_t kMaxHeads = 65535;  ///< grid limit; kernels loop over further heads

/// Element (i, j) of head h of sample s is at[s * sample + h * head + i * row + j * column]. Either the row
/// or the column stride is 1.
template <typename T>
struct Matrix {
  T* at;
  std::int64_t sample, head, row, column;

  __device__ T* of(std::int64_t s, std::int64_t h) const { return at + s * sample + h * head; }
  /// True if four neighbours whose first index is a multiple of four can be read in one access.
  bool is_wide() const {
    return wide_aligned(at) && sample % 4 == 0 && head % 4 == 0 && (column == 1 ? row : column) % 4 == 0;
  }
};

template <typename T>
Matrix<T> transposed(const Matrix<T>& m) {
  return {m.at, m.sample, m.head, m.column, m.row};
}

/// The part of a product that a causal mask leaves: all; the lower triangle of the result; the inner index up
/// to the row; the inner index from the row on.
enum class Triangle { none, result, up_to_row, from_row };

template <typename A, typename B, typename C>
struct Product {
  Matrix<const A> a;
  Matrix<const B> b;
  Matrix<C> c;
  std::int64_t n, heads, rows, inner, columns;
  float factor;
  Triangle triangle;
  bool wide_a = false, wide_b = false, wide_c = false;
};

/// Four numbers that one access moves.
struct alignas(16) Neighbours {
  Pack<4> pack;
};

/// tile[k][i] = element (i, k) of the matrix at `from`; zero from `rows` and from `inner` on. Each thread
/// reads four neighbours.
template <typename T>
__device__ void load_tile(const T* from, std::int64_t row, std::int64_t column, bool wide, std::int64_t rows,
                          std::int64_t inner, float (&tile)[kDepth][kTileRow]) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool along = column == 1;  // neighbours are along the inner index
  const int i = along ? thread / (kDepth / 4) : thread % (kEdge / 4) * 4;
  const int k = along ? thread % (kDepth / 4) * 4 : thread / (kEdge / 4);
  const std::int64_t rest = i < rows && k < inner ? (along ? inner - k : rows - i) : 0;
  from += along ? i * row + k : k * column + i;
  Pack<4> values = {};
  if (wide && rest >= 4) {
    values = Wide::load(from);
  } else {
    for (int e = 0; e < 4; ++e)
      if (e < rest) values.at[e] = widened(from[e]);
  }
  if (along)
    for (int e = 0; e < 4; ++e) tile[k + e][i] = values.at[e];
  else
    *reinterpret_cast<Neighbours*>(&tile[k][i]) = {values};
}

/// c = factor * a b for every head of every sample. Thread (r, w) handles rows 4 r to 4 r + 3 and columns 4 w
/// to 4 w + 3 of a tile.
template <typename A, typename B, typename C>
__global__ void __launch_bounds__(kThreads) product_kernel(Product<A, B, C> p) {
  alignas(16) __shared__ float left[kDepth][kTileRow], right[kDepth][kTileRow];
  const int row = static_cast<int>(threadIdx.x) / kAcross * kOfThread;
  const int column = static_cast<int>(threadIdx.x) % kAcross * kOfThread;
  const std::int64_t tiles = (p.columns + kEdge - 1) / kEdge;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) / tiles * kEdge;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) % tiles * kEdge;
  if (p.triangle == Triangle::result && first_column > first_row + kEdge - 1) return;
  const std::int64_t begin = p.triangle == Triangle::from_row ? first_row : 0;
  const std::int64_t end =
      p.triangle == Triangle::up_to_row && first_row + kEdge < p.inner ? first_row + kEdge : p.inner;
  for (std::int64_t batch = blockIdx.z; batch < p.n * p.heads; batch += gridDim.z) {
    const std::int64_t s = batch / p.heads, h = batch % p.heads;
    const A* a = p.a.of(s, h) + first_row * p.a.row + begin * p.a.column;
    const B* b = p.b.of(s, h) + first_column * p.b.column + begin * p.b.row;
    float sums[kOfThread][kOfThread] = {};
    for (std::int64_t first = begin; first < end;
         first += kDepth, a += kDepth * p.a.column, b += kDepth * p.b.row) {
      __syncthreads();  // the previous tiles have been read
      load_tile(a, p.a.row, p.a.column, p.wide_a, p.rows - first_row, end - first, left);
      load_tile(b, p.b.column, p.b.row, p.wide_b, p.columns - first_column, end - first, right);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kDepth; ++k) {
        const Pack<4> x = Wide::load(&left[k][row]), y = Wide::load(&right[k][column]);
#pragma unroll
        for (int r = 0; r < kOfThread; ++r)
#pragma unroll
          for (int w = 0; w < kOfThread; ++w) sums[r][w] = fmaf(x.at[r], y.at[w], sums[r][w]);
      }
    }
    C* c = p.c.of(s, h) + (first_row + row) * p.c.row + (first_column + column) * p.c.column;
#pragma unroll
    for (int r = 0; r < kOfThread; ++r) {
      if (first_row + row + r >= p.rows) break;
      Pack<4> values;
#pragma unroll
      for (int w = 0; w < kOfThread; ++w) values.at[w] = p.factor * sums[r][w];
      const std::int64_t rest = p.columns - first_column - column;
      if (p.wide_c && rest >= 4) {
        Wide::store(c + r * p.c.row, values);
      } else {
        for (int w = 0; w < kOfThread; ++w)
          if (w < rest) c[r * p.c.row + w * p.c.column] = narrowed<C>(values.at[w]);
      }
    }
  }
}

template <typename A, typename B, typename C>
void multiply(const Lane& lane, const char* name, Product<A, B, C> product) {
  product.wide_a = product.a.is_wide();
  product.wide_b = product.b.is_wide();
  product.wide_c = product.c.column == 1 && product.c.is_wide();
  const std::int64_t tiles = (product.rows + kEdge - 1) / kEdge * ((product.columns + kEdge - 1) / kEdge);
  const std::int64_t heads = product.n * product.heads;
  if (tiles <= 0 || heads <= 0) return;
  launch(lane, name, product_kernel<A, B, C>,
         dim3(static_cast<unsigned int>(tiles), 1,
              static_cast<unsigned int>(heads < kMaxHeads ? heads : kMaxHeads)),
         kThreads, product);
}

}  // namespace
}  // namespace lockstep::cuda
