// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Softmax and cross-entropy on a GPU: a group of threads per row, a warp for few classes and a block for
// many. Sums over a row are in double: thread t adds elements t, t + group, ..., and the threads are added
// along a tree. Losses are in double throughout. A NaN or infinite logit makes its row's loss NaN.
#include "kernels/loss.h"

#include "kernels/cuda_rows.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t kLossBlocks =
    1024;  ///< largest grid of a loss kernel; each block stores a partial sum

/// Stores the losses and correct rows of this block's groups in its partial sum: {loss, correct}.
template <int kGroup>
__device__ void write_partial(double loss, double hits, double* partial) {
  constexpr int kRows = Group<kGroup>::kRows;
  __shared__ double losses[kRows], counts[kRows];
  if (Group<kGroup>::thread() == 0) {
    losses[threadIdx.x / kGroup] = loss;
    counts[threadIdx.x / kGroup] = hits;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  loss = hits = 0.0;
  for (int i = 0; i < kRows; ++i) {
    loss += losses[i];
    hits += counts[i];
  }
  partial[2 * blockIdx.x] = loss;
  partial[2 * blockIdx.x + 1] = hits;
}

/// Runs in one block: thread t adds partial sums t, t + kThreads, ..., and the threads are added along a
/// tree.
__global__ void __launch_bounds__(kThreads)
    finish_loss_kernel(int blocks, const double* partial, double* loss_sum, std::int64_t* correct) {
  double loss = 0.0, hits = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kThreads) {
    loss += partial[2 * i];
    hits += partial[2 * i + 1];
  }
  loss = Group<kThreads>::sum(loss);
  hits = Group<kThreads>::sum(hits);
  if (threadIdx.x != 0) return;
  *loss_sum = loss;
  *correct = static_cast<std::int64_t>(hits);
}

template <int kGroup>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(std::int64_t rows, std::int64_t classes, const float* x, const std::int32_t* labels,
                         float gradient_scale, float* dx, double* partial) {
  using G = Group<kGroup>;
  double loss = 0.0, hits = 0.0;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const float* logits = x + row * classes;
    const std::int32_t label = labels[row];
    if (label < 0) {
      for (std::int64_t j = G::thread(); dx != nullptr && j < classes; j += kGroup)
        dx[row * classes + j] = 0.0F;
      return;
    }
    const Maximum top = G::maximum_of(logits, classes);
    const float label_logit = logits[label];
    const double sum =
        G::sum_of_exponentials(logits, classes, top.value);  // all threads have read the label's logit
    loss += log(sum) - (static_cast<double>(label_logit) - static_cast<double>(top.value));
    hits += top.index == label ? 1.0 : 0.0;
    if (dx == nullptr) return;
    float* gradient = dx + row * classes;
    const float factor = static_cast<float>(static_cast<double>(gradient_scale) / sum);
    for (std::int64_t j = G::thread(); j < classes; j += kGroup) {
      const float term = expf(logits[j] - top.value);
      // In double: for a confident prediction, softmax - 1 would lose precision in float32.
      gradient[j] = j == label ? static_cast<float>((static_cast<double>(term) - sum) / sum *
                                                    static_cast<double>(gradient_scale))
                               : term * factor;
    }
  });
  write_partial<kGroup>(loss, hits, partial);
}

template <int kGroup>
__global__ void __launch_bounds__(kThreads)
    dense_cross_entropy_kernel(std::int64_t rows, std::int64_t classes, const float* x, const float* labels,
                               float gradient_scale, float* dx, double* partial) {
  using G = Group<kGroup>;
  double loss = 0.0, hits = 0.0;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const float* logits = x + row * classes;
    const float* target = labels + row * classes;
    const Maximum top = G::maximum_of(logits, classes), wanted = G::maximum_of(target, classes);
    double mass = 0.0, expected = 0.0;
    for (std::int64_t j = G::thread(); j < classes; j += kGroup) {
      const double t = static_cast<double>(target[j]);
      mass += t;
      // A class with t = 0 adds nothing, however small its probability (0 * -inf).
      if (t != 0.0) expected += t * (static_cast<double>(logits[j]) - static_cast<double>(top.value));
    }
    mass = G::sum(mass);
    expected = G::sum(expected);
    const double sum = G::sum_of_exponentials(logits, classes, top.value);
    loss += mass * log(sum) - expected;
    hits += top.index >= 0 && top.index == wanted.index ? 1.0 : 0.0;
    if (dx == nullptr) return;
    float* gradient = dx + row * classes;
    const float factor = static_cast<float>(mass / sum);
    for (std::int64_t j = G::thread(); j < classes; j += kGroup)
      gradient[j] = (expf(logits[j] - top.value) * factor - target[j]) * gradient_scale;
  });
  write_partial<kGroup>(loss, hits, partial);
}

