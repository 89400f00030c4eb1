// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/hopper_attention_cuda.h"

#include <cstdlib>
#include <cstring>

#include "kernels/cuda_warpgroup.h"
#include "kernels/fused_attention_tiles_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr int kGroups = 2, kOwnRows = 64 * kGroups, kBlock = kWarpgroup * kGroups;
constexpr int kTileRows = 64, kBuffers = 4, kTileNumbers = kTileRows * kTileColumns;
constexpr int kPieces = kTileColumns / 8;

/// Starts the copies of kRows rows to a tile, beginning with row `first`. Rows from `last` on and columns
/// from head_size on are cleared.
template <int kRows, typename T>
__device__ void copy_to_tile(const Problem<T>& p, HeadRows<const T> from, int first, int last, T* tile) {
  constexpr int kStep = kBlock / kPieces;
  const int thread = static_cast<int>(threadIdx.x), row = thread / kPieces, piece = thread % kPieces;
  const bool in_head = piece * 8 < p.head_size;
#pragma unroll
  for (int i = 0; i < kRows; i += kStep) {
    const int at = first + row + i;
    const bool present = in_head && at < last;
    copy_async<16>(tile + tile_place(row + i, piece), present ? from.row(at) + piece * 8 : from.at, present);
  }
}

/// All copies but those of the latest kPending groups have arrived, and all threads have finished with the
/// buffer that is filled next.
template <int kPending>
__device__ void exchange_tiles() {
  wait_copies<kPending>();
  publish_tiles();
  __syncthreads();
}

/// Starts sums = own (64 x 64) times the transpose of the tile.
template <typename T>
__device__ void start_product_by_rows(const Left (&own)[4], const T* tile, Accumulator (&sums)[8]) {
  start_product<T, true, false>(own[0], tile, 0, sums);
#pragma unroll
  for (int k = 1; k < 4; ++k) start_product<T, true, true>(own[k], tile, k, sums);
}
/// Starts sums += factors (64 x 64) times the tile.
template <typename T>
__device__ void start_added_product(const Left (&factors)[4], const T* tile, Accumulator (&sums)[8]) {
#pragma unroll
  for (int k = 0; k < 4; ++k) start_product<T, false, true>(factors[k], tile, k, sums);
}

template <typename T>
__device__ void round_to(Left (&to)[4], const Accumulator (&from)[8]) {
#pragma unroll
  for (int k = 0; k < 4; ++k) to[k] = as_left<T>(from[2 * k], from[2 * k + 1]);
}

template <typename T>
__device__ void take_rows(Left (&to)[4], const T* tile, int row) {
#pragma unroll
  for (int k = 0; k < 4; ++k) to[k] = load_left_of_tile(tile, row, k);
}

/// Shared memory: own rows of two tensors, buffers of tiles of two tensors, statistics.
constexpr int kQueryBytes = kTileAlignment + (2 * kOwnRows * kTileColumns + kBuffers * 2 * kTileNumbers) * 2;
constexpr int kKeyBytes = kQueryBytes + kBuffers * 2 * kTileRows * 4;

