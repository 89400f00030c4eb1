// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the kernels of fused_attention_cuda.h: the problem per head, tile loads from global to
// shared memory, a warp's products with a tile, and kernel selection. For fused_attention*_cuda.cu.
#pragma once

#include <cmath>
#include <type_traits>

#include "core/philox.h"
#include "kernels/cuda_tensor_cores.h"
#include "kernels/fused_attention_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr int kWarps = 4, kBlock = 32 * kWarps;
constexpr int kRowsOfWarp = 16;
constexpr int kEdge = kRowsOfWarp * kWarps;  ///< rows per block
constexpr std::int64_t kMaxHeads = 65535;    ///< grid limit; kernels loop over further heads
constexpr unsigned int kWholeWarp = 0xFFFFFFFFU;

/// Row stride of a tile with rows of kHead numbers (cuda_tensor_cores.h).
template <int kHead>
constexpr int kStride = kHead + 8;

/// A head's rows in global memory, `stride` numbers apart.
template <typename T>
struct HeadRows {
  T* at;
  std::int64_t stride;
};

template <typename T>
struct Problem {
  AttentionShape shape;
  AttentionDropout dropout;
  const std::uint32_t* step_word;
  const float* lengths;
  const T *q, *k, *v;
  std::int64_t query_stride, key_stride;
  float factor;
  float rescale;  ///< factor for the elements that dropout keeps
  bool wide;      ///< all rows can be read 16 bytes at a time
};

template <typename T>
struct Head {
  const Problem<T>& p;
  std::int64_t number, s, h, length;

  __device__ Head(const Problem<T>& problem, std::int64_t batch)
      : p(problem), number(batch), s(batch / problem.shape.heads), h(batch % problem.shape.heads) {
    length = p.lengths == nullptr ? p.shape.keys : length_of(p.lengths[s], p.shape.keys);
  }
  template <typename U>
  __device__ HeadRows<U> queries(U* at) const {
    return {at + s * p.shape.queries * p.query_stride + h * p.shape.head_size, p.query_stride};
  }
  template <typename U>
  __device__ HeadRows<U> keys(U* at) const {
    return {at + s * p.shape.keys * p.key_stride + h * p.shape.head_size, p.key_stride};
  }
  template <typename U>
  __device__ HeadRows<U> outputs(U* at) const {
    const std::int64_t width = p.shape.heads * p.shape.head_size;
    return {at + s * p.shape.queries * width + h * p.shape.head_size, width};
  }
  /// End (exclusive) of the queries that attend to any key.
  __device__ std::int64_t last_query() const {
    return p.shape.self && length < p.shape.queries ? length : p.shape.queries;
  }
  /// End (exclusive) of the keys that query i attends to; 0 if i is past the queries.
  __device__ std::int64_t attended(std::int64_t i) const {
    return i < p.shape.queries ? lockstep::attended(p.shape, length, i) : 0;
  }
  /// End (exclusive) of the keys that any of the queries [first, first + kEdge) attends to.
  __device__ std::int64_t last_key(std::int64_t first) const {
    if (first >= last_query()) return 0;
    return p.shape.causal && first + kEdge < length ? first + kEdge : length;
  }
  /// The Philox block of (i, j); its word is number `element(i, j) % 4`.
  __device__ PhiloxBlock words(std::int64_t i, std::int64_t j) const {
    return philox_words(p.dropout.seed, p.dropout.purpose + static_cast<std::uint32_t>(h),
                        p.step_word != nullptr ? *p.step_word : p.dropout.step,
                        p.dropout.first_sample + static_cast<std::uint32_t>(s),
                        static_cast<std::uint32_t>(element(i, j) / 4));
  }
  __device__ std::int64_t element(std::int64_t i, std::int64_t j) const { return i * p.shape.row() + j; }
  __device__ bool keeps(std::uint32_t word) const { return philox_uniform(word) >= p.dropout.rate; }
};

