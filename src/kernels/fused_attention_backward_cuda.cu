// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The backward pass of fused_attention_cuda.h: the gradient of queries in blocks of queries, those of keys
// and values in blocks of keys. Let p be the probability, dp the gradient of the factor of v, delta = dy . y
// and ds = p * (dp - delta). Then dq = factor ds k, dk = factor ds' q, dv = (p after dropout)' dy.
#include "kernels/fused_attention_tiles_cuda.h"
#include "kernels/hopper_attention_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr int kStatisticsThreads = 128;
constexpr int kShare = 8;  ///< numbers of a row that a thread reads: 16 bytes
constexpr float kLog2E = 1.4426950408889634F;

/// delta[i] = dy . y for each head's query, the term that the softmax's backward pass subtracts, and the
/// query's logarithm to base 2. kTeam threads read a row. Rows are in the order of memory, so a warp reads a
/// contiguous piece; its statistics are kTeam threads' of different heads.
template <int kTeam, typename T>
__global__ void __launch_bounds__(kStatisticsThreads)
    statistics_kernel(Problem<T> p, const float* logarithms, const T* y, const T* dy, float* delta,
                      float* base2) {
  constexpr int kRowsOfWarp = 32 / kTeam, kRowsOfBlock = kStatisticsThreads / kTeam;
  const int rows = p.batches * p.queries, lane = lane_of_warp(), column = lane % kTeam * kShare;
  const int first = static_cast<int>(blockIdx.x) * kRowsOfBlock + warp_of_block() * kRowsOfWarp;
  const int row = first + lane / kTeam;
  float sum = 0.0F;
  if (row < rows && column < p.head_size) {
    const std::int64_t at = static_cast<std::int64_t>(row) * p.head_size + column;
    Pack<kShare> a{}, b{};
    if (p.wide) {
      a = Wider::load(y + at);
      b = Wider::load(dy + at);
    } else {
      for (int e = 0; e < kShare && column + e < p.head_size; ++e)
        a.at[e] = widened(y[at + e]), b.at[e] = widened(dy[at + e]);
    }
    for (int e = 0; e < kShare; ++e) sum += b.at[e] * a.at[e];
  }
  for (int step = kTeam / 2; step > 0; step /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, step);
  if (row >= rows || lane % kTeam != 0) return;
  const int h = row % p.heads, position = row / p.heads, i = position % p.queries, s = position / p.queries;
  const int to = (s * p.heads + h) * p.queries + i;
  delta[to] = sum;
  base2[to] = logarithms[to] * kLog2E;
}

/// Calls statistics_kernel with the fewest threads per row.
template <typename T>
void statistics(const Lane& lane, const Problem<T>& p, const float* logarithms, const T* y, const T* dy,
                float* delta, float* base2) {
  const auto with_team = [&](auto size) {
    constexpr int kTeam = decltype(size)::value, kRowsOfBlock = kStatisticsThreads / kTeam;
    const std::int64_t rows = static_cast<std::int64_t>(p.batches) * p.queries;
    launch(lane, "attention_delta", statistics_kernel<kTeam, T>,
           static_cast<unsigned int>((rows + kRowsOfBlock - 1) / kRowsOfBlock), kStatisticsThreads, p,
           logarithms, y, dy, delta, base2);
  };
  if (p.head_size <= 4 * kShare)
    with_team(std::integral_constant<int, 4>{});
  else if (p.head_size <= 8 * kShare)
    with_team(std::integral_constant<int, 8>{});
  else
    with_team(std::integral_constant<int, 16>{});
}

template <int kHead>
using QueryGradient = std::conditional_t<
    (kHead > 64), Tiling<8, 1, kHead <= 96 ? 64 : 32, 1, true>,
    std::conditional_t<(kHead > 32), Tiling<4, 2, 32, 2, true>, Tiling<4, 2, 64, 2, true>>>;

/// The own queries, and two buffers of keys and values. The gradients of the own outputs are read once,
/// before the buffers are used, from the same place.
template <int kHead>
constexpr int kQueryGradientBytes =
    (QueryGradient<kHead>::kRows + 4 * QueryGradient<kHead>::kColumns) * kStride<kHead> * 2;

