// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A problem of fused_attention_cuda.h as its kernels see it: how blocks and warps divide it, the rows of a
// head, masks, and the choice of an instance. For fused_attention*_cuda.cu.
//
// Positions and offsets within a head are 32-bit; only the address of a tile's first row is 64-bit.
#pragma once

#include <cmath>
#include <type_traits>

#include "core/philox.h"
#include "kernels/cuda_launch.h"
#include "kernels/fused_attention_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t kMostBlocks = 65535;       ///< limit of a grid's second and third size
constexpr std::int64_t kMostPositions = 1 << 30;  ///< queries or keys of a sample, heads of all samples
constexpr std::int64_t kMostStride = 1 << 23;     ///< a tile has fewer than 256 rows

/// How a kernel divides a head. A block of kWarps warps handles kParts times 16 rows per warp and loops over
/// tiles of kColumns positions of the other side, in two buffers. The registers must allow kBlocks blocks per
/// multiprocessor. kHeld: a warp's own rows stay in registers; otherwise it reads them from shared memory in
/// each product.
template <int kWarpCount, int kPartCount, int kColumnCount, int kBlockCount, bool kInRegisters>
struct Tiling {
  static constexpr int kWarps = kWarpCount, kParts = kPartCount, kColumns = kColumnCount,
                       kBlocks = kBlockCount;
  static constexpr bool kHeld = kInRegisters;
  static constexpr int kThreads = 32 * kWarps, kRowsOfWarp = 16 * kParts, kRows = kRowsOfWarp * kWarps;
};

/// Row stride of a tile with rows of kHead numbers (cuda_tensor_cores.h).
template <int kHead>
constexpr int kStride = kHead + 8;

/// A head's rows in global memory, `stride` numbers apart.
template <typename T>
struct HeadRows {
  T* at;
  int stride;
  __device__ T* row(int i) const { return at + static_cast<std::int64_t>(i) * stride; }
};

template <typename T>
struct Problem {
  AttentionDropout dropout;
  const std::uint32_t* step_word;
  const float* lengths;
  const T *q, *k, *v;
  int batches;  ///< n x heads
  int heads, head_size, queries, keys, row, query_stride, key_stride;
  bool causal, self;
  bool wide;      ///< all rows can be read 16 bytes at a time
  float factor;   ///< of the scores
  float scale;    ///< factor * log2(e): exp(factor * x) = 2^(scale * x)
  float rescale;  ///< factor for the elements that dropout keeps
};

template <typename T>
struct Head {
  const Problem<T>& p;
  int s, h, length;

  __device__ Head(const Problem<T>& problem, int number)
      : p(problem), s(number / problem.heads), h(number % problem.heads) {
    length = p.lengths == nullptr ? p.keys : static_cast<int>(length_of(p.lengths[s], p.keys));
  }
  template <typename U>
  __device__ HeadRows<U> queries(U* at) const {
    return {at + position(p.queries) * p.query_stride + h * p.head_size, p.query_stride};
  }
  template <typename U>
  __device__ HeadRows<U> keys(U* at) const {
    return {at + position(p.keys) * p.key_stride + h * p.head_size, p.key_stride};
  }
  template <typename U>
  __device__ HeadRows<U> outputs(U* at) const {
    const int width = p.heads * p.head_size;
    return {at + position(p.queries) * width + h * p.head_size, width};
  }
  /// The number of the head's first query among those of all heads.
  __device__ std::int64_t first_statistic() const {
    return (static_cast<std::int64_t>(s) * p.heads + h) * p.queries;
  }
  /// End (exclusive) of the queries that attend to any key.
  __device__ int last_query() const {
    if (length == 0) return 0;
    return p.self && length < p.queries ? length : p.queries;
  }
  /// End (exclusive) of the keys that a query i < last_query() attends to.
  __device__ int attended(int i) const { return p.causal && i + 1 < length ? i + 1 : length; }
  /// End (exclusive) of the keys that any of the queries [first, first + rows) attends to.
  __device__ int last_key(int first, int rows) const {
    return first < last_query() ? attended(first + rows - 1) : 0;
  }

