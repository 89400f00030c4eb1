// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The losses of loss_terms.h on a GPU: elements by single threads, a block per row, a block per sample. Each
// thread adds its terms in order, a block's threads are added along a tree, and a last kernel adds the
// blocks. The shape alone fixes the order.
#include "kernels/loss_terms.h"

#include <cmath>

#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"
#include "kernels/penalty_table.h"

#define LOCKSTEP_FORMULA inline __device__
#include "kernels/loss_formulas.h"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t kLossBlocks = 1024;  ///< largest grid; each block stores a partial sum {loss, correct}

struct Math {
  static __device__ double abs(double x) { return std::fabs(x); }
  static __device__ double exp(double x) { return std::exp(x); }
  static __device__ double log(double x) { return std::log(x); }
  static __device__ double log1p(double x) { return std::log1p(x); }
  static __device__ double pow(double x, double y) { return std::pow(x, y); }
  static __device__ double tanh(double x) { return std::tanh(x); }
};

/// Returns the sum over the block's threads to all of them.
inline __device__ double block_sum(double value) {
  __shared__ double values[kThreads];
  __syncthreads();  // for the previous call
  values[threadIdx.x] = value;
  __syncthreads();
  for (unsigned int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) values[threadIdx.x] += values[threadIdx.x + step];
    __syncthreads();
  }
  return values[0];
}

/// The position of the largest of x, the lowest of equal ones, for all threads; -1 if the first value is NaN.
inline __device__ std::int64_t block_largest(const float* x, std::int64_t count) {
  __shared__ std::int64_t best[kThreads];
  std::int64_t mine = -1;
  for (std::int64_t j = threadIdx.x; j < count; j += kThreads)
    if (mine < 0 ? x[j] == x[j] : x[j] > x[mine]) mine = j;
  __syncthreads();
  best[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      const std::int64_t a = best[threadIdx.x], b = best[threadIdx.x + step];
      if (b >= 0 && (a < 0 || x[b] > x[a] || (x[b] == x[a] && b < a))) best[threadIdx.x] = b;
    }
    __syncthreads();
  }
  return std::isnan(x[0]) ? -1 : best[0];
}

inline __device__ RowSoftmax block_softmax(const float* x, std::int64_t count, std::int64_t top) {
  const double max = static_cast<double>(x[top < 0 ? 0 : top]);
  double sum = 0.0;
  for (std::int64_t j = threadIdx.x; j < count; j += kThreads)
    sum += Math::exp(static_cast<double>(x[j]) - max);
  return {max, Math::log(block_sum(sum))};
}

inline __device__ double target(const std::int32_t* indices, const float* dense, std::int64_t position,
                                std::int64_t j, std::int64_t classes) {
  if (indices != nullptr) return indices[position] == j ? 1.0 : 0.0;
  return static_cast<double>(dense[position * classes + j]);
}

__global__ void __launch_bounds__(kThreads)
    element_kernel(ElementLossOptions options, std::int64_t count, const float* x, const float* labels,
                   float gradient_scale, float* dx, double* partial) {
  double total = 0.0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t e = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; e < count;
       e += step) {
    const LossAndSlope term = element_at<Math>(options, x, labels, e);
    total += term.loss;
    if (dx != nullptr) dx[e] = static_cast<float>(term.slope * static_cast<double>(gradient_scale));
  }
  total = block_sum(total);
  if (threadIdx.x != 0) return;
  partial[2 * blockIdx.x] = total;
  partial[2 * blockIdx.x + 1] = 0.0;
}

__global__ void __launch_bounds__(kThreads) penalty_kernel(double l1, double l2, std::int64_t count,
                                                           const float* w, float* gradient, double* partial) {
  double total = 0.0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += step) {
    const LossAndSlope term = penalty_term(l1, l2, static_cast<double>(w[i]));
    total += term.loss;
    gradient[i] += static_cast<float>(term.slope);
  }
  total = block_sum(total);
  if (threadIdx.x != 0) return;
  partial[2 * blockIdx.x] = total;
  partial[2 * blockIdx.x + 1] = 0.0;
}

