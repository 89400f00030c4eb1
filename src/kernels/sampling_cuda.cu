// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sampled losses on a GPU. The drawn classes are those of the CPU. Sums along a row are in double: thread t
// of a warp adds elements t, t + 32, ..., and the threads are added along a tree.
#include "kernels/sampling.h"

#include <cmath>

#include "core/philox.h"
#include "kernels/cuda_columns.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr int kWarp = 32;
constexpr unsigned int kWholeWarp = 0xFFFFFFFFU;

inline __device__ std::int64_t row_of(float id, std::int64_t rows) {
  if (!(id >= 0.0F && id < static_cast<float>(rows))) return -1;
  const std::int64_t row = static_cast<std::int64_t>(id);
  return static_cast<float>(row) == id ? row : -1;
}

inline __device__ std::int64_t draw(const ClassDistribution& distribution, const DrawKey& key,
                                    const std::uint32_t* step_word, std::uint32_t sample,
                                    std::int64_t number) {
  const PhiloxBlock words = philox_words(key.seed, key.purpose, step_word != nullptr ? *step_word : key.step,
                                         sample, static_cast<std::uint32_t>(number / 2));
  const std::size_t first = static_cast<std::size_t>(number % 2) * 2;
  const std::uint64_t bits = static_cast<std::uint64_t>(words[first]) << 32 | words[first + 1];
  std::int64_t low = 0, high = distribution.classes - 1;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (bits < distribution.cumulative[middle])
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/// Runs in one block: draws kThreads classes at a time and keeps the new ones, in order.
__global__ void __launch_bounds__(kThreads)
    draw_distinct_kernel(ClassDistribution distribution, DrawKey key, const std::uint32_t* step_word,
                         std::int64_t sampled, float* ids, double* tries) {
  __shared__ float drawn[kThreads];
  __shared__ int fresh[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  std::int64_t count = 0;
  for (std::int64_t first = 0; count < sampled; first += kThreads) {
    const float mine = static_cast<float>(draw(distribution, key, step_word, 0, first + thread));
    drawn[thread] = mine;
    __syncthreads();
    bool known = false;
    for (int i = 0; i < thread && !known; ++i) known = drawn[i] == mine;
    for (std::int64_t i = 0; i < count && !known; ++i) known = ids[i] == mine;
    fresh[thread] = known ? 0 : 1;
    for (int step = 1; step < kThreads; step *= 2) {  // inclusive sums
      __syncthreads();
      const int other = thread >= step ? fresh[thread - step] : 0;
      __syncthreads();
      fresh[thread] += other;
    }
    __syncthreads();
    const std::int64_t place = count + fresh[thread] - 1;
    if (!known && place < sampled) ids[place] = mine;
    if (!known && place == sampled - 1) *tries = static_cast<double>(first + thread + 1);
    count += fresh[kThreads - 1];
    __syncthreads();
  }
}

struct DrawEach {
  ClassDistribution distribution;
  DrawKey key;
  const std::uint32_t* step_word;
  std::int64_t each;
  std::uint32_t first_sample;
  float* ids;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    ids[i] = static_cast<float>(
        draw(distribution, key, step_word, first_sample + static_cast<std::uint32_t>(i / each), i % each));
  }
};

struct BiasesOf {
  ClassDistribution distribution;
  const float* ids;
  const float* biases;
  std::int64_t sampled;
  const double* tries;
  float* out;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    const std::int64_t row = row_of(ids[i], distribution.classes);
    float value = nanf("");
    if (row >= 0) {
      value = biases == nullptr ? 0.0F : biases[row];
      if (tries != nullptr) {
        const double p = distribution.probability[row], few = static_cast<double>(sampled);
        const double expected = *tries == few ? p * few : -expm1(*tries * log1p(-p));
        value = static_cast<float>(static_cast<double>(value) - log(expected));
      }
    }
    out[i] = value;
  }
};

inline __device__ double sum_over_warp(double value) {
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(kWholeWarp, value, step);
  return value;
}
inline __device__ float maximum_over_warp(float value) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(kWholeWarp, value, step);
    value = other > value ? other : value;
  }
  return value;
}

/// Calls body(row, thread of the warp) for the rows of this thread's warp.
template <typename Body>
__device__ void for_each_row(std::int64_t rows, const Body& body) {
  constexpr int kRows = kThreads / kWarp;
  for (std::int64_t row =
           static_cast<std::int64_t>(blockIdx.x) * kRows + static_cast<int>(threadIdx.x) / kWarp;
       row < rows; row += static_cast<std::int64_t>(gridDim.x) * kRows)
    body(row, static_cast<int>(threadIdx.x) % kWarp);
}
inline unsigned int row_blocks(std::int64_t rows) { return blocks_for(rows * kWarp); }

