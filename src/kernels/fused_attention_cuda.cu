// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The forward pass of fused_attention_cuda.h.
#include "kernels/fused_attention_tiles_cuda.h"

namespace lockstep::cuda {
namespace {

template <typename T, int kHead>
__global__ void __launch_bounds__(kBlock) forward_kernel(Problem<T> p, float* logarithms, T* y) {
  alignas(16) __shared__ T key_tile[kEdge * kStride<kHead>], value_tile[kEdge * kStride<kHead>];
  const int lane = lane_of_warp(), warp_row = static_cast<int>(threadIdx.x) / 32 * kRowsOfWarp;
  const std::int64_t first = first_query();
  for (std::int64_t batch = blockIdx.y; batch < p.shape.n * p.shape.heads; batch += gridDim.y) {
    const Head<T> head(p, batch);
    __syncthreads();  // the previous tiles have been read
    load_tile<kEdge, kHead>(p, head.queries(p.q), first, head.last_query(), key_tile);
    __syncthreads();
    Left q[kHead / 16];
    load_left_rows<kHead>(key_tile + warp_row * kStride<kHead>, q);

    Accumulator out[kHead / 8] = {};
    std::int64_t count[2];
    float max[2];
    double sum[2] = {0.0, 0.0};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      count[half] = head.attended(first + warp_row + lane / 4 + 8 * half);
      max[half] = -INFINITY;
    }
    const std::int64_t last = head.last_key(first);
    for (std::int64_t begin = 0; begin < last; begin += kEdge) {
      __syncthreads();
      load_tile<kEdge, kHead>(p, head.keys(p.k), begin, head.length, key_tile);
      load_tile<kEdge, kHead>(p, head.keys(p.v), begin, head.length, value_tile);
      __syncthreads();
      Accumulator x[kEdge / 8];
      multiply_by_rows<kEdge, kHead>(q, key_tile, x);
      const std::uint32_t keeps =
          kept_of_queries<kEdge>(head, first + warp_row + lane / 4, begin + lane % 4 * 2);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        // Limit for the thread's elements of its row in this tile: those below it are attended to.
        const std::int64_t columns = count[half] - begin - lane % 4 * 2;
        float tile_max = -INFINITY, tile_sum = 0.0F;
#pragma unroll
        for (int n = 0; n < kEdge / 8; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& score = x[n].at[2 * half + e];
            score *= p.factor;
            if (n * 8 + e < columns && score > tile_max) tile_max = score;
          }
        tile_max = max_of_row(tile_max);
        const float before = max[half], now = tile_max > before ? tile_max : before;
        max[half] = now;
        const float origin = now == -INFINITY ? 0.0F : now;  // no infinity is subtracted from another
        const float rescale = exponential(before - origin);
#pragma unroll
        for (int n = 0; n < kEdge / 8; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& score = x[n].at[2 * half + e];
            const float value = n * 8 + e < columns ? exponential(score - origin) : 0.0F;
            tile_sum += value;
            score = (keeps >> (4 * n + 2 * half + e) & 1U) != 0 ? value * p.rescale : 0.0F;
          }
        sum[half] = sum[half] * static_cast<double>(rescale) + static_cast<double>(tile_sum);
#pragma unroll
        for (int n = 0; n < kHead / 8; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e) out[n].at[2 * half + e] *= rescale;
      }
      add_product<kEdge, kHead>(x, value_tile, out);
    }
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const double total = sum_of_row(sum[half]);
      factor[half] = count[half] > 0 ? static_cast<float>(1.0 / total) : 0.0F;
      const std::int64_t row = first + warp_row + lane / 4 + 8 * half;
      if (logarithms != nullptr && lane % 4 == 0 && row < p.shape.queries)
        logarithms[batch * p.shape.queries + row] =
            count[half] > 0 ? static_cast<float>(static_cast<double>(max[half]) + log(total)) : 0.0F;
    }
    if (y != nullptr) store_rows<kHead>(p, head.outputs(y), first + warp_row, p.shape.queries, factor, out);
  }
}

}  // namespace

std::size_t fused_attention_statistics_bytes(const AttentionShape& shape) {
  return static_cast<std::size_t>(shape.n * shape.heads * shape.queries) * sizeof(float);
}
std::size_t fused_attention_scratch_bytes(const AttentionShape& shape, bool kept) {
  return (kept ? 1 : 2) * fused_attention_statistics_bytes(shape);
}

void fused_attention_forward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                             const AttentionDropout& dropout, float* logarithms, Data y) {
  with_half(inputs.q.type(), [&]<typename T>(T) {
    with_head_size(shape.head_size, [&](auto size) {
      Problem<T> problem = problem_of<T>(lane, shape, inputs, dropout);
      problem.wide = problem.wide && whole_pieces(shape, shape.heads * shape.head_size, y.address());
      launch(lane, "attention", forward_kernel<T, decltype(size)::value>, grid_of(shape, shape.queries),
             kBlock, problem, logarithms, y.as<T>());
    });
  });
}

}  // namespace lockstep::cuda