/// A block of threads per block of the table.
__global__ void __launch_bounds__(kThreads)
    penalty_table_kernel(const PenaltyBlock* blocks, const float* w, float* gradient, double* sums) {
  const PenaltyBlock block = blocks[blockIdx.x];
  double total = 0.0;
  for (std::int64_t i = block.first + threadIdx.x; i < block.first + block.count; i += kThreads) {
    const LossAndSlope term = penalty_term(block.l1, block.l2, static_cast<double>(w[i]));
    total += term.loss;
    if (gradient != nullptr) gradient[i] += static_cast<float>(term.slope);
  }
  if (sums == nullptr) return;
  total = block_sum(total);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kThreads)
    row_kernel(RowLossOptions options, std::int64_t rows, std::int64_t classes, const float* x,
               const std::int32_t* indices, const float* dense, float gradient_scale, float* dx,
               double* partial) {
  double total = 0.0, hits = 0.0;
  for (std::int64_t i = blockIdx.x; i < rows; i += gridDim.x) {
    const float* logits = x + i * classes;
    float* gradient = dx == nullptr ? nullptr : dx + i * classes;
    const double of_sample = weight_of(options.samples, i);
    if (of_sample == 0 || (indices != nullptr && indices[i] < 0)) {
      for (std::int64_t j = threadIdx.x; gradient != nullptr && j < classes; j += kThreads)
        gradient[j] = 0.0F;
      continue;
    }
    const std::int64_t top = block_largest(logits, classes);
    const std::int64_t label = indices != nullptr ? indices[i] : block_largest(dense + i * classes, classes);
    hits += label >= 0 && top == label ? 1.0 : 0.0;
    double weight = of_sample;
    if (options.weights != nullptr) {
      double of_class = 0.0;
      for (std::int64_t j = threadIdx.x; j < classes; j += kThreads)
        of_class += target(indices, dense, i, j, classes) * static_cast<double>(options.weights[j]);
      weight *= block_sum(of_class);
    }
    const double scale = weight * static_cast<double>(gradient_scale);
    const RowSoftmax softmax = block_softmax(logits, classes, top);
    const auto log_p = [&](std::int64_t j) {
      return softmax.log_probability<Math>(static_cast<double>(logits[j]));
    };
    if (options.focal) {
      double rest = 0.0;
      for (std::int64_t j = threadIdx.x; j < classes; j += kThreads)
        if (j != label) rest += Math::exp(log_p(j));
      rest = block_sum(rest);
      const LossAndSlope term = focal_row<Math>(options, log_p(label), rest);
      total += weight * term.loss;
      for (std::int64_t j = threadIdx.x; gradient != nullptr && j < classes; j += kThreads)
        gradient[j] = static_cast<float>(scale * term.slope * (j == label ? rest : -Math::exp(log_p(j))));
      continue;
    }
    const auto smoothed = [&](std::int64_t j) {
      return target(indices, dense, i, j, classes) * (1 - options.smoothing) +
             options.smoothing / static_cast<double>(classes);
    };
    double loss = 0.0, mass = 0.0;
    for (std::int64_t j = threadIdx.x; j < classes; j += kThreads) {
      mass += smoothed(j);
      loss += row_term<Math>(options, smoothed(j), log_p(j));
    }
    mass = block_sum(mass);
    loss = block_sum(loss);
    total += weight * (softmax.log_sum == softmax.log_sum ? loss : softmax.log_sum);
    for (std::int64_t j = threadIdx.x; gradient != nullptr && j < classes; j += kThreads)
      gradient[j] = static_cast<float>((mass * Math::exp(log_p(j)) - smoothed(j)) * scale);
  }
  if (threadIdx.x != 0) return;
  partial[2 * blockIdx.x] = total;
  partial[2 * blockIdx.x + 1] = hits;
}