template <typename T, int kHead, bool kDropout, int kSharedBytes>
__global__ void __launch_bounds__(QueryGradient<kHead>::kThreads, QueryGradient<kHead>::kBlocks)
    query_gradient_kernel(Problem<T> p, const float* logarithms, const float* delta, const T* dy, T* dq) {
  using Tiles = QueryGradient<kHead>;
  constexpr int kColumns = Tiles::kColumns, kParts = Tiles::kParts, kTile = kColumns * kStride<kHead>;
  constexpr int kOwn = Tiles::kRows * kStride<kHead>;
  static_assert(Tiles::kHeld && kOwn <= 4 * kTile && (kOwn + 4 * kTile) * sizeof(T) == kSharedBytes);
  T* query_tile = dynamic_shared<T>();
  T* tiles = query_tile + kOwn;  // keys, values, next keys, next values
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
  OwnRows<Tiles::kHeld, kParts, kHead, T> q, gradient;
  if (last > 0) {
    copy_tile<Tiles, Tiles::kRows, kHead>(p, head.queries(p.q), first, last_query, query_tile);
    copy_tile<Tiles, Tiles::kRows, kHead>(p, head.outputs(dy), first, last_query, tiles);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    q.take(query_tile + warp_row * kStride<kHead>);
    gradient.take(tiles + warp_row * kStride<kHead>);
    __syncthreads();
    copy_keys(0, tiles);
    wait_copies<0>();
    __syncthreads();
  }
  Accumulator sums[kParts][kHead / 8] = {};
  float logarithm[kParts][2], mean[kParts][2];
#pragma unroll
  for (int m = 0; m < kParts; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_first + 16 * m + lane / 4 + 8 * half;
      const bool live = row < last_query;
      logarithm[m][half] = live ? logarithms[head.first_statistic() + row] : 0.0F;
      mean[m][half] = live ? delta[head.first_statistic() + row] : 0.0F;
    }
  const int warp_last = warp_first < last_query ? head.attended(warp_first + Tiles::kRowsOfWarp - 1) : 0;
  const int unmasked = head.attended(warp_first);
  T* now = tiles;
  T* next = tiles + 2 * kTile;
  for (int begin = 0; begin < last; begin += kColumns) {
    if (begin + kColumns < last) copy_keys(begin + kColumns, next);
    if (begin < warp_last) {
      Accumulator x[kParts][kColumns / 8], dp[kParts][kColumns / 8];
      multiply_by_rows<kColumns, kHead>(q, now, x);
      multiply_by_rows<kColumns, kHead>(gradient, now + kTile, dp);
      if (begin + kColumns > unmasked)
        for_masked_keys<kParts, kColumns>(head, warp_first + lane / 4, begin + lane % 4 * 2,
                                          [&](int m, int n, int e) {
                                            x[m][n].at[e] = -INFINITY;
                                            dp[m][n].at[e] = 0.0F;
                                          });
#pragma unroll
      for (int m = 0; m < kParts; ++m) {
        const std::uint32_t keeps =
            mask.template kept_of_queries<kColumns>(warp_first + 16 * m + lane / 4, begin + lane % 4 * 2);
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const float probability = exponential2(fmaf(x[m][n].at[e], p.scale, -logarithm[m][e / 2]));
            float change = dp[m][n].at[e];
            if constexpr (kDropout) change = is_kept(keeps, n, e) ? change * p.rescale : 0.0F;
            x[m][n].at[e] = probability * (change - mean[m][e / 2]);
          }
      }
      add_product<kColumns, kHead>(x, now, sums);
    }
    wait_copies<0>();
    __syncthreads();  // the next tile has arrived, and all have read this one
    T* const used = now;
    now = next;
    next = used;
  }
  const float factor[2] = {p.factor, p.factor};
#pragma unroll
  for (int m = 0; m < kParts; ++m)
    store_rows<kHead>(p, head.queries(dq), warp_first + 16 * m, p.queries, factor, sums[m]);
}

template <int kHead, bool kDropout>
using KeyGradients = std::conditional_t<
    (kHead > 64), Tiling<8, 1, kHead <= 96 ? 32 : 16, 1, true>,
    std::conditional_t<(kHead > 32), Tiling<4, 1, kDropout ? 32 : 64, 2, true>, Tiling<4, 2, 32, 2, true>>>;

/// The own keys and values, and two buffers of queries and their outputs' gradients, logarithms and deltas.
template <int kHead, bool kDropout>
constexpr int kKeyGradientsBytes = (2 * KeyGradients<kHead, kDropout>::kRows +
                                    4 * KeyGradients<kHead, kDropout>::kColumns) *
                                       kStride<kHead> * 2 +
                                   4 * KeyGradients<kHead, kDropout>::kColumns * 4;

