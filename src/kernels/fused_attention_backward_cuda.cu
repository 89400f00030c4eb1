// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The backward pass of fused_attention_cuda.h: the gradient of queries in blocks of queries, those of keys
// and values in blocks of keys. Let p be the probability, dp the gradient of the factor of v, delta = dy . y
// and ds = p * (dp - delta). Then dq = factor ds k, dk = factor ds' q, dv = (p after dropout)' dy.
#include "kernels/fused_attention_tiles_cuda.h"

namespace lockstep::cuda {
namespace {

/// delta[i] = dy . y for each head's query, the term that the softmax's backward pass subtracts.
template <typename T>
__global__ void __launch_bounds__(kBlock) delta_kernel(Problem<T> p, const T* y, const T* dy, float* delta) {
  const std::int64_t rows = p.shape.n * p.shape.heads * p.shape.queries;
  const int lane = lane_of_warp();
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32; row < rows;
       row += static_cast<std::int64_t>(gridDim.x) * kWarps) {
    const std::int64_t i = row % p.shape.queries, h = row / p.shape.queries % p.shape.heads,
                       s = row / p.shape.queries / p.shape.heads;
    const std::int64_t at = ((s * p.shape.queries + i) * p.shape.heads + h) * p.shape.head_size;
    float sum = 0.0F;
    for (std::int64_t k = lane; k < p.shape.head_size; k += 32)
      sum += widened(dy[at + k]) * widened(y[at + k]);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, step);
    if (lane == 0) delta[row] = sum;
  }
}

/// Keys per tile, chosen so that the sums of all products fit into registers.
template <int kHead>
constexpr int kKeys = kHead > 64 ? 32 : 64;

template <typename T, int kHead>
__global__ void __launch_bounds__(kBlock)
    query_gradient_kernel(Problem<T> p, const float* logarithms, const float* delta, const T* dy, T* dq) {
  constexpr int kColumns = kKeys<kHead>;
  alignas(16) __shared__ T tiles[2 * kColumns * kStride<kHead>];
  static_assert(2 * kColumns >= kEdge);
  T* key_tile = tiles;
  T* value_tile = tiles + kColumns * kStride<kHead>;
  const int lane = lane_of_warp(), warp_row = static_cast<int>(threadIdx.x) / 32 * kRowsOfWarp;
  const std::int64_t first = first_query();
  for (std::int64_t batch = blockIdx.y; batch < p.shape.n * p.shape.heads; batch += gridDim.y) {
    const Head<T> head(p, batch);
    Left q[kHead / 16], gradient[kHead / 16];
    __syncthreads();
    load_tile<kEdge, kHead>(p, head.queries(p.q), first, head.last_query(), tiles);
    __syncthreads();
    load_left_rows<kHead>(tiles + warp_row * kStride<kHead>, q);
    __syncthreads();
    load_tile<kEdge, kHead>(p, head.outputs(dy), first, head.last_query(), tiles);
    __syncthreads();
    load_left_rows<kHead>(tiles + warp_row * kStride<kHead>, gradient);

    Accumulator sums[kHead / 8] = {};
    std::int64_t count[2];
    float logarithm[2], mean[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t row = first + warp_row + lane / 4 + 8 * half;
      count[half] = head.attended(row);
      logarithm[half] = count[half] > 0 ? logarithms[batch * p.shape.queries + row] : 0.0F;
      mean[half] = count[half] > 0 ? delta[batch * p.shape.queries + row] : 0.0F;
    }
    const std::int64_t last = head.last_key(first);
    for (std::int64_t begin = 0; begin < last; begin += kColumns) {
      __syncthreads();
      load_tile<kColumns, kHead>(p, head.keys(p.k), begin, head.length, key_tile);
      load_tile<kColumns, kHead>(p, head.keys(p.v), begin, head.length, value_tile);
      __syncthreads();
      Accumulator x[kColumns / 8], dp[kColumns / 8];
      multiply_by_rows<kColumns, kHead>(q, key_tile, x);
      multiply_by_rows<kColumns, kHead>(gradient, value_tile, dp);
      const std::uint32_t keeps =
          kept_of_queries<kColumns>(head, first + warp_row + lane / 4, begin + lane % 4 * 2);
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int half = e / 2;
          const float rescale = (keeps >> (4 * n + e) & 1U) != 0 ? p.rescale : 0.0F;
          const float probability = exponential(x[n].at[e] * p.factor - logarithm[half]);
          x[n].at[e] = begin + n * 8 + lane % 4 * 2 + e % 2 < count[half]
                           ? probability * (dp[n].at[e] * rescale - mean[half])
                           : 0.0F;
        }
      add_product<kColumns, kHead>(x, key_tile, sums);
    }
    const float factor[2] = {p.factor, p.factor};
    store_rows<kHead>(p, head.queries(dq), first + warp_row, p.shape.queries, factor, sums);
  }
}

/// Queries per tile.
template <int kHead>
constexpr int kQueries = kHead > 64 ? 16 : 32;