/// Probabilities of the classes at one position, computed by one thread.
struct Probability {
  __device__ Probability(const DiceOptions& options, const float* logits, std::int64_t classes)
      : is_softmax(options.softmax), x(logits), softmax{0.0, 0.0} {
    if (!is_softmax) return;
    softmax.max = static_cast<double>(x[0]);
    for (std::int64_t c = 1; c < classes; ++c)
      if (static_cast<double>(x[c]) > softmax.max) softmax.max = static_cast<double>(x[c]);
    double sum = 0.0;
    for (std::int64_t c = 0; c < classes; ++c) sum += Math::exp(static_cast<double>(x[c]) - softmax.max);
    softmax.log_sum = Math::log(sum);
  }
  __device__ double operator()(std::int64_t c) const {
    const double value = static_cast<double>(x[c]);
    return is_softmax ? Math::exp(softmax.log_probability<Math>(value)) : sigmoid<Math>(value);
  }
  bool is_softmax;
  const float* x;
  RowSoftmax softmax;
};

__global__ void __launch_bounds__(kThreads)
    dice_kernel(DiceOptions options, std::int64_t n, std::int64_t positions, std::int64_t classes,
                const float* outputs, const std::int32_t* all_indices, const float* all_dense,
                float gradient_scale, float* d_outputs, double* partial) {
  __shared__ double at_label[kMostDiceClasses], everywhere[kMostDiceClasses];
  double total = 0.0;
  for (std::int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    const std::int64_t first = i * positions;
    const float* x = outputs + first * classes;
    const std::int32_t* indices = all_indices == nullptr ? nullptr : all_indices + first;
    const float* dense = all_dense == nullptr ? nullptr : all_dense + first * classes;
    const double weight = weight_of(options.samples, i);
    if (weight == 0) {  // of a whole block's sample
      for (std::int64_t j = threadIdx.x; d_outputs != nullptr && j < positions * classes; j += kThreads)
        d_outputs[first * classes + j] = 0.0F;
      continue;
    }
    double counted = 0.0, loss = 0.0;
    for (std::int64_t c = 0; c < classes; ++c) {
      double both = 0.0, sum = 0.0, labels = 0.0;
      for (std::int64_t p = threadIdx.x; p < positions; p += kThreads) {
        if (indices != nullptr && indices[p] < 0) continue;
        if (c == 0) counted += 1.0;
        const double value = Probability(options, x + p * classes, classes)(c);
        const double t = target(indices, dense, p, c, classes);
        both += value * t;
        sum += value;
        labels += t;
      }
      both = block_sum(both);
      sum = block_sum(sum);
      labels = block_sum(labels);
      const DiceClass found = dice_class(both, sum, labels, options.smooth);
      loss += found.loss;
      if (threadIdx.x != 0) continue;
      at_label[c] = found.at_label;
      everywhere[c] = found.everywhere;
    }
    counted = block_sum(counted);  // also waits until the classes' slopes are stored
    if (counted > 0) total += weight * (loss / static_cast<double>(classes));
    const double share = weight * static_cast<double>(gradient_scale) / static_cast<double>(classes);
    for (std::int64_t p = threadIdx.x; d_outputs != nullptr && p < positions; p += kThreads) {
      float* to = d_outputs + (first + p) * classes;
      if (indices != nullptr && indices[p] < 0) {
        for (std::int64_t c = 0; c < classes; ++c) to[c] = 0.0F;
        continue;
      }
      const Probability probability(options, x + p * classes, classes);
      const auto slope = [&](std::int64_t c) {
        return at_label[c] * target(indices, dense, p, c, classes) + everywhere[c];
      };
      double mean = 0.0;
      for (std::int64_t c = 0; c < classes && options.softmax; ++c) mean += probability(c) * slope(c);
      for (std::int64_t c = 0; c < classes; ++c) {
        const double value = probability(c);
        to[c] =
            static_cast<float>(share * value * (options.softmax ? slope(c) - mean : slope(c) * (1 - value)));
      }
    }
    __syncthreads();  // all threads have read the slopes
  }
  if (threadIdx.x != 0) return;
  partial[2 * blockIdx.x] = total;
  partial[2 * blockIdx.x + 1] = 0.0;
}