__global__ void __launch_bounds__(kThreads)
    row_products_kernel(std::int64_t count, std::int64_t each, std::int64_t units, std::int64_t rows,
                        const float* x, const float* ids, const float* table, const float* offsets,
                        float* z) {
  for_each_row(count, [&](std::int64_t i, int thread) {
    const std::int64_t row = row_of(ids[i], rows);
    double sum = 0.0;
    if (row >= 0)
      for (std::int64_t u = thread; u < units; u += kWarp)
        sum += static_cast<double>(x[i / each * units + u] * table[row * units + u]);
    sum = sum_over_warp(sum);
    if (thread == 0) z[i] = row < 0 ? nanf("") : static_cast<float>(sum + static_cast<double>(offsets[i]));
  });
}

/// Rows are samples, columns are units.
struct AddRows {
  const float* coefficients;
  const float* ids;
  const float* table;
  float* dx;
  std::int64_t each, units, rows;
  bool add;
  template <typename V>
  __device__ std::int64_t column(std::int64_t unit) const {
    return unit;
  }
  template <typename V>
  __device__ void row(std::int64_t unit, std::int64_t at, std::int64_t s) const {
    Pack<V::kWidth> sum = {};
    if (add) sum = V::load(dx + at);
    for (std::int64_t j = s * each; j < (s + 1) * each; ++j) {
      const std::int64_t row = row_of(ids[j], rows);
      const auto value = V::load(table + (row < 0 ? 0 : row) * units + unit);
      const float coefficient = row < 0 ? nanf("") : coefficients[j];
      for (int w = 0; w < V::kWidth; ++w) sum.at[w] += coefficient * value.at[w];
    }
    V::store(dx + at, sum);
  }
};

/// to[row][column] = coefficients[row] * from[row / from_group][column].
struct ScaleRows {
  const float* coefficients;
  const float* from;
  float* to;
  std::int64_t from_group, columns;
  template <typename V>
  __device__ std::int64_t column(std::int64_t unit) const {
    return unit;
  }
  template <typename V>
  __device__ void row(std::int64_t unit, std::int64_t at, std::int64_t row) const {
    auto value = V::load(from + row / from_group * columns + unit);
    const float coefficient = coefficients[row];
    for (int w = 0; w < V::kWidth; ++w) value.at[w] *= coefficient;
    V::store(to + at, value);
  }
};

/// Logit j of sample s, or minus infinity if that class is one of the targets.
inline __device__ float logit(const SampledProblem& p, std::int64_t s, std::int64_t j, const float* offsets,
                              const float* z) {
  float value = z[j];
  if (offsets != nullptr) value += offsets[j];
  if (!p.remove_hits) return value;
  const float id = p.sampled_ids == nullptr ? static_cast<float>(j) : p.sampled_ids[s * p.ids_stride + j];
  for (std::int64_t t = 0; t < p.num_true; ++t)
    if (p.targets[s * p.num_true + t] == id) value = -INFINITY;
  return value;
}

__global__ void __launch_bounds__(kThreads)
    softmax_loss_kernel(SampledProblem p, const float* offsets, float* true_logits, float* sampled_logits,
                        float* loss) {
  for_each_row(p.n, [&](std::int64_t s, int thread) {
    float* truth = true_logits + s * p.num_true;
    float* z = sampled_logits + s * p.sampled;
    float max = truth[0];
    for (std::int64_t t = 0; t < p.num_true; ++t) max = truth[t] > max ? truth[t] : max;
    for (std::int64_t j = thread; j < p.sampled; j += kWarp) {
      z[j] = logit(p, s, j, offsets, z);
      max = z[j] > max ? z[j] : max;
    }
    max = maximum_over_warp(max);
    double sum = 0.0;
    for (std::int64_t j = thread; j < p.sampled; j += kWarp) sum += static_cast<double>(expf(z[j] - max));
    sum = sum_over_warp(sum);
    const double share = 1.0 / static_cast<double>(p.num_true), top = static_cast<double>(max);
    double expected = 0.0;
    for (std::int64_t t = 0; t < p.num_true; ++t) {
      const double above = static_cast<double>(truth[t]) - top;
      sum += exp(above);
      expected += share * above;
    }
    const float factor = static_cast<float>(1.0 / sum);
    for (std::int64_t j = thread; j < p.sampled; j += kWarp) z[j] = expf(z[j] - max) * factor;
    __syncwarp();  // all threads have read the true logits
    for (std::int64_t t = thread; t < p.num_true; t += kWarp)
      truth[t] = static_cast<float>(exp(static_cast<double>(truth[t]) - top) / sum - share);
    if (thread == 0) loss[s] = static_cast<float>(log(sum) - expected);
  });
}

