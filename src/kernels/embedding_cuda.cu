// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Table rows by index on a GPU. Blocks of a frequent row's positions are added side by side, then in order.
// Results have the CPU's bits.
#include "kernels/embedding.h"

#include <cmath>

#include "kernels/cuda_columns.h"
#include "kernels/cuda_rows.h"
#include "kernels/factory_cuda.h"
#include "kernels/group_rows_cuda.h"
#include "kernels/shard_tree.h"

namespace lockstep::cuda {
namespace {

constexpr std::int32_t kBlock = 64;  ///< positions that are added in float32

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

template <typename T>
struct RowSums {
  TouchedRows touched;
  const T* dy;
  float* blocks;
  float* values;
  std::int64_t units;
  bool dense;
  std::int64_t places;  ///< of blocks
};

/// A run of sorted positions that are added in float32, and where the sum goes.
struct PositionRun {
  std::int32_t first = 0, last = 0;
  float* to = nullptr;
};

/// The sum of the k-th touched row, unless it is longer.
template <typename T>
__device__ PositionRun run_of_row(const RowSums<T>& s, std::int64_t k) {
  if (k >= *s.touched.count) return {};
  const std::int32_t first = s.touched.starts[k], last = s.touched.starts[k + 1];
  if (last - first > kBlock) return {};
  return {first, last, s.values + (s.dense ? s.touched.rows[k] : k) * s.units};
}
/// The block of a place, if there is one.
template <typename T>
__device__ PositionRun run_of_place(const RowSums<T>& s, std::int64_t place) {
  const std::int32_t begin = static_cast<std::int32_t>(place / 2 * kBlock), count = *s.touched.count;
  const std::int32_t all = s.touched.starts[count];
  if (begin >= all) return {};
  const bool within = place % 2 == 1;
  const std::int32_t end = begin + kBlock < all ? begin + kBlock : all;
  const std::int32_t k = row_at(s.touched, within ? end - 1 : begin);
  const std::int32_t start = s.touched.starts[k], last = s.touched.starts[k + 1];
  if (last - start <= kBlock || within != (start > begin)) return {};
  const std::int32_t first = within ? start : start + (begin - start + kBlock - 1) / kBlock * kBlock;
  return {first, first + kBlock < last ? first + kBlock : last, s.blocks + place * s.units};
}

/// A warp per run: first the places of blocks, which may be long, then the touched rows. A thread has several
/// packs of each position at a time, so that many reads are in flight.
template <typename V, typename T>
__global__ void __launch_bounds__(kThreads, kResidentBlocks)
    sum_rows_kernel(RowSums<T> s, std::int64_t runs) {
  constexpr int kPacks = 4, kStep = kWarp * V::kWidth;
  const std::int64_t warp =
      (static_cast<std::int64_t>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x)) / kWarp;
  if (warp >= runs) return;
  const PositionRun run = warp < s.places ? run_of_place(s, warp) : run_of_row(s, warp - s.places);
  if (run.first >= run.last) return;
  for (std::int64_t unit = static_cast<int>(threadIdx.x) % kWarp * V::kWidth; unit < s.units;
       unit += kPacks * kStep) {
    Pack<V::kWidth> sums[kPacks] = {};
    for (std::int32_t i = run.first; i < run.last; ++i) {
      const T* from = s.dy + static_cast<std::int64_t>(s.touched.order[i]) * s.units + unit;
      typename V::template Raw<T> raw[kPacks];
#pragma unroll
      for (int p = 0; p < kPacks; ++p)
        if (unit + p * kStep < s.units) raw[p] = V::fetch(from + p * kStep);
#pragma unroll
      for (int p = 0; p < kPacks; ++p)
        if (unit + p * kStep < s.units) {
          const auto value = V::template unpack<T>(raw[p]);
          for (int k = 0; k < V::kWidth; ++k) sums[p].at[k] += value.at[k];
        }
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (unit + p * kStep < s.units) V::store(run.to + unit + p * kStep, sums[p]);
  }
}

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

  std::size_t group_bytes(std::int64_t positions) const override { return group_rows_bytes(positions); }

  void group_by_row(const Lane& lane, std::int64_t positions, std::int64_t rows, const float* ids,
                    std::int64_t padding, void* workspace, const TouchedRows& touched) const override {
    group_rows(lane, positions, rows, ids, padding, workspace, touched);
  }

  std::size_t sum_bytes(std::int64_t positions, std::int64_t units) const override {
    if (positions <= kBlock) return 0;
    return static_cast<std::size_t>(2 * windows_of(positions) * units) * sizeof(float);
  }

  void accumulate(const Lane& lane, std::int64_t positions, std::int64_t units, const TouchedRows& touched,
                  ConstData dy, bool dense, void* workspace, float* values) const override {
    float* blocks = static_cast<float*>(workspace);
    const std::int64_t places = positions > kBlock ? 2 * windows_of(positions) : 0;
    const std::int64_t runs = places + positions;
    if (positions <= 0 || units <= 0) return;
    with_type(dy.type(), [&]<typename T>(T) {
      with_pieces<T>(units, wide_aligned(dy, blocks, values), [&]<typename V>(V) {
        launch(lane, "accumulate_rows", sum_rows_kernel<V, T>,
               static_cast<unsigned int>((runs * kWarp + kThreads - 1) / kThreads), kThreads,
               RowSums<T>{touched, dy.as<T>(), blocks, values, units, dense, places}, runs);
      });
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
