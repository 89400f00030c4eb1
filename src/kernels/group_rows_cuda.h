// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Groups positions by the table row that their id names (private to embedding_cuda.cu): sorts keys that hold
// the row and the position, then finds where rows begin. Keys are distinct, so the sorted order is unique.
//
// Blocks sort runs of keys in shared memory (bitonic sort, Batcher 1968). Then up to kFan runs at a time
// become one: the place of a key is the number of smaller keys in each run, by binary search.
#pragma once

#include <utility>

#include "kernels/cuda_launch.h"
#include "kernels/embedding.h"

namespace lockstep::cuda {
namespace {

using Key = unsigned long long;                ///< row << 32 | position
constexpr std::uint32_t kNoRow = 0xFFFFFFFFU;  ///< sorts after all rows
constexpr int kRun = 4096;                     ///< most keys that a block sorts in shared memory
constexpr int kSortThreads = 1024;
constexpr int kFan = 16;  ///< runs that become one

inline __device__ std::int32_t row_of(float id, std::int64_t rows) {
  if (!(id >= 0.0F && id < static_cast<float>(rows))) return -1;
  const std::int32_t row = static_cast<std::int32_t>(id);
  return static_cast<float>(row) == id ? row : -1;
}
inline __device__ std::uint32_t row_in(Key key) { return static_cast<std::uint32_t>(key >> 32); }

/// keys[i] for all positions, sorted within runs of `run` keys, a power of two; the last run may be shorter.
__global__ void __launch_bounds__(kSortThreads)
    sort_runs_kernel(std::int64_t positions, std::int64_t rows, int run, const float* ids,
                     std::int64_t padding, Key* keys) {
  __shared__ Key sorted[kRun];
  const std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * run;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < run; i += kSortThreads) {
    const std::int64_t position = base + i;
    const std::int32_t row = position < positions ? row_of(ids[position], rows) : -1;
    const Key high = row < 0 || row == padding ? kNoRow : static_cast<std::uint32_t>(row);
    sorted[i] = (high << 32) | static_cast<Key>(position);
  }
  for (int size = 2; size <= run; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      for (int pair = thread; pair < run / 2; pair += kSortThreads) {
        const int low = 2 * pair - (pair & (stride - 1));
        const Key a = sorted[low], b = sorted[low + stride];
        if ((a > b) != ((low & size) == 0)) continue;
        sorted[low] = b;
        sorted[low + stride] = a;
      }
    }
  __syncthreads();
  for (int i = thread; i < run && base + i < positions; i += kSortThreads) keys[base + i] = sorted[i];
}

/// Makes runs of kFan * run sorted keys from runs of `run`, a power of two. A thread per key.
__global__ void __launch_bounds__(kThreads)
    merge_runs_kernel(std::int64_t positions, std::int64_t run, const Key* from, Key* to) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= positions) return;
  const Key key = from[i];
  const std::int64_t mine = i / run, first = mine / kFan * kFan;
  std::int32_t smaller[kFan] = {}, length[kFan];
#pragma unroll
  for (int r = 0; r < kFan; ++r) {
    const std::int64_t rest = positions - (first + r) * run;
    length[r] = first + r == mine || rest <= 0 ? 0 : static_cast<std::int32_t>(rest < run ? rest : run);
  }
  for (std::int32_t step = static_cast<std::int32_t>(run); step > 0; step /= 2) {
#pragma unroll
    for (int r = 0; r < kFan; ++r)  // independent searches
      if (const std::int32_t next = smaller[r] + step;
          next <= length[r] && from[(first + r) * run + next - 1] < key)
        smaller[r] = next;
  }
  std::int64_t place = first * run + (i - mine * run);
#pragma unroll
  for (int r = 0; r < kFan; ++r) place += smaller[r];
  to[place] = key;
}

constexpr int kHeadKeys = 4;  ///< adjacent keys of a thread
constexpr std::int64_t kHeadTile = std::int64_t{kThreads} * kHeadKeys;