template <int kGroup>
__global__ void __launch_bounds__(kThreads)
    softmax_kernel(std::int64_t rows, std::int64_t channels, const float* x, float* y) {
  using G = Group<kGroup>;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const float* from = x + row * channels;
    const float max = G::maximum_of(from, channels).value;
    const float factor = static_cast<float>(1.0 / G::sum_of_exponentials(from, channels, max));
    for (std::int64_t j = G::thread(); j < channels; j += kGroup)
      y[row * channels + j] = expf(from[j] - max) * factor;
  });
}

template <int kGroup>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_kernel(std::int64_t rows, std::int64_t channels, const float* y, const float* dy,
                            float* dx) {
  using G = Group<kGroup>;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const float* out = y + row * channels;
    const float* gradient = dy + row * channels;
    double dot = 0.0;
    for (std::int64_t j = G::thread(); j < channels; j += kGroup)
      dot += static_cast<double>(out[j] * gradient[j]);
    const float mean = static_cast<float>(G::sum(dot));
    for (std::int64_t j = G::thread(); j < channels; j += kGroup)
      dx[row * channels + j] = out[j] * (gradient[j] - mean);
  });
}

template <int kGroup>
__global__ void __launch_bounds__(kThreads)
    log_softmax_kernel(std::int64_t rows, std::int64_t channels, const float* x, float* y) {
  using G = Group<kGroup>;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const float* from = x + row * channels;
    const float max = G::maximum_of(from, channels).value;
    const float log_sum = static_cast<float>(log(G::sum_of_exponentials(from, channels, max)));
    for (std::int64_t j = G::thread(); j < channels; j += kGroup)
      y[row * channels + j] = (from[j] - max) - log_sum;
  });
}

template <int kGroup>
__global__ void __launch_bounds__(kThreads)
    log_softmax_backward_kernel(std::int64_t rows, std::int64_t channels, const float* y, const float* dy,
                                float* dx) {
  using G = Group<kGroup>;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    double total = 0.0;
    for (std::int64_t j = G::thread(); j < channels; j += kGroup)
      total += static_cast<double>(dy[row * channels + j]);
    const float sum = static_cast<float>(G::sum(total));
    for (std::int64_t j = G::thread(); j < channels; j += kGroup) {
      const std::int64_t at = row * channels + j;
      dx[at] = dy[at] - expf(y[at]) * sum;
    }
  });
}

class Loss final : public LossKernels {
 public:
  void softmax_cross_entropy(const Lane& lane, std::int64_t rows, std::int64_t classes, const float* x,
                             const std::int32_t* labels, float gradient_scale, float* dx, double* loss_sum,
                             std::int64_t* correct) const override {
    double* partial = scratch_of(lane);
    const int blocks =
        launch_rows(lane, "softmax_cross_entropy", rows, classes, kLossBlocks, cross_entropy_kernel<kWarp>,
                    cross_entropy_kernel<kThreads>, x, labels, gradient_scale, dx, partial);
    launch(lane, "softmax_cross_entropy", finish_loss_kernel, 1, kThreads, blocks, partial, loss_sum,
           correct);
  }

  void softmax_cross_entropy_dense(const Lane& lane, std::int64_t rows, std::int64_t classes, const float* x,
                                   const float* labels, float gradient_scale, float* dx, double* loss_sum,
                                   std::int64_t* correct) const override {
    double* partial = scratch_of(lane);
    const int blocks = launch_rows(lane, "softmax_cross_entropy_dense", rows, classes, kLossBlocks,
                                   dense_cross_entropy_kernel<kWarp>, dense_cross_entropy_kernel<kThreads>, x,
                                   labels, gradient_scale, dx, partial);
    launch(lane, "softmax_cross_entropy_dense", finish_loss_kernel, 1, kThreads, blocks, partial, loss_sum,
           correct);
  }

  void softmax(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* x,
               float* y) const override {
    if (rows > 0)
      launch_rows(lane, "softmax", rows, channels, kMaxBlocks, softmax_kernel<kWarp>,
                  softmax_kernel<kThreads>, x, y);
  }

  void softmax_backward(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* y,
                        const float* dy, float* dx) const override {
    if (rows > 0)
      launch_rows(lane, "softmax_backward", rows, channels, kMaxBlocks, softmax_backward_kernel<kWarp>,
                  softmax_backward_kernel<kThreads>, y, dy, dx);
  }

  void log_softmax(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* x,
                   float* y) const override {
    if (rows > 0)
      launch_rows(lane, "log_softmax", rows, channels, kMaxBlocks, log_softmax_kernel<kWarp>,
                  log_softmax_kernel<kThreads>, x, y);
  }

  void log_softmax_backward(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* y,
                            const float* dy, float* dx) const override {
    if (rows > 0)
      launch_rows(lane, "log_softmax_backward", rows, channels, kMaxBlocks,
                  log_softmax_backward_kernel<kWarp>, log_softmax_backward_kernel<kThreads>, y, dy, dx);
  }
};

}  // namespace

const LossKernels& loss_kernels() {
  static const Loss kernels;
  return kernels;
}

}  // namespace lockstep::cuda
