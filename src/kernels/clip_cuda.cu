// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Norms and clipping on a GPU, with the CPU's bits. The threads of a warp are the columns of a block; a
// thread block is the wide columns. Factors stay on the GPU: the clipping kernels read them there, and return
// at once where they are 1.
#include "kernels/clip.h"

#include <cmath>

#include "kernels/cuda_rows.h"
#include "kernels/cuda_vector.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

static_assert(kClipColumns == kWarp && kClipWideColumns == kThreads);

inline __device__ double square(float value) {
  return static_cast<double>(value) * static_cast<double>(value);
}

__global__ void __launch_bounds__(kThreads)
    square_blocks_kernel(std::int64_t num_blocks, const ClipBlock* blocks, const float* g, double* sums) {
  for_each_row<kWarp>(num_blocks, [&](std::int64_t b) {
    const ClipBlock block = blocks[b];
    const float* from = g + block.first;
    double column = 0.0;
    std::int32_t i = Group<kWarp>::thread();
    constexpr int kAtOnce = 8;  // loads in flight at the same time
    for (; i + (kAtOnce - 1) * kClipColumns < block.count; i += kAtOnce * kClipColumns) {
      float values[kAtOnce];
      for (int k = 0; k < kAtOnce; ++k) values[k] = from[i + k * kClipColumns];
      for (int k = 0; k < kAtOnce; ++k) column += square(values[k]);
    }
    for (; i < block.count; i += kClipColumns) column += square(from[i]);
    column = Group<kWarp>::sum(column);
    if (Group<kWarp>::thread() == 0) sums[b] = column;
  });
}

/// A warp per given row. It handles the blocks of which that row is the first given one.
__global__ void __launch_bounds__(kThreads)
    square_rows_kernel(const std::int32_t* num_rows, const std::int32_t* rows, const float* values,
                       std::int64_t first, std::int64_t last, std::int64_t width, double* sums) {
  const std::int64_t count = *num_rows, end = last < count ? last : count;
  for_each_row<kWarp>(end - first, [&](std::int64_t number) {
    const std::int64_t k = first + number, begin = rows[k] * width;
    std::int64_t block = begin / kClipBlock;
    if (k > 0 && (rows[k - 1] * width + width - 1) / kClipBlock == block) ++block;
    for (; block * kClipBlock < begin + width; ++block) {
      const std::int64_t from = block * kClipBlock, to = from + kClipBlock;
      double column = 0.0;
      for (std::int64_t row = k; row < count; ++row) {
        const std::int64_t row_begin = rows[row] * width;
        if (row_begin >= to) break;
        const std::int64_t start = row_begin > from ? row_begin : from,
                           stop = row_begin + width < to ? row_begin + width : to;
        // The thread's own column: `from` is a multiple of kClipColumns.
        const std::int64_t skip =
            (Group<kWarp>::thread() - start % kClipColumns + kClipColumns) % kClipColumns;
        const float* at = values + row * width - row_begin;
        for (std::int64_t e = start + skip; e < stop; e += kClipColumns) column += square(at[e]);
      }
      column = Group<kWarp>::sum(column);
      if (Group<kWarp>::thread() == 0) sums[block] = column;
    }
  });
}

/// Sums the columns of the thread block; the result is valid in its first thread.
inline __device__ double columns_sum(double column) {
  __shared__ double columns[kThreads];
  __syncthreads();  // for the previous call
  columns[threadIdx.x] = column;
  __syncthreads();
  for (unsigned int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) columns[threadIdx.x] += columns[threadIdx.x + half];
    __syncthreads();
  }
  return columns[0];
}

inline __device__ double wide_sum(std::int64_t count, const double* values) {
  double column = 0.0;
  for (std::int64_t i = threadIdx.x; i < count; i += kClipWideColumns) column += values[i];
  return columns_sum(column);
}