template <typename T>
__global__ void __launch_bounds__(kBlock, 1)
    query_gradient_kernel(Problem<T> p, const float* logarithms, const float* delta, const T* dy, T* dq) {
  const int number = head_of_block();
  if (number >= p.batches) return;
  const Head<T> head(p, number);
  const int first = first_query(kOwnRows), last_query = head.last_query();
  const int last = head.last_key(first, kOwnRows), tiles = (last + kTileRows - 1) / kTileRows;
  const int lane = lane_of_warp(), row = warp_of_block() * 16, own_first = first + row;
  if (tiles == 0) {
    const Accumulator none[8] = {};
    const float factor[2] = {0.0F, 0.0F};
    store_rows<kTileColumns>(p, head.queries(dq), own_first, p.queries, factor, none);
    return;
  }
  T* own = aligned_tile(dynamic_shared<T>());
  T* buffers = own + 2 * kOwnRows * kTileColumns;  // keys, values, next keys, ...
  const auto copy_keys = [&](int tile) {
    T* to = buffers + tile % kBuffers * 2 * kTileNumbers;
    if (tile < tiles) {
      copy_to_tile<kTileRows>(p, head.keys(p.k), tile * kTileRows, head.length, to);
      copy_to_tile<kTileRows>(p, head.keys(p.v), tile * kTileRows, head.length, to + kTileNumbers);
    }
    commit_copies();
  };
  copy_to_tile<kOwnRows>(p, head.queries(p.q), first, last_query, own);
  copy_to_tile<kOwnRows>(p, head.outputs(dy), first, last_query, own + kOwnRows * kTileColumns);
  copy_keys(0);
  float logarithm[2], mean[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = own_first + lane / 4 + 8 * half;
    const bool live = i < last_query;
    logarithm[half] = live ? logarithms[head.first_statistic() + i] : 0.0F;
    mean[half] = live ? delta[head.first_statistic() + i] : 0.0F;
  }
  copy_keys(1);
  exchange_tiles<1>();
  Left q[4], gradient[4], ds[4];
  take_rows(q, own, row);
  take_rows(gradient, own + kOwnRows * kTileColumns, row);
  Accumulator x[8] = {}, dp[8] = {}, sums[8] = {};
  const int unmasked = own_first < last_query ? head.attended(own_first) : 0;
  const auto tile_of = [&](int tile) { return buffers + tile % kBuffers * 2 * kTileNumbers; };
  const auto start_scores = [&](int tile) {
    open_products();
    start_product_by_rows(q, tile_of(tile), x);
    start_product_by_rows(gradient, tile_of(tile) + kTileNumbers, dp);
    close_products();
  };
  const auto scores_to_ds = [&](int tile) {
    const int begin = tile * kTileRows;
    if (begin + kTileRows > unmasked) {
      for_masked_keys<1, kTileRows>(head, own_first + lane / 4, begin + lane % 4 * 2, [&](int, int n, int e) {
        x[n].at[e] = -INFINITY;
        dp[n].at[e] = 0.0F;
      });
    }
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float probability = exponential2(fmaf(x[n].at[e], p.scale, -logarithm[e / 2]));
        x[n].at[e] = probability * (dp[n].at[e] - mean[e / 2]);
      }
  };
  start_scores(0);
  wait_products<0>();
  take_sums(x);
  take_sums(dp);
  scores_to_ds(0);
  copy_keys(2);
  round_to<T>(ds, x);
  for (int tile = 1; tile < tiles; ++tile) {
    exchange_tiles<1>();
    start_scores(tile);
    open_products();
    start_added_product(ds, tile_of(tile - 1), sums);
    close_products();
    wait_products<1>();
    take_sums(x);
    take_sums(dp);
    scores_to_ds(tile);
    copy_keys(tile + 2);  // also keeps the compiler from moving the wait up
    wait_products<0>();   // operands of products may change only now
    round_to<T>(ds, x);
  }
  open_products();
  start_added_product(ds, tile_of(tiles - 1), sums);
  close_products();
  wait_products<0>();
  take_sums(sums);
  const float factor[2] = {p.factor, p.factor};
  store_rows<kTileColumns>(p, head.queries(dq), own_first, p.queries, factor, sums);
}