 private:
  /// The sample's first position among those of all samples.
  __device__ std::int64_t position(int positions) const { return static_cast<std::int64_t>(s) * positions; }
};

/// The dropout masks of a head (AttentionDropout). Without kDropout all elements are kept.
template <bool kDropout>
struct Mask {
  template <typename T>
  __device__ explicit Mask(const Head<T>&) {}
  template <int kColumns>
  __device__ std::uint32_t kept_of_queries(int, int) const {
    return ~0U;
  }
  template <int kColumns>
  __device__ std::uint32_t kept_of_keys(int, int) const {
    return ~0U;
  }
};
template <>
struct Mask<true> {
  std::uint64_t seed;
  std::uint32_t purpose, step, sample;
  std::uint32_t quads;  ///< Philox blocks per query: four keys share one
  float rate;

  template <typename T>
  __device__ explicit Mask(const Head<T>& head)
      : seed(head.p.dropout.seed),
        purpose(head.p.dropout.purpose + static_cast<std::uint32_t>(head.h)),
        step(head.p.step_word != nullptr ? *head.p.step_word : head.p.dropout.step),
        sample(head.p.dropout.first_sample + static_cast<std::uint32_t>(head.s)),
        quads(static_cast<std::uint32_t>(head.p.row) / 4),
        rate(head.p.dropout.rate) {}
  __device__ PhiloxBlock words(int i, int j) const {
    return philox_words(seed, purpose, step, sample,
                        static_cast<std::uint32_t>(i) * quads + static_cast<std::uint32_t>(j) / 4);
  }
  __device__ bool keeps(std::uint32_t word) const { return philox_uniform(word) >= rate; }

  /// Of 16 x kColumns scores whose rows are queries: bit 4 n + e is set if element e of accumulator n is
  /// kept. The thread's first element is (i, j).
  template <int kColumns>
  __device__ std::uint32_t kept_of_queries(int i, int j) const {
    static_assert(kColumns <= 64);
    std::uint32_t bits = 0;
    const bool upper = j % 4 != 0;  // 0 or 2
#pragma unroll 1
    for (int n = 0; n < kColumns / 8; ++n)
      for (int half = 0; half < 2; ++half) {
        const PhiloxBlock block = words(i + 8 * half, j + 8 * n);
        if (keeps(upper ? block[2] : block[0])) bits |= 1U << (4 * n + 2 * half);
        if (keeps(upper ? block[3] : block[1])) bits |= 2U << (4 * n + 2 * half);
      }
    return bits;
  }
  /// The same for scores whose rows are keys j and whose columns are kColumns queries i.
  template <int kColumns>
  __device__ std::uint32_t kept_of_keys(int i, int j) const {
    static_assert(kColumns <= 64);
    std::uint32_t bits = 0;
    const int place = j % 4;
#pragma unroll 1
    for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll 1
      for (int e = 0; e < 4; ++e) {
        const PhiloxBlock block = words(i + 8 * n + e % 2, j + e / 2 * 8);
        const std::uint32_t word = place == 0   ? block[0]
                                   : place == 1 ? block[1]
                                   : place == 2 ? block[2]
                                                : block[3];
        if (keeps(word)) bits |= 1U << (4 * n + e);
      }
    return bits;
  }
};

inline __device__ bool is_kept(std::uint32_t bits, int n, int e) { return (bits >> (4 * n + e) & 1U) != 0; }

/// Calls body(m, n, e) for each score that attention masks, of 16 kParts x kColumns scores whose rows are
/// queries. The thread's first element is (i, j).
template <int kParts, int kColumns, typename T, typename Body>
__device__ void for_masked_keys(const Head<T>& head, int i, int j, const Body& body) {
  const int in_length = head.length - j, in_row = head.p.causal ? i + 1 - j : in_length;
#pragma unroll
  for (int m = 0; m < kParts; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = in_row + 16 * m + 8 * half, columns = row < in_length ? row : in_length;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (n * 8 + e >= columns) body(m, n, 2 * half + e);
    }
}
/// The same for scores whose rows are keys j and whose columns are queries i. Queries that attend to nothing
/// are not masked.
template <int kParts, int kColumns, typename T, typename Body>
__device__ void for_masked_queries(const Head<T>& head, int i, int j, const Body& body) {
  const int in_length = head.length - j, first = head.p.causal ? j - i : -kColumns;
#pragma unroll
  for (int m = 0; m < kParts; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int key = 16 * m + 8 * half, columns = key < in_length ? first + key : kColumns;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (n * 8 + e < columns) body(m, n, 2 * half + e);
    }
}

