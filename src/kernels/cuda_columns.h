// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels over rows x channels matrices in which each thread handles one column (or some adjacent ones: four
// in sums; in maps 16 bytes, or four of 16 bits), and two-stage sums over rows. For *.cu files.
//
// A block of kThreads threads is `tile` columns wide and `row_threads` high, so adjacent threads read
// adjacent elements, also with few channels. Blocks cut the matrix into tiles of columns and chunks of rows.
// A thread adds up to kBlockRows numbers in float32 and the results in double. The threads of a column, then
// the chunks, are added in double along trees. The cut depends on the shape alone, not on addresses or on the
// GPU; so do the bits of a sum.
#pragma once

#include "kernels/cuda_vector.h"

namespace lockstep::cuda {

inline constexpr int kTile = 32;       ///< largest width of a block, in pieces of columns
inline constexpr int kBlockRows = 64;  ///< numbers that are added in float32
/// Blocks of a sum that a multiprocessor holds: what the kernels' registers are limited to.
inline constexpr int kResidentBlocks = 3;
/// Approximate limit for the blocks of a sum: what the 132 multiprocessors of an H100 hold, all with the same
/// share. It keeps the partial sums in scratch within 1 MiB.
inline constexpr std::int64_t kSumBlocks = 132 * kResidentBlocks;
/// Least rows of a thread in a sum of several chunks.
inline constexpr std::int64_t kSumRows = 8;
inline constexpr int kFinishColumns = 32, kFinishRows = 32;  ///< block size of the second stage

/// How a rows x channels matrix is cut, in pieces of `width` channels.
struct Columns {
  std::int64_t rows, channels, pieces, chunk_rows;
  int tile, row_threads;
  unsigned int tiles, chunks;
  dim3 grid() const { return dim3(tiles, chunks); }
};

/// Cuts into chunks in which each thread has at least `rows_per_thread` rows, with about `blocks` blocks at
/// most.
inline Columns cut_columns(std::int64_t rows, std::int64_t channels, int width, std::int64_t rows_per_thread,
                           std::int64_t blocks) {
  Columns c{};
  c.rows = rows;
  c.channels = channels;
  c.pieces = channels / width;
  c.tile = static_cast<int>(c.pieces < kTile ? c.pieces : kTile);
  c.row_threads = kThreads / c.tile;
  c.tiles = static_cast<unsigned int>((c.pieces + c.tile - 1) / c.tile);
  const std::int64_t most = blocks / c.tiles < 1 ? 1 : blocks / c.tiles;
  const std::int64_t least_rows = c.row_threads * rows_per_thread;
  std::int64_t chunks = (rows + least_rows - 1) / least_rows;
  chunks = chunks < 1 ? 1 : chunks < most ? chunks : most;
  c.chunk_rows = ((rows + chunks - 1) / chunks + c.row_threads - 1) / c.row_threads * c.row_threads;
  c.chunks = static_cast<unsigned int>(rows == 0 ? 1 : (rows + c.chunk_rows - 1) / c.chunk_rows);
  return c;
}

/// Cuts for a sum over rows. Rows for two chunks are one: a second stage costs more than it saves.
inline Columns cut_sum(std::int64_t rows, std::int64_t channels) {
  const int width = channels % 4 == 0 ? 4 : 1;
  const Columns few = cut_columns(rows, channels, width, 2 * kSumRows, kSumBlocks);
  return few.chunks == 1 ? few : cut_columns(rows, channels, width, kSumRows, kSumBlocks);
}

/// A thread's column and rows.
struct Place {
  std::int64_t piece, row, last;
  int column, row_thread;
  bool active;
  __device__ explicit Place(const Columns& c)
      : column(static_cast<int>(threadIdx.x) % c.tile), row_thread(static_cast<int>(threadIdx.x) / c.tile) {
    piece = static_cast<std::int64_t>(blockIdx.x) * c.tile + column;
    active = row_thread < c.row_threads && piece < c.pieces;
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * c.chunk_rows;
    last = first + c.chunk_rows < c.rows ? first + c.chunk_rows : c.rows;
    row = first + row_thread;
  }
};

/// An element-wise map. body.column<V>(first channel) returns per-column values; body.row<V>(these values,
/// element, row) is called for each of the thread's rows.
template <typename V, typename Body>
__global__ void __launch_bounds__(kThreads, kResidentBlocks) map_columns_kernel(Columns c, Body body) {
  const Place place(c);
  if (!place.active) return;
  const std::int64_t channel = place.piece * V::kWidth;
  const auto kept = body.template column<V>(channel);
  for (std::int64_t row = place.row; row < place.last; row += c.row_threads)
    body.template row<V>(kept, row * c.channels + channel, row);
}

template <typename V, typename Body>
void launch_map(const Lane& lane, const char* name, std::int64_t rows, std::int64_t channels,
                const Body& body) {
  constexpr std::int64_t kRowsPerThread = 4;
  const Columns c = cut_columns(rows, channels, V::kWidth, kRowsPerThread, kMaxBlocks);
  launch(lane, name, map_columns_kernel<V, Body>, c.grid(), kThreads, c, body);
}

/// T: the narrowest type of the body's arrays. A body whose rows are not `channels` apart gives the distance
/// as `stride` (several: their bitwise or).
template <typename T = float, typename Body>
void map_columns(const Lane& lane, const char* name, std::int64_t rows, std::int64_t channels, bool wide,
                 const Body& body, std::int64_t stride = 0) {
  using V = Whole<T>;
  if (rows <= 0 || channels <= 0) return;
  const auto in_packs_of = [&](int width) { return wide && (channels | stride) % width == 0; };
  if (in_packs_of(V::kWidth)) return launch_map<V>(lane, name, rows, channels, body);
  if constexpr (V::kWidth > Wide::kWidth)
    if (in_packs_of(Wide::kWidth)) return launch_map<Wide>(lane, name, rows, channels, body);
  launch_map<Narrow>(lane, name, rows, channels, body);
}

/// The smallest power of two that is >= n.
inline __device__ int power_of_two(int n) {
  int power = 1;
  while (power < n) power *= 2;
  return power;
}

/// Adds shared[n][threadIdx.x] over the row threads of each column, along a tree. The first row of threads
/// holds the result. All threads of the block must call it.
template <int kNumbers>
__device__ void add_row_threads(double (*shared)[kThreads], int tile, int row_threads) {
  const int thread = static_cast<int>(threadIdx.x), row = thread / tile;
  for (int half = power_of_two(row_threads) / 2; half > 0; half /= 2) {
    __syncthreads();
    if (row < half && row + half < row_threads)
      for (int n = 0; n < kNumbers; ++n) shared[n][thread] += shared[n][thread + half * tile];
  }
}

/// First stage of kSums sums over rows. body.column<V>(channel) is as above; body.fetch<V>(element) reads a
/// row's numbers, which are of type Body::Element, into a Body::Fetched<V>; body.add<V>(per-column values,
/// these numbers, element, sums) adds its terms to sums[kSums] (each a Pack<V::kWidth>). A thread reads as
/// many rows ahead as make up 32 bytes of an array. With one chunk, this stage calls finish(channel, sums)
/// with the double sums; otherwise it stores them in partial[chunk][sum][channel].
template <typename V, int kSums, typename Body, typename Finish>
__global__ void __launch_bounds__(kThreads, kResidentBlocks)
    sum_columns_kernel(Columns c, Body body, Finish finish, double* partial) {
  constexpr int kWidth = V::kWidth;
  constexpr int kRowsAhead =
      (std::is_same_v<V, Loose> ? 1 : 2) * V::template kReadsAhead<typename Body::Element>;
  static_assert(kBlockRows % kRowsAhead == 0);
  __shared__ double shared[kSums * kWidth][kThreads];
  const Place place(c);
  const std::int64_t channel = place.piece * kWidth;
  const int thread = static_cast<int>(threadIdx.x);
  for (int n = 0; n < kSums * kWidth; ++n) shared[n][thread] = 0.0;  // not in registers: they are few
  if (place.active) {
    const auto kept = body.template column<V>(channel);
    for (std::int64_t row = place.row; row < place.last;) {
      Pack<kWidth> sums[kSums] = {};
      for (int i = 0; i < kBlockRows && row < place.last; i += kRowsAhead) {
        typename Body::template Fetched<V> fetched[kRowsAhead];
#pragma unroll
        for (int r = 0; r < kRowsAhead; ++r)
          if (const std::int64_t at = row + r * c.row_threads; at < place.last)
            fetched[r] = body.template fetch<V>(at * c.channels + channel);
#pragma unroll
        for (int r = 0; r < kRowsAhead; ++r)
          if (const std::int64_t at = row + r * c.row_threads; at < place.last)
            body.template add<V>(kept, fetched[r], at * c.channels + channel, sums);
        row += kRowsAhead * c.row_threads;
      }
      for (int n = 0; n < kSums; ++n)
        for (int w = 0; w < kWidth; ++w) shared[n * kWidth + w][thread] += static_cast<double>(sums[n].at[w]);
    }
  }
  add_row_threads<kSums * kWidth>(shared, c.tile, c.row_threads);
  if (!place.active || place.row_thread != 0) return;
  for (int w = 0; w < kWidth; ++w) {
    double result[kSums];
    for (int n = 0; n < kSums; ++n) result[n] = shared[n * kWidth + w][thread];
    if (gridDim.y == 1)
      finish(channel + w, result);
    else
      for (int n = 0; n < kSums; ++n)
        partial[(static_cast<std::int64_t>(blockIdx.y) * kSums + n) * c.channels + channel + w] = result[n];
  }
}

/// Second stage: adds the chunks and calls finish(channel, sums).
template <int kSums, typename Finish>
__global__ void __launch_bounds__(kFinishColumns* kFinishRows)
    finish_columns_kernel(std::int64_t channels, int chunks, const double* partial, Finish finish) {
  __shared__ double shared[kSums][kFinishColumns * kFinishRows];
  const int thread = static_cast<int>(threadIdx.x), row = thread / kFinishColumns;
  const std::int64_t channel =
      static_cast<std::int64_t>(blockIdx.x) * kFinishColumns + thread % kFinishColumns;
  double total[kSums] = {};
  if (channel < channels)
    for (int chunk = row; chunk < chunks; chunk += kFinishRows)
      for (int n = 0; n < kSums; ++n)
        total[n] += partial[(static_cast<std::int64_t>(chunk) * kSums + n) * channels + channel];
  for (int n = 0; n < kSums; ++n) shared[n][thread] = total[n];
  for (int half = kFinishRows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (row < half)
      for (int n = 0; n < kSums; ++n) shared[n][thread] += shared[n][thread + half * kFinishColumns];
  }
  if (row != 0 || channel >= channels) return;
  for (int n = 0; n < kSums; ++n) total[n] = shared[n][thread];
  finish(channel, total);
}

/// Runs both stages. Scratch: chunks * channels * kSums doubles, at most kScratchBytes for two sums.
template <int kSums, typename Body, typename Finish>
void sum_columns(const Lane& lane, const char* name, std::int64_t rows, std::int64_t channels, bool wide,
                 const Body& body, const Finish& finish) {
  static_assert(kSumBlocks * kTile * 4 * kSums * sizeof(double) <= kScratchBytes);
  if (channels <= 0) return;
  const bool fours = channels % 4 == 0;
  const Columns c = cut_sum(rows, channels);
  double* partial = c.chunks > 1 ? scratch_of(lane) : nullptr;
  launch(lane, name,
         !fours ? sum_columns_kernel<Narrow, kSums, Body, Finish>
         : wide ? sum_columns_kernel<Wide, kSums, Body, Finish>
                : sum_columns_kernel<Loose, kSums, Body, Finish>,
         c.grid(), kThreads, c, body, finish, partial);
  if (c.chunks > 1)
    launch(lane, name, finish_columns_kernel<kSums, Finish>,
           static_cast<unsigned int>((channels + kFinishColumns - 1) / kFinishColumns),
           kFinishColumns * kFinishRows, channels, static_cast<int>(c.chunks), partial, finish);
}

}  // namespace lockstep::cuda