template <typename T, int kHead>
__global__ void __launch_bounds__(kBlock)
    key_gradients_kernel(Problem<T> p, const float* logarithms, const float* delta, const T* dy, T* dk,
                         T* dv) {
  constexpr int kColumns = kQueries<kHead>;
  alignas(16) __shared__ T key_tile[kEdge * kStride<kHead>], value_tile[kEdge * kStride<kHead>],
      query_tile[kColumns * kStride<kHead>], gradient_tile[kColumns * kStride<kHead>];
  const int lane = lane_of_warp(), warp_row = static_cast<int>(threadIdx.x) / 32 * kRowsOfWarp;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kEdge;
  for (std::int64_t batch = blockIdx.y; batch < p.shape.n * p.shape.heads; batch += gridDim.y) {
    const Head<T> head(p, batch);
    __syncthreads();
    load_tile<kEdge, kHead>(p, head.keys(p.k), first, head.length, key_tile);
    load_tile<kEdge, kHead>(p, head.keys(p.v), first, head.length, value_tile);

    Accumulator key_sums[kHead / 8] = {}, value_sums[kHead / 8] = {};
    const std::int64_t last = first < head.length ? head.last_query() : 0;
    for (std::int64_t begin = p.shape.causal ? first : 0; begin < last; begin += kColumns) {
      __syncthreads();
      load_tile<kColumns, kHead>(p, head.queries(p.q), begin, last, query_tile);
      load_tile<kColumns, kHead>(p, head.outputs(dy), begin, last, gradient_tile);
      __syncthreads();
      Accumulator x[kColumns / 8], dp[kColumns / 8];
      Left left[kHead / 16];
      load_left_rows<kHead>(key_tile + warp_row * kStride<kHead>, left);
      multiply_by_rows<kColumns, kHead>(left, query_tile, x);
      load_left_rows<kHead>(value_tile + warp_row * kStride<kHead>, left);
      multiply_by_rows<kColumns, kHead>(left, gradient_tile, dp);
      const std::int64_t i = begin + lane % 4 * 2, j = first + warp_row + lane / 4;
      const std::uint32_t keeps = kept_of_keys<kColumns>(head, i, j);
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const std::int64_t query = i + n * 8 + e % 2;
          float used = 0.0F, score = 0.0F;
          if (j + e / 2 * 8 < head.attended(query)) {
            const std::int64_t row = batch * p.shape.queries + query;
            const float rescale = (keeps >> (4 * n + e) & 1U) != 0 ? p.rescale : 0.0F;
            const float probability = exponential(x[n].at[e] * p.factor - logarithms[row]);
            used = probability * rescale;
            score = probability * (dp[n].at[e] * rescale - delta[row]);
          }
          x[n].at[e] = used;
          dp[n].at[e] = score;
        }
      add_product<kColumns, kHead>(x, gradient_tile, value_sums);
      add_product<kColumns, kHead>(dp, query_tile, key_sums);
    }
    const float key_factor[2] = {p.factor, p.factor}, value_factor[2] = {1.0F, 1.0F};
    store_rows<kHead>(p, head.keys(dk), first + warp_row, p.shape.keys, key_factor, key_sums);
    store_rows<kHead>(p, head.keys(dv), first + warp_row, p.shape.keys, value_factor, value_sums);
  }
}

}  // namespace

void fused_attention_backward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                              const AttentionDropout& dropout, const float* logarithms, ConstData y,
                              ConstData dy, const AttentionGradients& gradients) {
  float* delta = static_cast<float*>(lane.scratch);
  if (logarithms == nullptr) {
    float* again = delta + shape.n * shape.heads * shape.queries;
    fused_attention_forward(lane, shape, inputs, dropout, again, Data(nullptr, inputs.q.type()));
    logarithms = again;
  }
  with_half(dy.type(), [&]<typename T>(T) {
    with_head_size(shape.head_size, [&](auto size) {
      constexpr int kHead = decltype(size)::value;
      Problem<T> problem = problem_of<T>(lane, shape, inputs, dropout);
      problem.wide = problem.wide && whole_pieces(shape, shape.heads * shape.head_size, dy.address()) &&
                     whole_pieces(shape, inputs.query_stride, gradients.q.address()) &&
                     whole_pieces(shape, inputs.key_stride, gradients.k.address()) &&
                     whole_pieces(shape, inputs.key_stride, gradients.v.address());
      launch(lane, "attention_delta", delta_kernel<T>, blocks_for(shape.n * shape.heads * shape.queries * 64),
             kBlock, problem, y.as<T>(), dy.as<T>(), delta);
      launch(lane, "attention_dq", query_gradient_kernel<T, kHead>, grid_of(shape, shape.queries), kBlock,
             problem, logarithms, static_cast<const float*>(delta), dy.as<T>(), gradients.q.as<T>());
      launch(lane, "attention_dk_dv", key_gradients_kernel<T, kHead>, grid_of(shape, shape.keys), kBlock,
             problem, logarithms, static_cast<const float*>(delta), dy.as<T>(), gradients.k.as<T>(),
             gradients.v.as<T>());
    });
  });
}

}  // namespace lockstep::cuda
