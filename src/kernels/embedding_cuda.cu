// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Table rows by index on a GPU. A bitonic sort (Batcher 1968) of keys that hold the row and the position
// groups the positions. Keys are distinct, so the sorted order is unique. Blocks of a frequent row's
// positions are added side by side, then in order. Results have the CPU's bits.
#include "kernels/embedding.h"

#include <cmath>

#include "kernels/cuda_columns.h"
#include "kernels/factory_cuda.h"
#include "kernels/shard_tree.h"

namespace lockstep::cuda {
namespace {

using Key = unsigned long long;
constexpr Key kNoRow = ~Key{0};       ///< sorts after all rows
constexpr std::int32_t kBlock = 64;   ///< positions that are added in float32
constexpr std::int64_t kTile = 4096;  ///< most keys that a block sorts in shared memory

inline __device__ std::int32_t row_of(float id, std::int64_t rows) {
  if (!(id >= 0.0F && id < static_cast<float>(rows))) return -1;
  const std::int32_t row = static_cast<std::int32_t>(id);
  return static_cast<float>(row) == id ? row : -1;
}

inline std::int64_t padded(std::int64_t positions) {
  std::int64_t count = 2 * kThreads;
  while (count < positions) count *= 2;
  return count;
}

/// Rows are positions, columns are units.
template <typename T>
struct Gather {
  const float* ids;
  const float* table;
  T* y;
  std::int64_t rows, units, padding;
  template <typename V>
  __device__ std::int64_t column(std::int64_t unit) const {
    return unit;
  }
  template <typename V>
  __device__ void row(std::int64_t unit, std::int64_t at, std::int64_t position) const {
    const std::int32_t row = row_of(ids[position], rows);
    Pack<V::kWidth> value = {};
    if (row < 0)
      for (int k = 0; k < V::kWidth; ++k) value.at[k] = nanf("");
    else if (row != padding)
      value = V::load(table + row * units + unit);
    V::store(y + at, value);
  }
};

__global__ void __launch_bounds__(kThreads)
    keys_kernel(std::int64_t positions, std::int64_t count, std::int64_t rows, const float* ids,
                std::int64_t padding, Key* keys) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += stride) {
    const std::int32_t row = i < positions ? row_of(ids[i], rows) : -1;
    keys[i] = row < 0 || row == padding ? kNoRow : (static_cast<Key>(row) << 32) | static_cast<Key>(i);
  }
}

/// Orders a pair for the stage with sorted runs of `size`. Sizes and strides are powers of two.
inline __device__ void order_pair(Key* keys, std::int64_t pair, std::int64_t stride, bool ascending) {
  const std::int64_t low = 2 * pair - (pair & (stride - 1));
  const Key a = keys[low], b = keys[low + stride];
  if ((a > b) != ascending) return;
  keys[low] = b;
  keys[low + stride] = a;
}

/// One step over all keys.
__global__ void __launch_bounds__(kThreads)
    bitonic_step_kernel(std::int64_t count, std::int64_t size, std::int64_t stride, Key* keys) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t pair = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; pair < count / 2;
       pair += threads)
    order_pair(keys, pair, stride, (2 * pair & size) == 0);
}

/// All steps within tiles of `width` keys: the stages from first_size to last_size, each from a stride below
/// `width`.
__global__ void __launch_bounds__(kThreads)
    bitonic_tile_kernel(std::int64_t count, int width, std::int64_t first_size, std::int64_t last_size,
                        Key* keys) {
  __shared__ Key tile[kTile];
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * width; base < count;
       base += static_cast<std::int64_t>(gridDim.x) * width) {
    for (int i = thread; i < width; i += kThreads) tile[i] = keys[base + i];
    for (std::int64_t size = first_size; size <= last_size; size *= 2)
      for (int stride = static_cast<int>(size < width ? size : width) / 2; stride > 0; stride /= 2) {
        __syncthreads();
        for (int pair = thread; pair < width / 2; pair += kThreads)
          order_pair(tile, pair, stride, ((base + 2 * pair) & size) == 0);
      }
    __syncthreads();
    for (int i = thread; i < width; i += kThreads) keys[base + i] = tile[i];
    __syncthreads();
  }
}

