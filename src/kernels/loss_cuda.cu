// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Softmax and cross-entropy on a GPU: a group of threads per row, a warp for few classes and a block for
// many. Sums over a row are in double: thread t adds packs t, t + group, ... (cuda_rows.h), and the threads
// are added along a tree. Losses are in double throughout. A NaN or infinite logit makes its row's loss NaN.
#include "kernels/loss.h"

#include "kernels/cross_entropy_cuda.h"
#include "kernels/cuda_rows.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

/// The largest number of the group's row x.
template <int kGroup, typename V>
__device__ float maximum_of(const float* x, std::int64_t count) {
  float best = -INFINITY;
  for_each_piece<kGroup, V>(count, [&](std::int64_t j) {
    const auto value = V::load(x + j);
    for (int k = 0; k < V::kWidth; ++k) best = fmaxf(best, value.at[k]);  // ignores NaN
  });
  const float first = x[0];
  best = Group<kGroup>::maximum({best, 0}).value;
  return std::isnan(first) ? first : best;
}

template <int kGroup, typename V>
__device__ double sum_of_exponentials(const float* x, std::int64_t count, float max) {
  double sum = 0.0;
  for_each_piece<kGroup, V>(count, [&](std::int64_t j) {
    const auto value = V::load(x + j);
    for (int k = 0; k < V::kWidth; ++k) sum += static_cast<double>(expf(value.at[k] - max));
  });
  return Group<kGroup>::sum(sum);
}

template <int kGroup, typename V>
__global__ void __launch_bounds__(kThreads)
    softmax_kernel(std::int64_t rows, std::int64_t channels, const float* x, float* y) {
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const float* from = x + row * channels;
    const float max = maximum_of<kGroup, V>(from, channels);
    const float factor = static_cast<float>(1.0 / sum_of_exponentials<kGroup, V>(from, channels, max));
    for_each_piece<kGroup, V>(channels, [&](std::int64_t j) {
      auto value = V::load(from + j);
      for (int k = 0; k < V::kWidth; ++k) value.at[k] = expf(value.at[k] - max) * factor;
      V::store(y + row * channels + j, value);
    });
  });
}

template <int kGroup, typename V>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_kernel(std::int64_t rows, std::int64_t channels, const float* y, const float* dy,
                            float* dx) {
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const float* out = y + row * channels;
    const float* gradient = dy + row * channels;
    double dot = 0.0;
    for_each_piece<kGroup, V>(channels, [&](std::int64_t j) {
      const auto own = V::load(out + j), other = V::load(gradient + j);
      for (int k = 0; k < V::kWidth; ++k) dot += static_cast<double>(own.at[k] * other.at[k]);
    });
    const float mean = static_cast<float>(Group<kGroup>::sum(dot));
    for_each_piece<kGroup, V>(channels, [&](std::int64_t j) {
      auto value = V::load(gradient + j);
      const auto own = V::load(out + j);
      for (int k = 0; k < V::kWidth; ++k) value.at[k] = own.at[k] * (value.at[k] - mean);
      V::store(dx + row * channels + j, value);
    });
  });
}

template <int kGroup, typename V>
__global__ void __launch_bounds__(kThreads)
    log_softmax_kernel(std::int64_t rows, std::int64_t channels, const float* x, float* y) {
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const float* from = x + row * channels;
    const float max = maximum_of<kGroup, V>(from, channels);
    const float log_sum = static_cast<float>(log(sum_of_exponentials<kGroup, V>(from, channels, max)));
    for_each_piece<kGroup, V>(channels, [&](std::int64_t j) {
      auto value = V::load(from + j);
      for (int k = 0; k < V::kWidth; ++k) value.at[k] = (value.at[k] - max) - log_sum;
      V::store(y + row * channels + j, value);
    });
  });
}