/// Dropout mask of a warp's 16 x kColumns scores whose rows are queries: bit 4 n + e is set if element e of
/// accumulator n is kept. The thread's first element is (i, j).
template <int kColumns, typename T>
__device__ std::uint32_t kept_of_queries(const Head<T>& head, std::int64_t i, std::int64_t j) {
  static_assert(kColumns <= 64);
  if (!head.p.shape.dropout) return ~0U;
  std::uint32_t bits = 0;
#pragma unroll 1
  for (int n = 0; n < kColumns / 8; ++n)
    for (int half = 0; half < 2; ++half) {
      const PhiloxBlock words = head.words(i + 8 * half, j + 8 * n);
      const bool upper = head.element(i + 8 * half, j + 8 * n) % 4 != 0;  // 0 or 2
      if (head.keeps(upper ? words[2] : words[0])) bits |= 1U << (4 * n + 2 * half);
      if (head.keeps(upper ? words[3] : words[1])) bits |= 2U << (4 * n + 2 * half);
    }
  return bits;
}
/// The same for scores whose rows are keys and whose columns are kColumns queries.
template <int kColumns, typename T>
__device__ std::uint32_t kept_of_keys(const Head<T>& head, std::int64_t i, std::int64_t j) {
  static_assert(kColumns <= 64);
  if (!head.p.shape.dropout) return ~0U;
  std::uint32_t bits = 0;
#pragma unroll 1
  for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll 1
    for (int e = 0; e < 4; ++e) {
      const std::int64_t query = i + 8 * n + e % 2, key = j + e / 2 * 8;
      const PhiloxBlock words = head.words(query, key);
      if (head.keeps(words[static_cast<std::size_t>(head.element(query, key) % 4)]))
        bits |= 1U << (4 * n + e);
    }
  return bits;
}

/// exp(x) for x <= 0. Its error, |x| 2^-24, is below a rounding of the 16-bit types.
inline __device__ float exponential(float x) {
#if defined(__CUDA_ARCH__)
  return __expf(x);
#else
  return expf(x);
#endif
}

/// Loads kRows rows into the tile, starting at row `first`. Rows from `last` on and columns from head_size on
/// are zero.
template <int kRows, int kHead, typename T>
__device__ void load_tile(const Problem<T>& p, HeadRows<const T> from, std::int64_t first, std::int64_t last,
                          T* tile) {
  constexpr int kPieces = kHead / 8;
  struct alignas(16) Piece {
    T at[8];
  };
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kPieces; i += kBlock) {
    const int row = i / kPieces, column = i % kPieces * 8;
    Piece piece = {};
    if (first + row < last) {
      const T* source = from.at + (first + row) * from.stride + column;
      if (p.wide) {
        if (column < p.shape.head_size) piece = *reinterpret_cast<const Piece*>(source);
      } else {
        for (int e = 0; e < 8; ++e)
          if (column + e < p.shape.head_size) piece.at[e] = source[e];
      }
    }
    *reinterpret_cast<Piece*>(tile + row * kStride<kHead> + column) = piece;
  }
}

/// Stores a warp's 16 result rows, the sums times one factor for each of the thread's two rows. Rows from
/// `last` on are not written.
template <int kHead, typename T>
__device__ void store_rows(const Problem<T>& p, HeadRows<T> to, std::int64_t first, std::int64_t last,
                           const float (&factor)[2], const Accumulator (&sums)[kHead / 8]) {
  const int lane = lane_of_warp();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = first + lane / 4 + 8 * half;
    if (row >= last) continue;
    T* at = to.at + row * to.stride;
#pragma unroll
    for (int n = 0; n < kHead / 8; ++n) {
      const int column = n * 8 + lane % 4 * 2;
      const float a = factor[half] * sums[n].at[2 * half], b = factor[half] * sums[n].at[2 * half + 1];
      if (p.wide && column < p.shape.head_size) {
        *reinterpret_cast<std::uint32_t*>(at + column) = pair_of<T>(a, b);
      } else {
        if (column < p.shape.head_size) at[column] = narrowed<T>(a);
        if (column + 1 < p.shape.head_size) at[column + 1] = narrowed<T>(b);
      }
    }
  }
}

/// sums (16 x kColumns) = left (16 x kHead) times the transpose of the tile (kColumns x kHead).
template <int kColumns, int kHead, typename T>
__device__ void multiply_by_rows(const Left (&left)[kHead / 16], const T* tile,
                                 Accumulator (&sums)[kColumns / 8]) {
#pragma unroll
  for (int n = 0; n < kColumns / 8; ++n) sums[n] = {};
#pragma unroll
  for (int k = 0; k < kHead / 16; ++k)
#pragma unroll
    for (int n = 0; n < kColumns / 16; ++n) {
      Right right[2];
      load_right(tile + n * 16 * kStride<kHead> + k * 16, kStride<kHead>, right);
#pragma unroll
      for (int i = 0; i < 2; ++i) multiply_add<T>(left[k], right[i], sums[2 * n + i]);
    }
}