/// The number of the block's head among those of all samples; from Problem::batches on there is none
/// (grid_of).
inline __device__ int head_of_block() { return static_cast<int>(blockIdx.z * gridDim.y + blockIdx.y); }
/// Blocks start with the last queries, since these have the most work under a causal mask.
inline __device__ int first_query(int rows) { return static_cast<int>(gridDim.x - 1 - blockIdx.x) * rows; }

/// True if every head row at `at` can be read 16 bytes at a time.
bool whole_pieces(const AttentionShape& shape, std::int64_t stride, const void* at) {
  return shape.head_size % 8 == 0 && stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
}

template <typename T>
Problem<T> problem_of(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                      const AttentionDropout& dropout) {
  require(shape.queries <= kMostPositions && shape.keys <= kMostPositions &&
              shape.n * shape.heads <= kMostPositions && shape.n * shape.heads * shape.queries <= INT32_MAX,
          "fused attention: too many positions or heads");
  require(shape.query_stride < kMostStride && shape.key_stride < kMostStride &&
              shape.heads * shape.head_size < kMostStride,
          "fused attention: too many units per position");
  const double factor = 1.0 / std::sqrt(static_cast<double>(shape.head_size));
  return {dropout,
          lane.step_word,
          inputs.lengths,
          inputs.q.as<T>(),
          inputs.k.as<T>(),
          inputs.v.as<T>(),
          static_cast<int>(shape.n * shape.heads),
          static_cast<int>(shape.heads),
          static_cast<int>(shape.head_size),
          static_cast<int>(shape.queries),
          static_cast<int>(shape.keys),
          static_cast<int>(shape.row()),
          static_cast<int>(shape.query_stride),
          static_cast<int>(shape.key_stride),
          shape.causal,
          shape.self,
          whole_pieces(shape, shape.query_stride, inputs.q.address()) &&
              whole_pieces(shape, shape.key_stride, inputs.k.address()) &&
              whole_pieces(shape, shape.key_stride, inputs.v.address()),
          static_cast<float>(factor),
          static_cast<float>(factor * 1.4426950408889634),
          shape.dropout ? 1.0F / (1.0F - dropout.rate) : 1.0F};
}

/// One block per Tiles::kRows positions and head.
template <typename Tiles>
dim3 grid_of(const AttentionShape& shape, std::int64_t positions) {
  const std::int64_t heads = shape.n * shape.heads, least = heads < kMostBlocks ? heads : kMostBlocks;
  return dim3(static_cast<unsigned int>((positions + Tiles::kRows - 1) / Tiles::kRows),
              static_cast<unsigned int>(least), static_cast<unsigned int>((heads + least - 1) / least));
}

/// Calls body(head size, dropout) with the smallest size, at least the shape's, for which kernels exist.
template <typename Body>
void with_instance(const AttentionShape& shape, const Body& body) {
  require(shape.head_size <= kMostFusedHeadSize, "fused attention needs a head size of at most 128");
  const auto with_dropout = [&](auto size) {
    if (shape.dropout)
      body(size, std::true_type{});
    else
      body(size, std::false_type{});
  };
  if (shape.head_size <= 32)
    with_dropout(std::integral_constant<int, 32>{});
  else if (shape.head_size <= 64)
    with_dropout(std::integral_constant<int, 64>{});
  else if (shape.head_size <= 96)
    with_dropout(std::integral_constant<int, 96>{});
  else
    with_dropout(std::integral_constant<int, 128>{});
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