template <typename T, int kHead, bool kDropout, int kSharedBytes>
__global__ void __launch_bounds__(KeyGradients<kHead, kDropout>::kThreads,
                                  KeyGradients<kHead, kDropout>::kBlocks)
    key_gradients_kernel(Problem<T> p, const float* logarithms, const float* delta, const T* dy, T* dk,
                         T* dv) {
  using Tiles = KeyGradients<kHead, kDropout>;
  constexpr int kColumns = Tiles::kColumns, kParts = Tiles::kParts, kTile = kColumns * kStride<kHead>;
  constexpr int kOwn = Tiles::kRows * kStride<kHead>;
  static_assert(2 * kColumns <= Tiles::kThreads);
  T* key_tile = dynamic_shared<T>();
  T* value_tile = key_tile + kOwn;
  T* tiles = value_tile + kOwn;  // queries, gradients, next queries, ...
  float* statistics =
      reinterpret_cast<float*>(tiles + 4 * kTile);  // logarithms, deltas, next logarithms, ...
  static_assert((2 * kOwn + 4 * kTile) * sizeof(T) + 4 * kColumns * sizeof(float) == kSharedBytes);
  const int lane = lane_of_warp(), warp_row = warp_of_block() * Tiles::kRowsOfWarp;
  const int first = static_cast<int>(blockIdx.x) * Tiles::kRows, warp_first = first + warp_row;
  const int number = head_of_block();
  if (number >= p.batches) return;
  const Head<T> head(p, number);
  const Mask<kDropout> mask(head);
  const int last = first < head.length ? head.last_query() : 0, start = p.causal ? first : 0;
  // Queries from `last` on are cleared, and so are their statistics: they change no sum.
  const auto copy_queries = [&](int begin, int buffer) {
    T* to = tiles + buffer * 2 * kTile;
    copy_tile<Tiles, kColumns, kHead>(p, head.queries(p.q), begin, last, to);
    copy_tile<Tiles, kColumns, kHead>(p, head.outputs(dy), begin, last, to + kTile);
    const int thread = static_cast<int>(threadIdx.x), i = begin + thread % kColumns;
    const float* from = (thread < kColumns ? logarithms : delta) + head.first_statistic();
    if (thread < 2 * kColumns)
      copy_async<4>(statistics + buffer * 2 * kColumns + thread, i < last ? from + i : from, i < last);
    commit_copies();
  };
  OwnRows<Tiles::kHeld, kParts, kHead, T> keys, values;
  if (start < last) {
    copy_tile<Tiles, Tiles::kRows, kHead>(p, head.keys(p.k), first, head.length, key_tile);
    copy_tile<Tiles, Tiles::kRows, kHead>(p, head.keys(p.v), first, head.length, value_tile);
    copy_queries(start, 0);
    wait_copies<0>();
    __syncthreads();
    keys.take(key_tile + warp_row * kStride<kHead>);
    values.take(value_tile + warp_row * kStride<kHead>);
  }
  Accumulator key_sums[kParts][kHead / 8] = {}, value_sums[kParts][kHead / 8] = {};
  // Queries before the first that attends to any of the warp's keys are skipped. From the one on that attends
  // to all of them no mask is needed.
  const int warp_start = p.causal ? warp_first : 0;
  const int unmasked = warp_first + Tiles::kRowsOfWarp > head.length ? last
                       : p.causal                                    ? warp_first + Tiles::kRowsOfWarp - 1
                                                                     : 0;
  int buffer = 0;
  for (int begin = start; begin < last; begin += kColumns) {
    if (begin + kColumns < last) copy_queries(begin + kColumns, buffer ^ 1);
    if (begin + kColumns > warp_start && warp_first < head.length) {
      const T* now = tiles + buffer * 2 * kTile;
      const float* columns = statistics + buffer * 2 * kColumns + lane % 4 * 2;
      Accumulator x[kParts][kColumns / 8], dp[kParts][kColumns / 8];
      multiply_by_rows<kColumns, kHead>(keys, now, x);
      multiply_by_rows<kColumns, kHead>(values, now + kTile, dp);
      if (begin < unmasked)
        for_masked_queries<kParts, kColumns>(head, begin + lane % 4 * 2, warp_first + lane / 4,
                                             [&](int m, int n, int e) {
                                               x[m][n].at[e] = -INFINITY;
                                               dp[m][n].at[e] = 0.0F;
                                             });
#pragma unroll
      for (int m = 0; m < kParts; ++m) {
        const std::uint32_t keeps =
            mask.template kept_of_keys<kColumns>(begin + lane % 4 * 2, warp_first + 16 * m + lane / 4);
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n) {
          const float2 logarithm = *reinterpret_cast<const float2*>(columns + n * 8);
          const float2 mean = *reinterpret_cast<const float2*>(columns + kColumns + n * 8);
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const float probability =
                exponential2(fmaf(x[m][n].at[e], p.scale, -(e % 2 == 0 ? logarithm.x : logarithm.y)));
            float change = dp[m][n].at[e];
            if constexpr (kDropout) change = is_kept(keeps, n, e) ? change * p.rescale : 0.0F;
            x[m][n].at[e] = is_kept(keeps, n, e) ? probability : 0.0F;
            dp[m][n].at[e] = probability * (change - (e % 2 == 0 ? mean.x : mean.y));
          }
        }
      }
      add_product<kColumns, kHead>(x, now + kTile, value_sums);
      add_product<kColumns, kHead>(dp, now, key_sums);
    }
    wait_copies<0>();
    __syncthreads();  // the next tile has arrived, and all have read this one
    buffer ^= 1;
  }
  const float key_factor[2] = {p.factor, p.factor}, value_factor[2] = {p.rescale, p.rescale};