/// sums (16 x kHead) += factors (16 x kColumns, rounded to T) times the tile (kColumns x kHead).
template <int kColumns, int kHead, typename T>
__device__ void add_product(const Accumulator (&factors)[kColumns / 8], const T* tile,
                            Accumulator (&sums)[kHead / 8]) {
#pragma unroll
  for (int k = 0; k < kColumns / 16; ++k) {
    const Left left = as_left<T>(factors[2 * k], factors[2 * k + 1]);
#pragma unroll
    for (int n = 0; n < kHead / 16; ++n) {
      Right right[2];
      load_right_transposed(tile + k * 16 * kStride<kHead> + n * 16, kStride<kHead>, right);
#pragma unroll
      for (int i = 0; i < 2; ++i) multiply_add<T>(left, right[i], sums[2 * n + i]);
    }
  }
}

template <int kHead, typename T>
__device__ void load_left_rows(const T* tile, Left (&left)[kHead / 16]) {
#pragma unroll
  for (int k = 0; k < kHead / 16; ++k) left[k] = load_left(tile + k * 16, kStride<kHead>);
}

/// The maximum, or the sum, over the four threads that share a row.
inline __device__ float max_of_row(float value) {
  for (int step = 1; step < 4; step *= 2) {
    const float other = __shfl_xor_sync(kWholeWarp, value, step);
    value = other > value ? other : value;
  }
  return value;
}
inline __device__ double sum_of_row(double value) {
  for (int step = 1; step < 4; step *= 2) value += __shfl_xor_sync(kWholeWarp, value, step);
  return value;
}

/// Blocks start with the last queries, since these have the most work under a causal mask.
inline __device__ std::int64_t first_query() {
  return (static_cast<std::int64_t>(gridDim.x) - 1 - blockIdx.x) * kEdge;
}

/// True if every head row at `at` can be read 16 bytes at a time.
bool whole_pieces(const AttentionShape& shape, std::int64_t stride, const void* at) {
  return shape.head_size % 8 == 0 && stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
}

template <typename T>
Problem<T> problem_of(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                      const AttentionDropout& dropout) {
  return {shape,
          dropout,
          lane.step_word,
          inputs.lengths,
          inputs.q.as<T>(),
          inputs.k.as<T>(),
          inputs.v.as<T>(),
          inputs.query_stride,
          inputs.key_stride,
          static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_size))),
          shape.dropout ? 1.0F / (1.0F - dropout.rate) : 1.0F,
          whole_pieces(shape, inputs.query_stride, inputs.q.address()) &&
              whole_pieces(shape, inputs.key_stride, inputs.k.address()) &&
              whole_pieces(shape, inputs.key_stride, inputs.v.address())};
}

/// One block per kEdge positions and head.
dim3 grid_of(const AttentionShape& shape, std::int64_t positions) {
  const std::int64_t heads = shape.n * shape.heads;
  return dim3(static_cast<unsigned int>((positions + kEdge - 1) / kEdge),
              static_cast<unsigned int>(heads < kMaxHeads ? heads : kMaxHeads));
}

/// Calls body(head size) with the smallest size, at least `size`, for which kernels exist.
template <typename Body>
void with_head_size(std::int64_t size, const Body& body) {
  require(size <= kMostFusedHeadSize, "fused attention needs a head size of at most 128");
  if (size <= 32)
    body(std::integral_constant<int, 32>{});
  else if (size <= 64)
    body(std::integral_constant<int, 64>{});
  else
    body(std::integral_constant<int, 128>{});
}

/// Calls body(T{}) for a 16-bit type.
template <typename Body>
void with_half(DType type, const Body& body) {
  require(type == DType::bf16 || type == DType::f16, "fused attention needs a 16-bit type");
  if (type == DType::bf16)
    body(BFloat16{});
  else
    body(Float16{});
}

}  // namespace
}  // namespace lockstep::cuda