/// One thread block per variable.
__global__ void __launch_bounds__(kThreads)
    squares_kernel(const ClipVariable* variables, const double* sums, double* squares) {
  const ClipVariable variable = variables[blockIdx.x];
  const double sum = wide_sum(variable.num_blocks, sums + variable.first_block);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

inline __device__ double factor_of(double norm, double limit) {
  if (norm <= limit) return 1.0;
  return std::isfinite(norm) ? limit / norm : nan("");
}

/// Runs in one thread block.
__global__ void __launch_bounds__(kThreads)
    factors_kernel(std::int64_t num_variables, const ClipVariable* variables, ClipNorms norms,
                   const double* squares, double* factors, ClipTotals* totals) {
  const double norm = std::sqrt(wide_sum(num_variables, squares));
  double clipped = 0.0;  // whole numbers, so their sum is exact
  for (std::int64_t v = threadIdx.x; norms.which != ClipNorms::Which::none && v < num_variables;
       v += kThreads) {
    factors[v] = norms.which == ClipNorms::Which::all ? factor_of(norm, norms.limit)
                                                      : factor_of(std::sqrt(squares[v]), variables[v].limit);
    clipped += factors[v] == 1.0 ? 0.0 : 1.0;
  }
  clipped = columns_sum(clipped);
  if (threadIdx.x != 0) return;
  totals->norm = norm;
  totals->clipped =
      norms.which == ClipNorms::Which::none ? 0.0 : clipped / static_cast<double>(num_variables);
}

/// Clips one number; `factor` is 1 without factors.
inline __device__ float clipped(float value, double factor, const Clipping& clipping) {
  if (clipping.factors != nullptr)
    return std::isnan(factor) ? nanf("") : static_cast<float>(factor * static_cast<double>(value));
  const float below = value > clipping.high ? clipping.high : value;
  return below < clipping.low ? clipping.low : below;
}

/// One thread block per gradient block.
template <typename V>
__global__ void __launch_bounds__(kThreads)
    clip_blocks_kernel(std::int64_t num_blocks, const ClipBlock* blocks, Clipping clipping, float* g) {
  for (std::int64_t b = blockIdx.x; b < num_blocks; b += gridDim.x) {
    const ClipBlock block = blocks[b];
    const double factor = clipping.factors == nullptr ? 1.0 : clipping.factors[block.variable];
    if (clipping.factors != nullptr && factor == 1.0) continue;
    float* to = g + block.first;
    const std::int32_t packed = block.count / V::kWidth * V::kWidth;
    const std::int32_t thread = static_cast<std::int32_t>(threadIdx.x);
    for (std::int32_t i = thread * V::kWidth; i < packed; i += kThreads * V::kWidth) {
      auto value = V::load(to + i);
      for (int k = 0; k < V::kWidth; ++k) value.at[k] = clipped(value.at[k], factor, clipping);
      V::store(to + i, value);
    }
    for (std::int32_t i = packed + thread; i < block.count; i += kThreads)
      to[i] = clipped(to[i], factor, clipping);
  }
}

__global__ void __launch_bounds__(kThreads)
    clip_rows_kernel(const std::int32_t* num_rows, float* values, std::int64_t first, std::int64_t last,
                     std::int64_t width, std::int32_t v, Clipping clipping) {
  const double factor = clipping.factors == nullptr ? 1.0 : clipping.factors[v];
  if (clipping.factors != nullptr && factor == 1.0) return;
  const std::int64_t count = *num_rows, end = (last < count ? last : count) * width;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = first * width + static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       i < end; i += stride)
    values[i] = clipped(values[i], factor, clipping);
}

class Clip final : public ClipKernels {
 public:
  void square_blocks(const Lane& lane, std::int64_t num_blocks, const ClipBlock* blocks, const float* g,
                     double* sums) const override {
    if (num_blocks > 0)
      launch(lane, "square_blocks", square_blocks_kernel, blocks_for(num_blocks * kWarp), kThreads,
             num_blocks, blocks, g, sums);
  }

  void square_rows(const Lane& lane, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                   std::int64_t width, double* sums) const override {
    if (last > first)
      launch(lane, "square_rows", square_rows_kernel, blocks_for((last - first) * kWarp), kThreads,
             gradient.count, gradient.rows, gradient.values, first, last, width, sums);
  }

  void factors(const Lane& lane, std::int64_t num_variables, const ClipVariable* variables,
               const double* sums, ClipNorms norms, double* squares, double* factors,
               ClipTotals* totals) const override {
    if (num_variables > 0)
      launch(lane, "squares", squares_kernel, static_cast<unsigned int>(num_variables), kThreads, variables,
             sums, squares);
    launch(lane, "factors", factors_kernel, 1U, kThreads, num_variables, variables, norms, squares, factors,
           totals);
  }

  void clip_blocks(const Lane& lane, std::int64_t num_blocks, const ClipBlock* blocks, Clipping clipping,
                   float* g) const override {
    if (num_blocks <= 0) return;
    // Blocks begin at multiples of 16 elements.
    launch(lane, "clip_blocks", wide_aligned(g) ? clip_blocks_kernel<Wide> : clip_blocks_kernel<Narrow>,
           blocks_for(num_blocks * kThreads), kThreads, num_blocks, blocks, clipping, g);
  }

  void clip_rows(const Lane& lane, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                 std::int64_t width, std::int32_t v, Clipping clipping) const override {
    if (last > first)
      launch(lane, "clip_rows", clip_rows_kernel, blocks_for((last - first) * width), kThreads,
             gradient.count, gradient.values, first, last, width, v, clipping);
  }
};

}  // namespace

const ClipKernels& clip_kernels() {
  static const Clip kernels;
  return kernels;
}

}  // namespace lockstep::cuda