__global__ void __launch_bounds__(kThreads)
    sigmoid_loss_kernel(SampledProblem p, const float* offsets, float* true_logits, float* sampled_logits,
                        float* loss) {
  for_each_row(p.n, [&](std::int64_t s, int thread) {
    float* truth = true_logits + s * p.num_true;
    float* z = sampled_logits + s * p.sampled;
    double sum = 0.0;
    for (std::int64_t j = thread; j < p.sampled; j += kWarp) {
      const float x = logit(p, s, j, offsets, z);
      const float e = expf(x < 0.0F ? x : -x), below = e / (e + 1.0F);
      sum += static_cast<double>((x < 0.0F ? 0.0F : x) + log1pf(e));
      z[j] = x < 0.0F ? below : 1.0F - below;
    }
    const double share = 1.0 / static_cast<double>(p.num_true);
    for (std::int64_t t = thread; t < p.num_true; t += kWarp) {
      const double x = static_cast<double>(truth[t]), e = exp(x < 0.0 ? x : -x);
      sum += (x < 0.0 ? 0.0 : x) - x * share + log1p(e);
      truth[t] = static_cast<float>((x < 0.0 ? e : 1.0) / (1.0 + e) - share);
    }
    sum = sum_over_warp(sum);
    if (thread == 0) loss[s] = static_cast<float>(sum);
  });
}

class Sampling final : public SamplingKernels {
 public:
  std::size_t draw_bytes(std::int64_t) const override { return 0; }

  void draw_distinct(const Lane& lane, const ClassDistribution& distribution, const DrawKey& key,
                     std::int64_t sampled, void*, float* ids, double* tries) const override {
    launch(lane, "draw_distinct", draw_distinct_kernel, 1, kThreads, distribution, key, lane.step_word,
           sampled, ids, tries);
  }

  void draw_each(const Lane& lane, const ClassDistribution& distribution, const DrawKey& key, std::int64_t n,
                 std::int64_t each, std::uint32_t first_sample, float* ids) const override {
    for_each_element(lane, "draw_each", n * each, false,
                     DrawEach{distribution, key, lane.step_word, each, first_sample, ids});
  }

  void biases_of(const Lane& lane, const ClassDistribution& distribution, std::int64_t count,
                 const float* ids, const float* biases, std::int64_t sampled, const double* tries,
                 float* out) const override {
    for_each_element(lane, "biases_of", count, false,
                     BiasesOf{distribution, ids, biases, sampled, tries, out});
  }

  std::int64_t row_products(const Lane& lane, std::int64_t n, std::int64_t each, std::int64_t units,
                            std::int64_t rows, const float* x, const float* ids, const float* table,
                            const float* offsets, float* z) const override {
    if (n * each > 0)
      launch(lane, "row_products", row_products_kernel, row_blocks(n * each), kThreads, n * each, each, units,
             rows, x, ids, table, offsets, z);
    return -1;
  }

  void add_rows(const Lane& lane, std::int64_t n, std::int64_t each, std::int64_t units, std::int64_t rows,
                const float* coefficients, const float* ids, const float* table, bool add,
                float* dx) const override {
    map_columns(lane, "add_rows", n, units, wide_aligned(table, dx),
                AddRows{coefficients, ids, table, dx, each, units, rows, add});
  }

  void outer_rows(const Lane& lane, std::int64_t n, std::int64_t each, std::int64_t units,
                  const float* coefficients, const float* x, float* out) const override {
    map_columns(lane, "outer_rows", n * each, units, wide_aligned(x, out),
                ScaleRows{coefficients, x, out, each, units});
  }

  void scale_rows(const Lane& lane, std::int64_t n, std::int64_t columns, const float* x,
                  const float* factors, float* y) const override {
    map_columns(lane, "scale_rows", n, columns, wide_aligned(x, y), ScaleRows{factors, x, y, 1, columns});
  }

  void loss(const Lane& lane, const SampledProblem& p, const float* offsets, float* true_logits,
            float* sampled_logits, float* loss) const override {
    if (p.n > 0)
      launch(lane, "sampled_loss", p.loss == SampledLoss::softmax ? softmax_loss_kernel : sigmoid_loss_kernel,
             row_blocks(p.n), kThreads, p, offsets, true_logits, sampled_logits, loss);
  }
};

}  // namespace

const SamplingKernels& sampling_kernels() {
  static const Sampling kernels;
  return kernels;
}

}  // namespace lockstep::cuda