template <int kGroup, typename V>
__global__ void __launch_bounds__(kThreads)
    log_softmax_backward_kernel(std::int64_t rows, std::int64_t channels, const float* y, const float* dy,
                                float* dx) {
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    double total = 0.0;
    for_each_piece<kGroup, V>(channels, [&](std::int64_t j) {
      const auto gradient = V::load(dy + row * channels + j);
      for (int k = 0; k < V::kWidth; ++k) total += static_cast<double>(gradient.at[k]);
    });
    const float sum = static_cast<float>(Group<kGroup>::sum(total));
    for_each_piece<kGroup, V>(channels, [&](std::int64_t j) {
      const std::int64_t at = row * channels + j;
      const auto out = V::load(y + at), gradient = V::load(dy + at);
      Pack<V::kWidth> value;
      for (int k = 0; k < V::kWidth; ++k) value.at[k] = gradient.at[k] - expf(out.at[k]) * sum;
      V::store(dx + at, value);
    });
  });
}

void check_classes(std::int64_t classes) {
  require(classes < (std::int64_t{1} << 30), "a row of logits has too many classes for 32-bit places");
}

class Loss final : public LossKernels {
 public:
  void softmax_cross_entropy(const Lane& lane, std::int64_t rows, std::int64_t classes, ConstData x,
                             const std::int32_t* labels, float gradient_scale, Data dx, double* loss_sum,
                             std::int64_t* correct) const override {
    check_classes(classes);
    double* partial = scratch_of(lane);
    with_type(x.type(), [&]<typename T>(T) {
      const T* logits = x.as<T>();
      T* gradient = dx.as<T>();
      const int blocks =
          launch_cross_entropy<T>(lane, rows, classes, {logits, labels, gradient_scale, gradient, partial});
      launch(lane, "softmax_cross_entropy", finish_loss_kernel, 1, kThreads, blocks, partial, loss_sum,
             correct);
    });
  }

  void softmax_cross_entropy_dense(const Lane& lane, std::int64_t rows, std::int64_t classes, ConstData x,
                                   const float* labels, float gradient_scale, Data dx, double* loss_sum,
                                   std::int64_t* correct) const override {
    check_classes(classes);
    double* partial = scratch_of(lane);
    with_type(x.type(), [&]<typename T>(T) {
      const T* logits = x.as<T>();
      T* gradient = dx.as<T>();
      const int blocks = launch_rows(
          lane, "softmax_cross_entropy_dense", rows, classes, kLossBlocks,
          dense_cross_entropy_kernel<T, kWarp>, dense_cross_entropy_kernel<T, kThreads>,
          wide_aligned(logits, gradient, labels), logits, labels, gradient_scale, gradient, partial);
      launch(lane, "softmax_cross_entropy_dense", finish_loss_kernel, 1, kThreads, blocks, partial, loss_sum,
             correct);
    });
  }

  void softmax(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* x,
               float* y) const override {
    if (rows <= 0) return;
    with_pieces<float>(channels, wide_aligned(x, y), [&]<typename V>(V) {
      launch_rows(lane, "softmax", rows, channels, kMaxBlocks, softmax_kernel<kWarp, V>,
                  softmax_kernel<kThreads, V>, x, y);
    });
  }

  void softmax_backward(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* y,
                        const float* dy, float* dx) const override {
    if (rows <= 0) return;
    with_pieces<float>(channels, wide_aligned(y, dy, dx), [&]<typename V>(V) {
      launch_rows(lane, "softmax_backward", rows, channels, kMaxBlocks, softmax_backward_kernel<kWarp, V>,
                  softmax_backward_kernel<kThreads, V>, y, dy, dx);
    });
  }

  void log_softmax(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* x,
                   float* y) const override {
    if (rows <= 0) return;
    with_pieces<float>(channels, wide_aligned(x, y), [&]<typename V>(V) {
      launch_rows(lane, "log_softmax", rows, channels, kMaxBlocks, log_softmax_kernel<kWarp, V>,
                  log_softmax_kernel<kThreads, V>, x, y);
    });
  }

  void log_softmax_backward(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* y,
                            const float* dy, float* dx) const override {
    if (rows <= 0) return;
    with_pieces<float>(channels, wide_aligned(y, dy, dx), [&]<typename V>(V) {
      launch_rows(lane, "log_softmax_backward", rows, channels, kMaxBlocks,
                  log_softmax_backward_kernel<kWarp, V>, log_softmax_backward_kernel<kThreads, V>, y, dy, dx);
    });
  }
};

}  // namespace

const LossKernels& loss_kernels() {
  static const Loss kernels;
  return kernels;
}

}  // namespace lockstep::cuda