/// The sum of `mine` over this thread and those before it, and over the block (inclusive sums, Hillis and
/// Steele 1986).
struct Scan {
  std::int32_t up_to_me, all;
};
inline __device__ Scan scan(std::int32_t mine) {
  __shared__ std::int32_t sums[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();
  sums[thread] = mine;
  for (int step = 1; step < kThreads; step *= 2) {
    __syncthreads();
    const std::int32_t other = thread >= step ? sums[thread - step] : 0;
    __syncthreads();
    sums[thread] += other;
  }
  __syncthreads();
  return {sums[thread], sums[kThreads - 1]};
}

/// This thread's sorted keys.
struct HeadKeys {
  std::int64_t begin, end;
  __device__ explicit HeadKeys(std::int64_t positions) {
    begin = static_cast<std::int64_t>(blockIdx.x) * kHeadTile + threadIdx.x * std::int64_t{kHeadKeys};
    end = begin + kHeadKeys < positions ? begin + kHeadKeys : positions;
  }
};
/// True where a row begins.
inline __device__ bool is_head(const Key* keys, std::int64_t i) {
  return row_in(keys[i]) != kNoRow && (i == 0 || row_in(keys[i - 1]) != row_in(keys[i]));
}

/// heads[tile] = the number of rows that begin in a tile of kHeadTile keys.
__global__ void __launch_bounds__(kThreads)
    count_heads_kernel(std::int64_t positions, const Key* keys, std::int32_t* heads) {
  const HeadKeys own(positions);
  std::int32_t mine = 0;
  for (std::int64_t i = own.begin; i < own.end; ++i) mine += is_head(keys, i) ? 1 : 0;
  const Scan sum = scan(mine);
  if (threadIdx.x == 0) heads[blockIdx.x] = sum.all;
}

/// Finds the touched rows, a block per tile of sorted keys.
__global__ void __launch_bounds__(kThreads)
    touched_kernel(std::int64_t positions, const Key* keys, const std::int32_t* heads, TouchedRows touched) {
  std::int32_t before = 0;  // rows of the previous tiles
  for (unsigned int tile = threadIdx.x; tile < blockIdx.x; tile += kThreads) before += heads[tile];
  before = scan(before).all;
  const HeadKeys own(positions);
  std::int32_t mine = 0;
  for (std::int64_t i = own.begin; i < own.end; ++i) mine += is_head(keys, i) ? 1 : 0;
  const Scan sum = scan(mine);
  std::int32_t number = before + sum.up_to_me - mine;  // of the next row
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    const Key key = keys[i];
    if (is_head(keys, i)) {
      touched.rows[number] = static_cast<std::int32_t>(row_in(key));
      touched.starts[number++] = static_cast<std::int32_t>(i);
    }
    const bool there = row_in(key) != kNoRow;
    if (there) touched.order[i] = static_cast<std::int32_t>(key & 0xFFFFFFFFU);
    // The end: the position of the first key without a row, or the number of positions.
    if (!there && (i == 0 || row_in(keys[i - 1]) != kNoRow))
      touched.starts[number] = static_cast<std::int32_t>(i);
    if (there && i == positions - 1) touched.starts[number] = static_cast<std::int32_t>(positions);
  }
  if (blockIdx.x != gridDim.x - 1 || threadIdx.x != 0) return;
  *touched.count = before + sum.all;
  if (positions == 0) touched.starts[0] = 0;
}

inline std::int64_t head_tiles(std::int64_t positions) {
  return positions <= 0 ? 1 : (positions + kHeadTile - 1) / kHeadTile;
}
/// Two arrays of keys and a count per tile.
inline std::size_t group_rows_bytes(std::int64_t positions) {
  return static_cast<std::size_t>(positions) * 2 * sizeof(Key) +
         static_cast<std::size_t>(head_tiles(positions)) * sizeof(std::int32_t);
}

/// EmbeddingKernels::group_by_row.
inline void group_rows(const Lane& lane, std::int64_t positions, std::int64_t rows, const float* ids,
                       std::int64_t padding, void* workspace, const TouchedRows& touched) {
  Key* keys = static_cast<Key*>(workspace);
  Key* other = keys + positions;
  auto* const heads = reinterpret_cast<std::int32_t*>(other + positions);
  if (positions > 0) {
    std::int64_t run = 2;
    while (run < kRun && run < positions) run *= 2;
    launch(lane, "sort_rows", sort_runs_kernel, static_cast<unsigned int>((positions + run - 1) / run),
           kSortThreads, positions, rows, static_cast<int>(run), ids, padding, keys);
    for (; run < positions; run *= kFan) {
      launch(lane, "sort_rows", merge_runs_kernel,
             static_cast<unsigned int>((positions + kThreads - 1) / kThreads), kThreads, positions, run,
             static_cast<const Key*>(keys), other);
      std::swap(keys, other);
    }
  }
  const auto tiles = static_cast<unsigned int>(head_tiles(positions));
  if (tiles > 1)
    launch(lane, "touched_rows", count_heads_kernel, tiles, kThreads, positions,
           static_cast<const Key*>(keys), heads);
  launch(lane, "touched_rows", touched_kernel, tiles, kThreads, positions, static_cast<const Key*>(keys),
         static_cast<const std::int32_t*>(heads), touched);
}

}  // namespace
}  // namespace lockstep::cuda
