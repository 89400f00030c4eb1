// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that work on rows, with a group of threads per row: a warp for short rows, a block for long ones.
// Sums over a row are in double; a sum may add four neighbours in float32 first. Thread t adds pieces t,
// t + group, ...; a piece is 16 bytes (four float32 or eight 16-bit numbers) if the row consists of such
// runs, else four 16-bit numbers, else one. The threads are added along a tree. The bits depend on the row's
// length and type alone: if addresses are not aligned, the same pieces are read one number at a time. For
// *.cu files.
#pragma once

#include <cmath>

#include "kernels/cuda_vector.h"

namespace lockstep::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned int kWholeWarp = 0xFFFFFFFFU;
inline constexpr std::int64_t kWarpColumns = 1024;  ///< longer rows use a block each

/// The largest value and its lowest index. NaN is ignored, except that the index is -1 if the first value is
/// NaN.
struct Maximum {
  float value;
  std::int64_t index;
};
inline __device__ bool larger(const Maximum& a, const Maximum& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}

/// kGroup threads that work on one row. All of them must make every call.
template <int kGroup>
struct Group {
  static constexpr int kRows = kThreads / kGroup;  ///< rows that a block handles at a time
  static __device__ int thread() { return static_cast<int>(threadIdx.x) % kGroup; }

  /// Returns the sum over the group to all its threads.
  static __device__ double sum(double value) {
    for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(kWholeWarp, value, step);
    if constexpr (kGroup > kWarp) {
      __shared__ double warps[kGroup / kWarp];
      __syncthreads();
      if (thread() % kWarp == 0) warps[thread() / kWarp] = value;
      __syncthreads();
      value = warps[0];
      for (int w = 1; w < kGroup / kWarp; ++w) value += warps[w];
    }
    return value;
  }

  static __device__ Maximum maximum(Maximum best) {
    for (int step = kWarp / 2; step > 0; step /= 2) {
      const Maximum other{__shfl_xor_sync(kWholeWarp, best.value, step),
                          __shfl_xor_sync(kWholeWarp, best.index, step)};
      if (larger(other, best)) best = other;
    }
    if constexpr (kGroup > kWarp) {
      __shared__ float values[kGroup / kWarp];
      __shared__ std::int64_t indices[kGroup / kWarp];
      __syncthreads();
      if (thread() % kWarp == 0) {
        values[thread() / kWarp] = best.value;
        indices[thread() / kWarp] = best.index;
      }
      __syncthreads();
      for (int w = 0; w < kGroup / kWarp; ++w) {
        const Maximum other{values[w], indices[w]};
        if (larger(other, best)) best = other;
      }
    }
    return best;
  }
};

/// A pack's part of a sum over a row: runs of four are added in float32.
template <int kWidth>
__device__ double sum_of(const Pack<kWidth>& value) {
  double sum = 0.0;
  if constexpr (kWidth % 4 == 0)
    for (int i = 0; i < kWidth; i += 4)
      sum += static_cast<double>((value.at[i] + value.at[i + 1]) + (value.at[i + 2] + value.at[i + 3]));
  else
    for (int i = 0; i < kWidth; ++i) sum += static_cast<double>(value.at[i]);
  return sum;
}

/// Calls body(row) for the rows of this thread's group. The shape and the grid determine these rows.
template <int kGroup, typename Body>
__device__ void for_each_row(std::int64_t rows, const Body& body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Group<kGroup>::kRows;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * Group<kGroup>::kRows +
                          static_cast<int>(threadIdx.x) / kGroup;
       row < rows; row += step)
    body(row);
}

/// Calls body(first) for this thread's pieces of a row, V::kWidth numbers each.
template <int kGroup, typename V, typename Body>
__device__ void for_each_piece(std::int64_t count, const Body& body) {
  for (std::int64_t i = Group<kGroup>::thread() * std::int64_t{V::kWidth}; i < count; i += kGroup * V::kWidth)
    body(i);
}

/// A row of a rows x count matrix, cut where the matrix is cut into packs of kWidth elements: the row's first
/// and last pack may be partial. The cut depends on the shape and the row alone. A whole pack is read in wide
/// accesses if the matrix is aligned, else one element at a time.
template <typename V>
struct RowPacks {
  std::int64_t first;  ///< element of the matrix with which pack 0 begins
  int skip, end;       ///< elements of pack 0 before the row; the row's end, counted from `first`
  bool aligned;

  __device__ RowPacks(std::int64_t row, int count, bool wide)
      : skip(static_cast<int>(row * count % V::kWidth)), end(skip + count), aligned(wide) {
    first = row * count - skip;
  }
  __device__ int packs() const { return (end + V::kWidth - 1) / V::kWidth; }
  /// The place in the row of the pack's first element; negative for pack 0 if `skip` is not 0.
  __device__ int place(int pack) const { return pack * V::kWidth - skip; }
  __device__ bool in_one_access(int pack) const {
    return aligned && pack * V::kWidth >= skip && (pack + 1) * V::kWidth <= end;
  }
  /// Elements outside of the row are `outside`.
  template <typename T>
  __device__ Pack<V::kWidth> load(const T* matrix, int pack, float outside) const {
    const T* from = matrix + first + pack * V::kWidth;
    if (in_one_access(pack)) return V::load(from);
    Pack<V::kWidth> value;
    for (int i = 0; i < V::kWidth; ++i) {
      const int at = pack * V::kWidth + i;
      value.at[i] = at >= skip && at < end ? widened(from[i]) : outside;
    }
    return value;
  }
  template <typename T>
  __device__ void store(T* matrix, int pack, const Pack<V::kWidth>& value) const {
    T* to = matrix + first + pack * V::kWidth;
    if (in_one_access(pack)) return V::store(to, value);
    for (int i = 0; i < V::kWidth; ++i) {
      const int at = pack * V::kWidth + i;
      if (at >= skip && at < end) to[i] = narrowed<T>(value.at[i]);
    }
  }
};

/// Calls body with the access type for pieces of rows of type T, which consist of runs of `run` adjacent
/// numbers. `wide`: wide_aligned().
template <typename T, typename Body>
void with_pieces(std::int64_t run, bool wide, const Body& body) {
  using V = Whole<T>;
  const auto aligned_or_not = [&]<typename Pieces>(Pieces pieces) {
    if (wide)
      body(pieces);
    else
      body(OneByOne<Pieces::kWidth>{});
  };
  if (run % V::kWidth == 0) return aligned_or_not(V{});
  if constexpr (V::kWidth > Wide::kWidth)
    if (run % Wide::kWidth == 0) return aligned_or_not(Wide{});
  body(Narrow{});
}

/// Launches the kernel of the right group size and returns its number of blocks. Zero rows still launch one
/// block, which writes zeros.
template <typename... Parameters, typename... Arguments>
int launch_rows(const Lane& lane, const char* name, std::int64_t rows, std::int64_t columns,
                std::int64_t most, void (*warp)(Parameters...), void (*block)(Parameters...),
                Arguments... arguments) {
  const bool few = columns <= kWarpColumns;
  const std::int64_t rows_of_block = few ? Group<kWarp>::kRows : 1;
  std::int64_t blocks = (rows + rows_of_block - 1) / rows_of_block;
  blocks = blocks < 1 ? 1 : blocks < most ? blocks : most;
  launch(lane, name, few ? warp : block, static_cast<unsigned int>(blocks), kThreads, rows, columns,
         arguments...);
  return static_cast<int>(blocks);
}

}  // namespace lockstep::cuda