__global__ void __launch_bounds__(kThreads)
    finish_kernel(int blocks, const double* partial, double* loss_sum, std::int64_t* correct) {
  double loss = 0.0, hits = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kThreads) {
    loss += partial[2 * i];
    hits += partial[2 * i + 1];
  }
  loss = block_sum(loss);
  hits = block_sum(hits);
  if (threadIdx.x != 0) return;
  *loss_sum = loss;
  if (correct != nullptr) *correct = static_cast<std::int64_t>(hits);
}

/// The number of blocks for `pieces` pieces: at least one, which writes zeros.
int loss_blocks(std::int64_t pieces) {
  return static_cast<int>(pieces < 1 ? 1 : pieces < kLossBlocks ? pieces : kLossBlocks);
}

class LossTerms final : public LossTermKernels, public PenaltyTableKernels {
 public:
  void element(const Lane& lane, const ElementLossOptions& options, std::int64_t count, const float* x,
               const float* labels, float gradient_scale, float* dx, double* loss_sum) const override {
    const int blocks = loss_blocks((count + kThreads - 1) / kThreads);
    launch(lane, "element_loss", element_kernel, static_cast<unsigned int>(blocks), kThreads, options, count,
           x, labels, gradient_scale, dx, scratch_of(lane));
    finish(lane, blocks, loss_sum, nullptr);
  }

  void row(const Lane& lane, const RowLossOptions& options, std::int64_t rows, std::int64_t classes,
           const float* x, const std::int32_t* indices, const float* dense, float gradient_scale, float* dx,
           double* loss_sum, std::int64_t* correct) const override {
    const int blocks = loss_blocks(rows);
    launch(lane, "row_loss", row_kernel, static_cast<unsigned int>(blocks), kThreads, options, rows, classes,
           x, indices, dense, gradient_scale, dx, scratch_of(lane));
    finish(lane, blocks, loss_sum, correct);
  }

  void dice(const Lane& lane, const DiceOptions& options, std::int64_t n, std::int64_t positions,
            std::int64_t classes, const float* x, const std::int32_t* indices, const float* dense,
            float gradient_scale, float* dx, double* loss_sum) const override {
    const int blocks = loss_blocks(n);
    launch(lane, "dice_loss", dice_kernel, static_cast<unsigned int>(blocks), kThreads, options, n, positions,
           classes, x, indices, dense, gradient_scale, dx, scratch_of(lane));
    finish(lane, blocks, loss_sum, nullptr);
  }

  void penalty(const Lane& lane, double l1, double l2, std::int64_t count, const float* w, float* gradient,
               double* sum) const override {
    const int blocks = loss_blocks((count + kThreads - 1) / kThreads);
    launch(lane, "penalty", penalty_kernel, static_cast<unsigned int>(blocks), kThreads, l1, l2, count, w,
           gradient, scratch_of(lane));
    finish(lane, blocks, sum, nullptr);
  }

  void penalties(const Lane& lane, std::int64_t num_blocks, const PenaltyBlock* blocks, const float* w,
                 float* gradient, double* sums) const override {
    if (num_blocks == 0) return;
    launch(lane, "penalties", penalty_table_kernel, static_cast<unsigned int>(num_blocks), kThreads, blocks,
           w, gradient, sums);
  }

 private:
  static void finish(const Lane& lane, int blocks, double* loss_sum, std::int64_t* correct) {
    launch(lane, "finish_loss", finish_kernel, 1U, kThreads, blocks, scratch_of(lane), loss_sum, correct);
  }
};

}  // namespace

const LossTermKernels& loss_term_kernels() {
  static const LossTerms kernels;
  return kernels;
}

}  // namespace lockstep::cuda
