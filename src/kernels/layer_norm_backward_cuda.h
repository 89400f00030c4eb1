// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The backward pass of layer and RMS norm in one pass over x and dy: dx, and the sums over rows for the
// gradients of gamma and beta (private to group_norm_cuda.cu).
//
// A group of threads, a warp or a block, has a run of adjacent rows. A thread has the same columns of each of
// them, so it adds their terms in registers, in float32. It reads its own part of the next row into shared
// memory while it computes this one, and needs no barrier for that. The groups of a block are added in
// double, then the blocks. The number of rows of a group follows from the number of rows alone.
#pragma once

#include <type_traits>

#include "kernels/cuda_columns.h"
#include "kernels/cuda_device_limits.h"
#include "kernels/cuda_rows.h"
#include "kernels/cuda_shared_memory.h"

namespace lockstep::cuda {
namespace {

constexpr int kHeldNumbers = 32;  ///< most columns of a thread
constexpr std::int64_t kMostHeldColumns = std::int64_t{kThreads} * kHeldNumbers;

/// How many rows a group of threads has, and the blocks for all rows.
struct RowRuns {
  std::int64_t rows_of_group, blocks;
};
/// Two blocks per multiprocessor of an H100; longer runs would add more than kBlockRows numbers in float32.
constexpr std::int64_t kRunBlocks = 2 * 132;

inline RowRuns cut_rows(std::int64_t rows, std::int64_t columns) {
  const std::int64_t groups = columns <= kWarpColumns ? Group<kWarp>::kRows : 1;
  const std::int64_t even = (rows + kRunBlocks * groups - 1) / (kRunBlocks * groups);
  const std::int64_t run = even < 1 ? 1 : even < kBlockRows ? even : kBlockRows;
  const std::int64_t blocks = (rows + run * groups - 1) / (run * groups);
  return {run, blocks < 1 ? 1 : blocks};
}
/// Bytes of the blocks' partial sums, also for any smaller number of rows.
inline std::size_t row_runs_bytes(std::int64_t rows, std::int64_t columns) {
  const std::int64_t longest = cut_rows(rows, columns).blocks;
  const std::int64_t blocks = longest > kRunBlocks ? longest : kRunBlocks;
  return static_cast<std::size_t>(blocks * 2 * columns) * sizeof(double);
}

/// dgamma and dbeta, each unless null.
struct WriteParameters {
  float* dgamma;
  float* dbeta;
  __device__ void write(int which, std::int64_t channel, double sum) const {
    float* const to = which == 0 ? dgamma : dbeta;
    if (to != nullptr) to[channel] = static_cast<float>(sum);
  }
  __device__ void operator()(std::int64_t channel, const double* sums) const {
    write(0, channel, sums[0]);
    write(1, channel, sums[1]);
  }
};

template <typename T>
struct LayerNormGradient {
  std::int64_t rows = 0, rows_of_group = 0;
  int count = 0;   ///< columns
  int stages = 0;  ///< 2: the next row is read ahead; 1: shared memory holds one row only
  bool centred = true;
  const T* x;
  const T* dy;
  const float* gamma;
  const float* statistics;
  T* dx;
  double* partial = nullptr;  ///< [blocks][2][count]; null with one block
  WriteParameters write;
};

/// Dynamic shared memory of a block: gamma [pieces][kWidth / 4][kGroup][4], then packs as they are in memory
/// [stages][x, dy][pieces][kThreads]. Adjacent threads access adjacent 16 bytes.
template <int kGroup, typename V, typename T>
struct LayerNormShared {
  using Slot = typename V::template Raw<T>;
  int pieces;
  float* gamma;
  Slot* slots;

