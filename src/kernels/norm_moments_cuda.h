// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of NormKernels::moments: mean and sum of squared deviations per channel, in one pass over
// memory (private to norm_cuda.cu). Threads, then chunks of rows, are merged in double along trees that the
// shape fixes.
#pragma once

#include "kernels/cuda_columns.h"

namespace lockstep::cuda {
namespace {

/// Destinations of the moments.
struct Moments {
  double* count;
  double* mean;
  double* m2;
};

/// Rows that a thread reads at a time: 64 bytes in accesses of 16 or 8 bytes.
template <typename V, typename T>
constexpr int kMomentRows = 4 * V::template kReadsAhead<T>;
constexpr int kFirstRows = 4;  ///< rows whose mean is the first centre

/// Merges the moments of `count_b` numbers into `count`, `mean` and `m2` (Chan, Golub and LeVeque 1979,
/// equation 2.1).
inline __device__ void merge(double& count, double& mean, double& m2, double count_b, double mean_b,
                             double m2_b) {
  if (count_b == 0.0) return;
  if (count == 0.0) {
    count = count_b;
    mean = mean_b;
    m2 = m2_b;
    return;
  }
  const double share = count_b / (count + count_b), delta = mean_b - mean;
  mean += delta * share;
  m2 += m2_b + delta * delta * (count * share);
  count += count_b;
}

/// The number of rows first, first + step, ... below last.
inline __device__ double rows_between(std::int64_t first, std::int64_t last, int step) {
  return first < last ? static_cast<double>((last - first + step - 1) / step) : 0.0;
}

/// Merges the moments of a thread's rows into means[k][thread] and squares[k][thread]. These stay in shared
/// memory: the registers hold the rows.
///
/// The rows of a run are centred on the mean of the run before, those of the first one on the mean of
/// kFirstRows rows. If that is far from a run's own mean, then the runs differ, and the sum of squares is
/// large in any case: what the float32 sums lose is small next to it.
template <typename V, typename T>
__device__ void thread_moments(const Columns& c, const Place& place, const T* x, double (*means)[kThreads],
                               double (*squares)[kThreads]) {
  constexpr int kWidth = V::kWidth, kRows = kMomentRows<V, T>;
  static_assert(kBlockRows % kRows == 0 && kFirstRows <= kRows);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t step = c.row_threads * c.channels;
  const T* from = x + place.row * c.channels + place.piece * kWidth;
  std::int64_t rest =
      place.row < place.last ? (place.last - place.row + c.row_threads - 1) / c.row_threads : 0;
  double done = 0.0;
  Pack<kWidth> centre = {}, sum = {}, square = {};
  int run = 0;  // rows in `sum` and `square`
  while (rest > 0) {
    const int count = rest < kRows ? static_cast<int>(rest) : kRows;
    typename V::template Raw<T> values[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      if (i < count) values[i] = V::fetch(from + i * step);
    from += kRows * step;
    rest -= count;
    if (done == 0.0 && run == 0) {
#pragma unroll
      for (int i = 0; i < kFirstRows; ++i)
        if (i < count) {
          const auto value = V::template unpack<T>(values[i]);
          for (int k = 0; k < kWidth; ++k) centre.at[k] += value.at[k];
        }
      const int first = count < kFirstRows ? count : kFirstRows;
      for (int k = 0; k < kWidth; ++k) centre.at[k] /= static_cast<float>(first);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      if (i < count) {
        const auto value = V::template unpack<T>(values[i]);
        for (int k = 0; k < kWidth; ++k) {
          const float deviation = value.at[k] - centre.at[k];
          sum.at[k] += deviation;
          square.at[k] += deviation * deviation;
        }
      }
    run += count;
    if (run < kBlockRows && rest > 0) continue;
    const double counted = static_cast<double>(run), inverse = 1.0 / counted,
                 share = counted / (done + counted), weight = done * share;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const double offset = static_cast<double>(sum.at[k]) * inverse;
      const double own_mean = static_cast<double>(centre.at[k]) + offset;
      double own_square = static_cast<double>(square.at[k]) - static_cast<double>(sum.at[k]) * offset;
      own_square = own_square < 0.0 ? 0.0 : own_square;  // by rounding only; NaN stays NaN
      const double mean = means[k][thread], delta = own_mean - mean;
      means[k][thread] = mean + delta * share;
      squares[k][thread] += own_square + delta * delta * weight;
      centre.at[k] = static_cast<float>(own_mean);
      sum.at[k] = square.at[k] = 0.0F;
      asm volatile("" ::: "memory");  // else the compiler moves them to registers
    }
    done += counted;
    run = 0;
  }
}

/// partial[chunk] = {mean[C], m2[C]}. With one chunk, writes to `out` directly.
template <typename V, typename T>
__global__ void __launch_bounds__(kThreads, kResidentBlocks)
    moments_kernel(Columns c, const T* x, double* partial, Moments out) {
  constexpr int kWidth = V::kWidth;
  __shared__ double means[kWidth][kThreads], squares[kWidth][kThreads];
  const Place place(c);
  const int thread = static_cast<int>(threadIdx.x);
  for (int k = 0; k < kWidth; ++k) means[k][thread] = squares[k][thread] = 0.0;
  if (place.active) thread_moments<V>(c, place, x, means, squares);
  // Row thread r holds the rows of the threads r, r + half, ...; their number follows from the shape.
  double count = rows_between(place.row, place.last, c.row_threads);
  __shared__ double counts[kThreads];
  counts[thread] = count;
  for (int half = power_of_two(c.row_threads) / 2; half > 0; half /= 2) {
    __syncthreads();
    if (place.row_thread < half && place.row_thread + half < c.row_threads) {
      const int other = thread + half * c.tile;
      for (int k = 0; k < kWidth; ++k) {
        double together = count;
        merge(together, means[k][thread], squares[k][thread], counts[other], means[k][other],
              squares[k][other]);
      }
      count += counts[other];
      counts[thread] = count;
    }
  }
  if (!place.active || place.row_thread != 0) return;
  if (gridDim.y > 1) {
    out.mean = partial + static_cast<std::int64_t>(blockIdx.y) * 2 * c.channels;
    out.m2 = out.mean + c.channels;
  } else if (blockIdx.x == 0 && thread == 0) {
    *out.count = static_cast<double>(c.rows);
  }
  for (int k = 0; k < kWidth; ++k) {
    out.mean[place.piece * kWidth + k] = means[k][thread];
    out.m2[place.piece * kWidth + k] = squares[k][thread];
  }
}

__global__ void __launch_bounds__(kFinishColumns* kFinishRows)
    merge_chunks_kernel(Columns c, const double* partial, Moments out) {
  __shared__ double means[kFinishColumns * kFinishRows], squares[kFinishColumns * kFinishRows],
      counts[kFinishColumns * kFinishRows];
  const int thread = static_cast<int>(threadIdx.x), row = thread / kFinishColumns;
  const std::int64_t channel =
      static_cast<std::int64_t>(blockIdx.x) * kFinishColumns + thread % kFinishColumns;
  double count = 0.0, mean = 0.0, m2 = 0.0;
  if (channel < c.channels)
    for (int chunk = row; chunk < static_cast<int>(c.chunks); chunk += kFinishRows) {
      const std::int64_t first = chunk * c.chunk_rows, last = first + c.chunk_rows;
      const double* from = partial + static_cast<std::int64_t>(chunk) * 2 * c.channels + channel;
      merge(count, mean, m2, static_cast<double>((last < c.rows ? last : c.rows) - first), from[0],
            from[c.channels]);
    }
  means[thread] = mean;
  squares[thread] = m2;
  counts[thread] = count;
  for (int half = kFinishRows / 2; half > 0; half /= 2) {
    __syncthreads();
    const int other = thread + half * kFinishColumns;
    if (row < half) {
      merge(count, mean, m2, counts[other], means[other], squares[other]);
      means[thread] = mean;
      squares[thread] = m2;
      counts[thread] = count;
    }
  }
  if (row != 0 || channel >= c.channels) return;
  out.mean[channel] = mean;
  out.m2[channel] = m2;
  if (channel == 0) *out.count = static_cast<double>(c.rows);
}

}  // namespace
}  // namespace lockstep::cuda