template <typename T>
__global__ void __launch_bounds__(kBlock, 1)
    key_gradients_kernel(Problem<T> p, const float* logarithms, const float* delta, const T* dy, T* dk,
                         T* dv) {
  const int number = head_of_block();
  if (number >= p.batches) return;
  const Head<T> head(p, number);
  const int first = static_cast<int>(blockIdx.x) * kOwnRows;
  const int last = first < head.length ? head.last_query() : 0, start = p.causal ? first : 0;
  const int tiles = start < last ? (last - start + kTileRows - 1) / kTileRows : 0;
  const int lane = lane_of_warp(), row = warp_of_block() * 16, own_first = first + row;
  if (tiles == 0) {
    const Accumulator none[8] = {};
    const float factor[2] = {0.0F, 0.0F};
    store_rows<kTileColumns>(p, head.keys(dk), own_first, p.keys, factor, none);
    store_rows<kTileColumns>(p, head.keys(dv), own_first, p.keys, factor, none);
    return;
  }
  T* own = aligned_tile(dynamic_shared<T>());
  T* buffers = own + 2 * kOwnRows * kTileColumns;  // queries, gradients, next queries, ...
  float* statistics = reinterpret_cast<float*>(buffers + kBuffers * 2 * kTileNumbers);  // logarithms, deltas
  // Queries from `last` on are cleared, and so are their statistics: they change no sum.
  const auto copy_queries = [&](int tile) {
    const int begin = start + tile * kTileRows, buffer = tile % kBuffers;
    T* to = buffers + buffer * 2 * kTileNumbers;
    if (tile < tiles) {
      copy_to_tile<kTileRows>(p, head.queries(p.q), begin, last, to);
      copy_to_tile<kTileRows>(p, head.outputs(dy), begin, last, to + kTileNumbers);
      const int thread = static_cast<int>(threadIdx.x), i = begin + thread % kTileRows;
      const float* from = (thread < kTileRows ? logarithms : delta) + head.first_statistic();
      if (thread < 2 * kTileRows)
        copy_async<4>(statistics + buffer * 2 * kTileRows + thread, i < last ? from + i : from, i < last);
    }
    commit_copies();
  };
  copy_to_tile<kOwnRows>(p, head.keys(p.k), first, head.length, own);
  copy_to_tile<kOwnRows>(p, head.keys(p.v), first, head.length, own + kOwnRows * kTileColumns);
  copy_queries(0);
  copy_queries(1);
  exchange_tiles<1>();
  Left keys[4], values[4], probabilities[4], ds[4];
  take_rows(keys, own, row);
  take_rows(values, own + kOwnRows * kTileColumns, row);
  Accumulator x[8] = {}, dp[8] = {}, key_sums[8] = {}, value_sums[8] = {};
  // From this query on, all attend to all of the warp's keys.
  const int unmasked = own_first + 16 > head.length ? last : p.causal ? own_first + 15 : 0;
  const auto tile_of = [&](int tile) { return buffers + tile % kBuffers * 2 * kTileNumbers; };
  const auto start_scores = [&](int tile) {
    open_products();
    start_product_by_rows(keys, tile_of(tile), x);
    start_product_by_rows(values, tile_of(tile) + kTileNumbers, dp);
    close_products();
  };
  const auto start_gradients = [&](int tile) {
    open_products();
    start_added_product(probabilities, tile_of(tile) + kTileNumbers, value_sums);
    start_added_product(ds, tile_of(tile), key_sums);
    close_products();
  };
  const auto scores_to_ds = [&](int tile) {
    const int begin = start + tile * kTileRows;
    if (begin < unmasked) {
      for_masked_queries<1, kTileRows>(head, begin + lane % 4 * 2, own_first + lane / 4,
                                       [&](int, int n, int e) {
                                         x[n].at[e] = -INFINITY;
                                         dp[n].at[e] = 0.0F;
                                       });
    }
    const float* columns = statistics + tile % kBuffers * 2 * kTileRows + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const float2 logarithm = *reinterpret_cast<const float2*>(columns + n * 8);
      const float2 mean = *reinterpret_cast<const float2*>(columns + kTileRows + n * 8);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float probability =
            exponential2(fmaf(x[n].at[e], p.scale, -(e % 2 == 0 ? logarithm.x : logarithm.y)));
        x[n].at[e] = probability;
        dp[n].at[e] = probability * (dp[n].at[e] - (e % 2 == 0 ? mean.x : mean.y));
      }
    }
  };
  start_scores(0);
  wait_products<0>();
  take_sums(x);
  take_sums(dp);
  scores_to_ds(0);
  copy_queries(2);
  round_to<T>(probabilities, x);
  round_to<T>(ds, dp);
  for (int tile = 1; tile < tiles; ++tile) {
    exchange_tiles<1>();
    start_scores(tile);
    start_gradients(tile - 1);
    wait_products<1>();
    take_sums(x);
    take_sums(dp);
    scores_to_ds(tile);
    copy_queries(tile + 2);  // also keeps the compiler from moving the wait up
    wait_products<0>();      // operands of products may change only now
    round_to<T>(probabilities, x);
    round_to<T>(ds, dp);
  }
  start_gradients(tiles - 1);
  wait_products<0>();
  take_sums(key_sums);
  take_sums(value_sums);
  const float key_factor[2] = {p.factor, p.factor}, value_factor[2] = {1.0F, 1.0F};
  store_rows<kTileColumns>(p, head.keys(dk), own_first, p.keys, key_factor, key_sums);
  store_rows<kTileColumns>(p, head.keys(dv), own_first, p.keys, value_factor, value_sums);
}

dim3 grid(const AttentionShape& shape, std::int64_t positions) {
  using Rows = Tiling<kBlock / 32, 1, kTileRows, 1, true>;
  static_assert(Rows::kRows == kOwnRows);
  return grid_of<Rows>(shape, positions);
}

bool is_hopper_device() {
  int device = 0, major = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  return major == 9;
}

}  // namespace

bool is_hopper_attention(const AttentionShape& shape, DType type) {
  const char* wanted = std::getenv("LOCKSTEP_ATTENTION");
  return (wanted == nullptr || std::strcmp(wanted, "own") != 0) && type != DType::f32 && !shape.dropout &&
         shape.head_size > kSmallHeadSize && shape.head_size <= kMostHopperHeadSize &&
         shape.head_size % 8 == 0 && shape.query_stride % 8 == 0 && shape.key_stride % 8 == 0 &&
         shape.queries >= kLeastHopperSteps && shape.keys >= kLeastHopperSteps && is_hopper_device();
}

void hopper_attention_gradients(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                                const float* logarithms, const float* delta, ConstData dy,
                                const AttentionGradients& gradients) {
  with_half(dy.type(), [&]<typename T>(T) {
    const Problem<T> problem = problem_of<T>(lane, shape, inputs, {});
    require(problem.wide && whole_pieces(shape, shape.heads * shape.head_size, dy.address()) &&
                whole_pieces(shape, shape.query_stride, gradients.q.address()) &&
                whole_pieces(shape, shape.key_stride, gradients.k.address()) &&
                whole_pieces(shape, shape.key_stride, gradients.v.address()),
            "attention: operands are not aligned to 16 bytes");
    launch_with_shared(lane, "attention_dq", query_gradient_kernel<T>, grid(shape, shape.queries), kBlock,
                       kQueryBytes, problem, logarithms, delta, dy.as<T>(), gradients.q.as<T>());
    launch_with_shared(lane, "attention_dk_dv", key_gradients_kernel<T>, grid(shape, shape.keys), kBlock,
                       kKeyBytes, problem, logarithms, delta, dy.as<T>(), gradients.k.as<T>(),
                       gradients.v.as<T>());
  });
}

}  // namespace lockstep::cuda