  static __host__ __device__ int pieces_of(int count) {
    return (count + kGroup * V::kWidth - 1) / (kGroup * V::kWidth);
  }
  static std::size_t bytes(int count, int stages) {
    const auto pieces = static_cast<std::size_t>(pieces_of(count));
    return pieces * (V::kWidth * kGroup * sizeof(float) +
                     static_cast<std::size_t>(stages) * 2 * kThreads * sizeof(Slot));
  }
  __device__ explicit LayerNormShared(int count)
      : pieces(pieces_of(count)),
        gamma(dynamic_shared<float>()),
        slots(reinterpret_cast<Slot*>(gamma + pieces * V::kWidth * kGroup)) {}
  __device__ Slot* slot(int stage, int array, int piece) const {
    return slots + ((stage * 2 + array) * pieces + piece) * kThreads + static_cast<int>(threadIdx.x);
  }
  __device__ void set_gamma(const float* from, int count) const {
    for (int run = static_cast<int>(threadIdx.x); run < pieces * (V::kWidth / 4) * kGroup; run += kThreads) {
      const int row = run / kGroup;  // of [pieces][kWidth / 4]
      const int first =
          ((row / (V::kWidth / 4)) * kGroup + run % kGroup) * V::kWidth + row % (V::kWidth / 4) * 4;
      for (int k = 0; k < 4; ++k)
        gamma[run * 4 + k] = from == nullptr || first + k >= count ? 1.0F : from[first + k];
    }
  }
  __device__ Pack<V::kWidth> gamma_of(int piece) const {
    Pack<V::kWidth> value;
#pragma unroll
    for (int first = 0; first < V::kWidth; first += 4) {
      const auto four =
          Wide::load(gamma + ((piece * (V::kWidth / 4) + first / 4) * kGroup + Group<kGroup>::thread()) * 4);
      for (int k = 0; k < 4; ++k) value.at[first + k] = four.at[k];
    }
    return value;
  }
};

/// Reads a pack to shared memory: without waiting if it is one access of 16 bytes.
template <typename V, typename T, typename Slot>
__device__ void start_pack(Slot* to, const T* from) {
  if constexpr (std::is_base_of_v<InPacks<V::kWidth>, V> && sizeof(Slot) == kAccessBytes)
    copy_async<kAccessBytes>(to, from, true);
  else
    *to = V::fetch(from);
}

template <int kGroup, typename V, typename T>
__global__ void __launch_bounds__(kThreads, 2) layer_norm_backward_kernel(LayerNormGradient<T> g) {
  using G = Group<kGroup>;
  constexpr int kWidth = V::kWidth, kPieces = kHeldNumbers / kWidth;
  const LayerNormShared<kGroup, V, T> shared(g.count);
  const auto column = [](int piece) { return (piece * kGroup + G::thread()) * kWidth; };
  const auto start = [&](std::int64_t row, int stage) {
#pragma unroll
    for (int p = 0; p < kPieces; ++p)
      if (column(p) < g.count) {
        start_pack<V>(shared.slot(stage, 0, p), g.x + row * g.count + column(p));
        start_pack<V>(shared.slot(stage, 1, p), g.dy + row * g.count + column(p));
      }
    commit_copies();
  };
  const std::int64_t group =
      static_cast<std::int64_t>(blockIdx.x) * G::kRows + static_cast<int>(threadIdx.x) / kGroup;
  const std::int64_t first = group * g.rows_of_group;
  const std::int64_t last = first + g.rows_of_group < g.rows ? first + g.rows_of_group : g.rows;
  if (first < last) start(first, 0);
  shared.set_gamma(g.gamma, g.count);
  __syncthreads();

  const double inverse_count = 1.0 / static_cast<double>(g.count);
  float sums[2][kHeldNumbers] = {};
  int stage = 0;
  for (std::int64_t row = first; row < last; ++row) {
    const float mean = g.statistics[2 * row], inverse_std = g.statistics[2 * row + 1];
    if (g.stages == 2 && row + 1 < last) {
      start(row + 1, 1 - stage);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    const auto load = [&](int array, int p) { return V::template unpack<T>(*shared.slot(stage, array, p)); };
    double sum_g = 0.0, sum_gx = 0.0;
#pragma unroll
    for (int p = 0; p < kPieces; ++p)
      if (column(p) < g.count) {
        const auto in = load(0, p), dy = load(1, p);
        auto own = shared.gamma_of(p), product = own;
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
          const float xhat = (in.at[k] - mean) * inverse_std;
          sums[0][p * kWidth + k] += dy.at[k] * xhat;
          sums[1][p * kWidth + k] += dy.at[k];
          own.at[k] *= dy.at[k];
          product.at[k] = own.at[k] * xhat;
        }
        sum_g += sum_of(own);
        sum_gx += sum_of(product);
      }
    if (g.dx != nullptr) {
      const float mean_g = g.centred ? static_cast<float>(G::sum(sum_g) * inverse_count) : 0.0F;
      const float mean_gx = static_cast<float>(G::sum(sum_gx) * inverse_count);
#pragma unroll
      for (int p = 0; p < kPieces; ++p)
        if (column(p) < g.count) {
          const auto dy = load(1, p), own = shared.gamma_of(p);
          auto value = load(0, p);
#pragma unroll
          for (int k = 0; k < kWidth; ++k) {
            const float xhat = (value.at[k] - mean) * inverse_std;
            value.at[k] = (dy.at[k] * own.at[k] - mean_g - xhat * mean_gx) * inverse_std;
          }
          V::store(g.dx + row * g.count + column(p), value);
        }
    }
    if (g.stages == 2)
      stage = 1 - stage;
    else if (row + 1 < last)
      start(row + 1, 0);
  }

  if (g.write.dgamma == nullptr && g.write.dbeta == nullptr) return;
  const auto finish = [&](int which, int channel, double sum) {
    if (gridDim.x == 1)
      g.write.write(which, channel, sum);
    else
      g.partial[(static_cast<std::int64_t>(blockIdx.x) * 2 + which) * g.count + channel] = sum;
  };
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    if constexpr (kGroup == kThreads) {
#pragma unroll
      for (int p = 0; p < kPieces; ++p)
        if (column(p) < g.count)
          for (int k = 0; k < kWidth; ++k)
            finish(n, column(p) + k, static_cast<double>(sums[n][p * kWidth + k]));
    } else {
      float* const staged = reinterpret_cast<float*>(shared.slots);  // [warps][count]: no more than one stage
      __syncthreads();
#pragma unroll
      for (int p = 0; p < kPieces; ++p)
        if (column(p) < g.count)
          for (int k = 0; k < kWidth; ++k)
            staged[static_cast<int>(threadIdx.x) / kGroup * g.count + column(p) + k] =
                sums[n][p * kWidth + k];
      __syncthreads();
      for (int channel = static_cast<int>(threadIdx.x); channel < g.count; channel += kThreads) {
        double sum = 0.0;
        for (int w = 0; w < G::kRows; ++w) sum += static_cast<double>(staged[w * g.count + channel]);
        finish(n, channel, sum);
      }
    }
  }
}

template <int kGroup, typename V, typename T>
void launch_layer_norm_backward(const Lane& lane, const RowRuns& runs, LayerNormGradient<T> g) {
  using Shared = LayerNormShared<kGroup, V, T>;
  constexpr std::size_t kStatic = 1024;  // of sums within a block
  g.stages = Shared::bytes(g.count, 2) + kStatic <= most_shared_bytes() ? 2 : 1;
  launch_with_shared(lane, "layer_norm_backward", layer_norm_backward_kernel<kGroup, V, T>,
                     static_cast<unsigned int>(runs.blocks), kThreads, Shared::bytes(g.count, g.stages), g);
}

/// True if the kernel takes this many columns: runs of four, at most kMostHeldColumns.
inline bool in_one_pass(std::int64_t columns) { return columns % 4 == 0 && columns <= kMostHeldColumns; }

/// Scratch: row_runs_bytes(). `wide`: wide_aligned() for x, dy and dx.
template <typename T>
void layer_norm_backward(const Lane& lane, bool wide, LayerNormGradient<T> g) {
  const RowRuns runs = cut_rows(g.rows, g.count);
  g.rows_of_group = runs.rows_of_group;
  const bool sums = g.write.dgamma != nullptr || g.write.dbeta != nullptr;
  if (sums && runs.blocks > 1) {
    require(lane.scratch_bytes >= row_runs_bytes(g.rows, g.count), "too little scratch for layer norm");
    g.partial = static_cast<double*>(lane.scratch);
  }
  with_pieces<T>(g.count, wide, [&]<typename V>(V) {
    if constexpr (V::kWidth % 4 == 0) {
      if (g.count <= kWarpColumns)
        launch_layer_norm_backward<kWarp, V>(lane, runs, g);
      else
        launch_layer_norm_backward<kThreads, V>(lane, runs, g);
    }
  });
  if (sums && runs.blocks > 1)
    launch(lane, "layer_norm_backward", finish_columns_kernel<2, WriteParameters>,
           static_cast<unsigned int>((g.count + kFinishColumns - 1) / kFinishColumns),
           kFinishColumns * kFinishRows, std::int64_t{g.count}, static_cast<int>(runs.blocks),
           static_cast<const double*>(g.partial), g.write);
}

}  // namespace
}  // namespace lockstep::cuda