#pragma unroll
  for (int m = 0; m < kParts; ++m) {
    store_rows<kHead>(p, head.keys(dk), warp_first + 16 * m, p.keys, key_factor, key_sums[m]);
    store_rows<kHead>(p, head.keys(dv), warp_first + 16 * m, p.keys, value_factor, value_sums[m]);
  }
}

}  // namespace

void fused_attention_backward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                              const AttentionDropout& dropout, const float* logarithms, ConstData y,
                              ConstData dy, const AttentionGradients& gradients) {
  float* delta = static_cast<float*>(lane.scratch);
  float* base2 = delta + shape.n * shape.heads * shape.queries;
  with_half(dy.type(), [&]<typename T>(T) {
    with_instance(shape, [&](auto size, auto with_dropout) {
      constexpr int kHead = decltype(size)::value;
      constexpr bool kDropout = decltype(with_dropout)::value;
      constexpr int kQueryBytes = kQueryGradientBytes<kHead>, kKeyBytes = kKeyGradientsBytes<kHead, kDropout>;
      using QueryTiles = QueryGradient<kHead>;
      using KeyTiles = KeyGradients<kHead, kDropout>;
      Problem<T> problem = problem_of<T>(lane, shape, inputs, dropout);
      problem.wide = problem.wide && whole_pieces(shape, shape.heads * shape.head_size, dy.address()) &&
                     whole_pieces(shape, shape.heads * shape.head_size, y.address()) &&
                     whole_pieces(shape, shape.query_stride, gradients.q.address()) &&
                     whole_pieces(shape, shape.key_stride, gradients.k.address()) &&
                     whole_pieces(shape, shape.key_stride, gradients.v.address());
      statistics<T>(lane, problem, logarithms, y.as<T>(), dy.as<T>(), delta, base2);
      if (is_hopper_attention(shape, dy.type()))
        return hopper_attention_gradients(lane, shape, inputs, base2, delta, dy, gradients);
      launch_with_shared(lane, "attention_dq", query_gradient_kernel<T, kHead, kDropout, kQueryBytes>,
                         grid_of<QueryTiles>(shape, shape.queries), QueryTiles::kThreads, kQueryBytes,
                         problem, static_cast<const float*>(base2), static_cast<const float*>(delta),
                         dy.as<T>(), gradients.q.as<T>());
      launch_with_shared(lane, "attention_dk_dv", key_gradients_kernel<T, kHead, kDropout, kKeyBytes>,
                         grid_of<KeyTiles>(shape, shape.keys), KeyTiles::kThreads, kKeyBytes, problem,
                         static_cast<const float*>(base2), static_cast<const float*>(delta), dy.as<T>(),
                         gradients.k.as<T>(), gradients.v.as<T>());
    });
  });
}

}  // namespace lockstep::cuda
