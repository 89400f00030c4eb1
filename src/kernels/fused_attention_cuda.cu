// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The forward pass of fused_attention_cuda.h. Scores stay unscaled: exp(factor (x - max)) is
// 2^(scale x - scale max), one fused multiply-add and one power of two.
#include "kernels/fused_attention_tiles_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr double kLog2 = 0.69314718055994531;  ///< natural logarithm of 2

template <int kHead, bool kDropout>
using Forward = std::conditional_t<(kHead > 64), Tiling<4, 2, 32, 2, kHead <= 96 && !kDropout>,
                                   Tiling<4, 2, 64, 2, true>>;

/// The own queries, and two buffers of keys and values.
template <int kHead, bool kDropout>
constexpr int kForwardBytes =
    (Forward<kHead, kDropout>::kRows + 4 * Forward<kHead, kDropout>::kColumns) * kStride<kHead> * 2;

template <typename T, int kHead, bool kDropout, int kSharedBytes>
__global__ void __launch_bounds__(Forward<kHead, kDropout>::kThreads, Forward<kHead, kDropout>::kBlocks)
    forward_kernel(Problem<T> p, float* logarithms, T* y) {
  using Tiles = Forward<kHead, kDropout>;
  constexpr int kColumns = Tiles::kColumns, kParts = Tiles::kParts, kTile = kColumns * kStride<kHead>;
  T* query_tile = dynamic_shared<T>();
  T* tiles = query_tile + Tiles::kRows * kStride<kHead>;  // keys, values, next keys, next values
  static_assert((Tiles::kRows * kStride<kHead> + 4 * kTile) * sizeof(T) == kSharedBytes);
  const int lane = lane_of_warp(), warp_row = warp_of_block() * Tiles::kRowsOfWarp;
  const int first = first_query(Tiles::kRows), warp_first = first + warp_row;
  const int number = head_of_block();
  if (number >= p.batches) return;
  const Head<T> head(p, number);
  const Mask<kDropout> mask(head);
  const int last = head.last_key(first, Tiles::kRows), last_query = head.last_query();
  const auto copy_keys = [&](int begin, T* to) {
    copy_tile<Tiles, kColumns, kHead>(p, head.keys(p.k), begin, head.length, to);
    copy_tile<Tiles, kColumns, kHead>(p, head.keys(p.v), begin, head.length, to + kTile);
    commit_copies();
  };
  OwnRows<Tiles::kHeld, kParts, kHead, T> q;
  if (last > 0) {
    copy_tile<Tiles, Tiles::kRows, kHead>(p, head.queries(p.q), first, last_query, query_tile);
    copy_keys(0, tiles);
    wait_copies<0>();
    __syncthreads();
    q.take(query_tile + warp_row * kStride<kHead>);
  }
  Accumulator out[kParts][kHead / 8] = {};
  float max[kParts][2];  // times the scale
  double sum[kParts][2];
#pragma unroll
  for (int m = 0; m < kParts; ++m)
    for (int half = 0; half < 2; ++half) max[m][half] = -INFINITY, sum[m][half] = 0.0;
  // Keys that no query of the warp attends to are skipped; keys that all attend to need no mask.
  const int warp_last = warp_first < last_query ? head.attended(warp_first + Tiles::kRowsOfWarp - 1) : 0;
  const int unmasked = head.attended(warp_first);
  T* now = tiles;
  T* next = tiles + 2 * kTile;
  for (int begin = 0; begin < last; begin += kColumns) {
    if (begin + kColumns < last) copy_keys(begin + kColumns, next);
    if (begin < warp_last) {
      Accumulator x[kParts][kColumns / 8];
      multiply_by_rows<kColumns, kHead>(q, now, x);
      if (begin + kColumns > unmasked)
        for_masked_keys<kParts, kColumns>(head, warp_first + lane / 4, begin + lane % 4 * 2,
                                          [&](int m, int n, int e) { x[m][n].at[e] = -INFINITY; });
#pragma unroll
      for (int m = 0; m < kParts; ++m) {
        const std::uint32_t keeps =
            mask.template kept_of_queries<kColumns>(warp_first + 16 * m + lane / 4, begin + lane % 4 * 2);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float tile_max = -INFINITY, tile_sum = 0.0F;
#pragma unroll
          for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e) tile_max = fmaxf(tile_max, x[m][n].at[2 * half + e]);
          const float before = max[m][half], now_max = fmaxf(before, max_of_row(tile_max) * p.scale);
          const float origin = now_max == -INFINITY ? 0.0F : now_max;  // no infinity minus another
          const float rescale = exponential2(before - origin);
          max[m][half] = now_max;
#pragma unroll
          for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              float& score = x[m][n].at[2 * half + e];
              const float value = exponential2(fmaf(score, p.scale, -origin));
              tile_sum += value;
              score = is_kept(keeps, n, 2 * half + e) ? value : 0.0F;
            }
          sum[m][half] = fma(sum[m][half], static_cast<double>(rescale), static_cast<double>(tile_sum));
#pragma unroll
          for (int n = 0; n < kHead / 8; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e) out[m][n].at[2 * half + e] *= rescale;
        }
      }
      add_product<kColumns, kHead>(x, now + kTile, out);
    }
    wait_copies<0>();
    __syncthreads();  // the next tile has arrived, and all have read this one
    T* const used = now;
    now = next;
    next = used;
  }
#pragma unroll
  for (int m = 0; m < kParts; ++m) {
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const double total = sum_of_row(sum[m][half]);
      const int row = warp_first + 16 * m + lane / 4 + 8 * half;
      const bool live = row < last_query;
      factor[half] = live ? static_cast<float>(static_cast<double>(p.rescale) / total) : 0.0F;
      if (logarithms != nullptr && lane % 4 == 0 && row < p.queries)
        logarithms[head.first_statistic() + row] =
            live ? static_cast<float>((static_cast<double>(max[m][half]) + log2(total)) * kLog2) : 0.0F;
    }
    store_rows<kHead>(p, head.outputs(y), warp_first + 16 * m, p.queries, factor, out[m]);
  }
}

}  // namespace

std::size_t fused_attention_statistics_bytes(const AttentionShape& shape) {
  return static_cast<std::size_t>(shape.n * shape.heads * shape.queries) * sizeof(float);
}
std::size_t fused_attention_scratch_bytes(const AttentionShape& shape) {
  return 2 * fused_attention_statistics_bytes(shape);
}

void fused_attention_forward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                             const AttentionDropout& dropout, float* logarithms, Data y) {
  with_half(inputs.q.type(), [&]<typename T>(T) {
    with_instance(shape, [&](auto size, auto with_dropout) {
      constexpr int kHead = decltype(size)::value;
      constexpr bool kDropout = decltype(with_dropout)::value;
      constexpr int kBytes = kForwardBytes<kHead, kDropout>;
      using Tiles = Forward<kHead, kDropout>;
      Problem<T> problem = problem_of<T>(lane, shape, inputs, dropout);
      problem.wide = problem.wide && whole_pieces(shape, shape.heads * shape.head_size, y.address());
      launch_with_shared(lane, "attention", forward_kernel<T, kHead, kDropout, kBytes>,
                         grid_of<Tiles>(shape, shape.queries), Tiles::kThreads, kBytes, problem, logarithms,
                         y.as<T>());
    });
  });
}

}  // namespace lockstep::cuda