/// Finds the touched rows from the sorted keys. Runs in one block, whose threads have kKeys adjacent keys
/// each.
constexpr int kKeys = 16;
__global__ void __launch_bounds__(kThreads)
    touched_kernel(std::int64_t positions, const Key* keys, TouchedRows touched) {
  __shared__ std::int32_t heads[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const auto is_head = [&](std::int64_t i, Key key) {
    return key != kNoRow && (i == 0 || keys[i - 1] >> 32 != key >> 32);
  };
  std::int32_t before = 0;  // rows of the previous chunks
  for (std::int64_t first = 0; first < positions; first += kThreads * kKeys) {
    const bool no_more_rows = keys[first] == kNoRow;  // the same for all threads
    const std::int64_t begin = first + thread * kKeys;
    const std::int64_t end = begin + kKeys < positions ? begin + kKeys : positions;
    std::int32_t mine = 0;
    for (std::int64_t i = begin; i < end; ++i) mine += is_head(i, keys[i]) ? 1 : 0;
    heads[thread] = mine;
    for (int step = 1; step < kThreads; step *= 2) {  // inclusive sums (Hillis and Steele 1986)
      __syncthreads();
      const std::int32_t other = thread >= step ? heads[thread - step] : 0;
      __syncthreads();
      heads[thread] += other;
    }
    __syncthreads();
    std::int32_t number = before + heads[thread] - mine;  // of the next head
    for (std::int64_t i = begin; i < end; ++i) {
      const Key key = keys[i];
      if (is_head(i, key)) {
        touched.rows[number] = static_cast<std::int32_t>(key >> 32);
        touched.starts[number++] = static_cast<std::int32_t>(i);
      }
      if (key != kNoRow) touched.order[i] = static_cast<std::int32_t>(key & 0xFFFFFFFFU);
      // The end: the position of the first key without a row, or the number of positions.
      if (key == kNoRow && (i == 0 || keys[i - 1] != kNoRow))
        touched.starts[number] = static_cast<std::int32_t>(i);
      if (i == positions - 1 && key != kNoRow) touched.starts[number] = static_cast<std::int32_t>(positions);
    }
    before += heads[kThreads - 1];
    if (no_more_rows) break;
    __syncthreads();
  }
  if (thread == 0) {
    *touched.count = before;
    if (positions == 0) touched.starts[0] = 0;
  }
}

// The sum of a row with at most kBlock positions is one thread's per column. Longer rows are cut into blocks
// of kBlock positions, whose sums are computed side by side and then added in order. A window of kBlock
// sorted positions has at most two blocks' first positions of longer rows: one of the row that began before
// it, or with it, and one of a row that begins within it. So the blocks have fixed places, two per window.

inline constexpr std::int64_t windows_of(std::int64_t positions) { return (positions + kBlock - 1) / kBlock; }

/// The place of the block of a row that begins at `first`, where the row begins at `start`.
inline __device__ std::int64_t place_of(std::int32_t start, std::int32_t first) {
  return 2 * (first / kBlock) + (first == start && first % kBlock != 0 ? 1 : 0);
}

/// The touched row of a sorted position. At least one row is touched, and the position is before the end.
inline __device__ std::int32_t row_at(const TouchedRows& touched, std::int32_t position) {
  std::int32_t low = 0, high = *touched.count;
  while (high - low > 1) {
    const std::int32_t middle = low + (high - low) / 2;
    if (touched.starts[middle] <= position)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/// Rows are half a window's positions as touched rows, then a place of blocks, and so on, so that neighbours
/// share the long sums; columns are units.
template <typename T>
struct SumBlocks {
  static constexpr std::int64_t kSpread = kBlock / 2 + 1;
  TouchedRows touched;
  const T* dy;
  float* blocks;
  float* values;
  std::int64_t units;
  bool dense;
  template <typename V>
  __device__ std::int64_t column(std::int64_t unit) const {
    return unit;
  }
  template <typename V>
  __device__ void row(std::int64_t unit, std::int64_t, std::int64_t at) const {
    const std::int64_t half = at / kSpread, k = at - half;
    if (at % kSpread == kSpread - 1) return block<V>(unit, half);
    if (k >= *touched.count) return;
    const std::int32_t first = touched.starts[k], last = touched.starts[k + 1];
    if (last - first <= kBlock)
      V::store(values + (dense ? touched.rows[k] : k) * units + unit, sum<V>(unit, first, last));
  }

 private:
  /// The block of a place, if there is one.
  template <typename V>
  __device__ void block(std::int64_t unit, std::int64_t place) const {
    const std::int32_t begin = static_cast<std::int32_t>(place / 2 * kBlock), count = *touched.count;
    const std::int32_t all = touched.starts[count];
    if (begin >= all) return;
    const bool within = place % 2 == 1;
    const std::int32_t end = begin + kBlock < all ? begin + kBlock : all;
    const std::int32_t k = row_at(touched, within ? end - 1 : begin);
    const std::int32_t start = touched.starts[k], last = touched.starts[k + 1];
    if (last - start <= kBlock || within != (start > begin)) return;
    const std::int32_t first = within ? start : start + (begin - start + kBlock - 1) / kBlock * kBlock;
    if (first >= last) return;
    const std::int32_t until = first + kBlock < last ? first + kBlock : last;
    V::store(blocks + place * units + unit, sum<V>(unit, first, until));
  }
  template <typename V>
  __device__ Pack<V::kWidth> sum(std::int64_t unit, std::int32_t first, std::int32_t last) const {
    Pack<V::kWidth> sum = {};
#pragma unroll 4
    for (std::int32_t i = first; i < last; ++i) {
      const auto value = V::load(dy + static_cast<std::int64_t>(touched.order[i]) * units + unit);
      for (int w = 0; w < V::kWidth; ++w) sum.at[w] += value.at[w];
    }
    return sum;
  }
};

/// Adds the blocks of each longer row, in order, in double. Rows are windows, in which at most one longer row
/// begins; columns are units.
struct AddBlocks {
  TouchedRows touched;
  const float* blocks;
  float* values;
  std::int64_t units;
  bool dense;
  template <typename V>
  __device__ std::int64_t column(std::int64_t unit) const {
    return unit;
  }
  template <typename V>
  __device__ void row(std::int64_t unit, std::int64_t, std::int64_t window) const {
    const std::int32_t begin = static_cast<std::int32_t>(window * kBlock);
    const std::int32_t all = touched.starts[*touched.count];
    if (begin >= all) return;
    const std::int32_t k = row_at(touched, begin + kBlock < all ? begin + kBlock - 1 : all - 1);
    const std::int32_t start = touched.starts[k], last = touched.starts[k + 1];
    if (start < begin || last - start <= kBlock) return;
    double totals[V::kWidth] = {};
#pragma unroll 4
    for (std::int32_t first = start; first < last; first += kBlock) {
      const auto value = V::load(blocks + place_of(start, first) * units + unit);
      for (int w = 0; w < V::kWidth; ++w) totals[w] += static_cast<double>(value.at[w]);
    }
    Pack<V::kWidth> sum;
    for (int w = 0; w < V::kWidth; ++w) sum.at[w] = static_cast<float>(totals[w]);
    V::store(values + (dense ? touched.rows[k] : k) * units + unit, sum);
  }
};

struct IdsOfRows {
  const std::int32_t* counts;
  const std::int32_t* rows;
  float* ids;
  std::int64_t leaf_rows;
  template <typename V>
  __device__ void run(std::int64_t place) const {
    ids[place] = place % leaf_rows < counts[place / leaf_rows] ? static_cast<float>(rows[place]) : -1.0F;
  }
};

/// Rows are touched rows, columns are units. A thread stays in its columns, so partial sums can be stored in
/// the leaves' values.
struct AddLeaves {
  TouchedRows touched;
  float* leaf_values;
  float* values;
  std::int64_t leaf_rows, units;
  template <typename V>
  __device__ std::int64_t column(std::int64_t unit) const {
    return unit;
  }
  __device__ std::int32_t leaf_of(std::int32_t place) const {
    return static_cast<std::int32_t>(place / leaf_rows);
  }
  /// Adds the last pending partial sum to the one before it.
  template <typename V>
  __device__ void join(const std::int32_t* last, std::int64_t unit) const {
    float* into = leaf_values + static_cast<std::int64_t>(last[-1]) * units + unit;
    const auto from = V::load(leaf_values + static_cast<std::int64_t>(last[0]) * units + unit);
    auto sum = V::load(into);
    for (int w = 0; w < V::kWidth; ++w) sum.at[w] += from.at[w];
    V::store(into, sum);
  }
  template <typename V>
  __device__ void row(std::int64_t unit, std::int64_t at, std::int64_t k) const {
    if (k >= *touched.count) return;
    std::int32_t pending[kMaxPending];  // places of partial sums
    int count = 0;
    for (std::int32_t i = touched.starts[k]; i < touched.starts[k + 1]; ++i) {
      const std::int32_t place = touched.order[i];
      for (; count > 1 &&
             joined_before(leaf_of(pending[count - 2]), leaf_of(pending[count - 1]), leaf_of(place));
           --count)
        join<V>(pending + count - 1, unit);
      pending[count++] = place;
    }
    for (; count > 1; --count) join<V>(pending + count - 1, unit);
    V::store(values + at, V::load(leaf_values + static_cast<std::int64_t>(pending[0]) * units + unit));
  }
};

class Embedding final : public EmbeddingKernels {
 public:
  std::int64_t gather(const Lane& lane, std::int64_t positions, std::int64_t rows, std::int64_t units,
                      const float* ids, std::int64_t padding, const float* table, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "gather_rows", positions, units, wide_aligned(table, y.as<T>()),
                     Gather<T>{ids, table, y.as<T>(), rows, units, padding});
    });
    return -1;
  }

  std::size_t group_bytes(std::int64_t positions) const override {
    return static_cast<std::size_t>(padded(positions)) * sizeof(Key);
  }

  void group_by_row(const Lane& lane, std::int64_t positions, std::int64_t rows, const float* ids,
                    std::int64_t padding, void* workspace, const TouchedRows& touched) const override {
    Key* keys = static_cast<Key*>(workspace);
    const std::int64_t count = padded(positions);
    launch(lane, "row_keys", keys_kernel, blocks_for(count), kThreads, positions, count, rows, ids, padding,
           keys);
    const std::int64_t width = count < kTile ? count : kTile;
    const unsigned int tiles =
        static_cast<unsigned int>(count / width < kMaxBlocks ? count / width : kMaxBlocks);
    launch(lane, "sort_rows", bitonic_tile_kernel, tiles, kThreads, count, static_cast<int>(width),
           std::int64_t{2}, width, keys);
    for (std::int64_t size = 2 * width; size <= count; size *= 2) {
      for (std::int64_t stride = size / 2; stride >= width; stride /= 2)
        launch(lane, "sort_rows", bitonic_step_kernel, blocks_for(count / 2), kThreads, count, size, stride,
               keys);
      launch(lane, "sort_rows", bitonic_tile_kernel, tiles, kThreads, count, static_cast<int>(width), size,
             size, keys);
    }
    launch(lane, "touched_rows", touched_kernel, 1, kThreads, positions, static_cast<const Key*>(keys),
           touched);
  }

  std::size_t sum_bytes(std::int64_t positions, std::int64_t units) const override {
    if (positions <= kBlock) return 0;
    return static_cast<std::size_t>(2 * windows_of(positions) * units) * sizeof(float);
  }

  void accumulate(const Lane& lane, std::int64_t positions, std::int64_t units, const TouchedRows& touched,
                  ConstData dy, bool dense, void* workspace, float* values) const override {
    float* blocks = static_cast<float*>(workspace);
    const std::int64_t places = 2 * windows_of(positions);
    with_type(dy.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "accumulate_rows", SumBlocks<T>::kSpread * places, units,
                     wide_aligned(dy.as<T>(), blocks, values),
                     SumBlocks<T>{touched, dy.as<T>(), blocks, values, units, dense});
    });
    if (positions > kBlock)
      map_columns(lane, "add_blocks_of_rows", windows_of(positions), units, wide_aligned(blocks, values),
                  AddBlocks{touched, blocks, values, units, dense});
  }

  void ids_of_rows(const Lane& lane, std::int64_t leaves, std::int64_t leaf_rows, const std::int32_t* counts,
                   const std::int32_t* rows, float* ids) const override {
    for_each_element(lane, "ids_of_rows", leaves * leaf_rows, false, IdsOfRows{counts, rows, ids, leaf_rows});
  }

  void add_leaves(const Lane& lane, std::int64_t leaves, std::int64_t leaf_rows, std::int64_t units,
                  const TouchedRows& touched, float* leaf_values, float* values) const override {
    map_columns(lane, "add_leaves", leaves * leaf_rows, units, wide_aligned(leaf_values, values),
                AddLeaves{touched, leaf_values, values, leaf_rows, units});
  }
};

}  // namespace

const EmbeddingKernels& embedding_kernels() {
  static const Embedding kernels;
  return kernels;
}

}  // namespace lockstep::cuda
