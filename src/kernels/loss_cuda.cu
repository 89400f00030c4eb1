// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Softmax and cross-entropy on a GPU: a group of threads per row, a warp for few classes and a block for
// many. Sums over a row are in double: thread t adds packs t, t + group, ... (cuda_rows.h), and the threads
// are added along a tree. Losses are in double throughout. A NaN or infinite logit makes its row's loss NaN.
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

/// A thread's part of a row: the largest logit so far, its place, and the sum of exp(x - largest).
struct RunningSum {
  static constexpr int kNone = INT32_MAX;
  float largest = -INFINITY;
  int place = kNone;
  double sum = 0.0;

  /// Adds kPacks packs, of which `count` are there. A new maximum scales the sum, once for all of them.
  template <int kPacks, int kWidth>
  __device__ void add(const Pack<kWidth>* packs, int count, const int* places) {
    float top = -INFINITY;
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      for (int i = 0; i < kWidth; ++i)
        if (p < count) top = fmaxf(top, packs[p].at[i]);  // ignores NaN
    if (top > largest) {
      sum *= exp(static_cast<double>(largest) - static_cast<double>(top));  // 0 at first
      largest = top;
      place = kNone;
#pragma unroll
      for (int p = kPacks - 1; p >= 0; --p)
        for (int i = kWidth - 1; i >= 0; --i)
          if (p < count && packs[p].at[i] == top) place = places[p] + i;
    }
    const float base = largest == -INFINITY ? 0.0F : largest;  // -inf - -inf would be NaN
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      for (int i = 0; i < kWidth; ++i)
        if (p < count) sum += static_cast<double>(expf(packs[p].at[i] - base));
  }
};

/// The numbers of a row: its maximum and the sum of exp(x - maximum), to all threads of the group.
struct RowSum {
  Maximum top;
  double sum;
};
template <int kGroup>
__device__ RowSum merged(const RunningSum& mine, float first) {
  using G = Group<kGroup>;
  Maximum top = G::maximum({mine.largest, mine.place});
  if (std::isnan(first)) top = {first, -1};
  const double factor = exp(static_cast<double>(mine.largest) - static_cast<double>(top.value));
  return {top, G::sum(mine.sum * factor)};
}

/// The logits of a thread that are read ahead, in packs of 16 bytes. A row that they hold is read once; a
/// longer one is read again for its gradient.
constexpr int kLogitsAhead = 16;

/// This thread's packs first, first + kGroup, ... of a row: how many there are, and their places in the row.
template <int kGroup, int kPacks, typename Row>
__device__ int packs_from(const Row& row, int first, int* places) {
  int count = 0;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    places[p] = row.place(first + p * kGroup);
    count += first + p * kGroup < row.packs() ? 1 : 0;
  }
  return count;
}

template <typename T, int kGroup>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(std::int64_t rows, std::int64_t columns, bool wide, const T* x,
                         const std::int32_t* labels, float gradient_scale, T* dx, double* partial) {
  using G = Group<kGroup>;
  using V = Whole<T>;
  constexpr int kAhead = kLogitsAhead / V::kWidth;
  const int classes = static_cast<int>(columns);
  double loss = 0.0, hits = 0.0;
  for_each_row<kGroup>(rows, [&](std::int64_t number) {
    const RowPacks<V> row(number, classes, wide);
    const T* logits = x + number * classes;
    const std::int32_t label = labels[number];
    if (label < 0) {
      for (int p = G::thread(); dx != nullptr && p < row.packs(); p += kGroup)
        row.store(dx, p, Pack<V::kWidth>{});
      return;
    }
    const float label_logit = widened(logits[label]), first_logit = widened(logits[0]);
    Pack<V::kWidth> packs[kAhead];
    int places[kAhead], count = 0;
    const auto load = [&](int first) {
      count = packs_from<kGroup, kAhead>(row, first, places);
#pragma unroll
      for (int p = 0; p < kAhead; ++p)
        if (p < count) packs[p] = row.load(x, first + p * kGroup, -INFINITY);
    };
    RunningSum running;
    int first = G::thread();
    for (; first < row.packs(); first += kGroup * kAhead) {
      load(first);
      running.add<kAhead>(packs, count, places);
    }
    const auto [top, sum] = merged<kGroup>(running, first_logit);  // all threads have read these logits
    loss += log(sum) - (static_cast<double>(label_logit) - static_cast<double>(top.value));
    hits += top.index == label ? 1.0 : 0.0;
    if (dx == nullptr) return;
    const float factor = static_cast<float>(static_cast<double>(gradient_scale) / sum);
    // In double: for a confident prediction, softmax - 1 would lose precision in float32.
    const float at_label = static_cast<float>((static_cast<double>(expf(label_logit - top.value)) - sum) /
                                              sum * static_cast<double>(gradient_scale));
    const bool held = row.packs() <= kGroup * kAhead;
    for (first = G::thread(); first < row.packs(); first += kGroup * kAhead) {
      if (!held) load(first);
#pragma unroll
      for (int p = 0; p < kAhead; ++p) {
        if (p >= count) break;
        for (int i = 0; i < V::kWidth; ++i)
          packs[p].at[i] = places[p] + i == label ? at_label : expf(packs[p].at[i] - top.value) * factor;
        row.store(dx, first + p * kGroup, packs[p]);
      }
    }
  });
  write_partial<kGroup>(loss, hits, partial);
}

template <typename T, int kGroup>
__global__ void __launch_bounds__(kThreads)
    dense_cross_entropy_kernel(std::int64_t rows, std::int64_t columns, bool wide, const T* x,
                               const float* labels, float gradient_scale, T* dx, double* partial) {
  using G = Group<kGroup>;
  using V = Whole<T>;
  constexpr int kOnce = 1;
  const int classes = static_cast<int>(columns);
  double loss = 0.0, hits = 0.0;
  for_each_row<kGroup>(rows, [&](std::int64_t number) {
    const RowPacks<V> row(number, classes, wide);
    const float first_logit = widened(x[number * classes]), first_target = labels[number * classes];
    RunningSum running;
    Maximum wanted{-INFINITY, RunningSum::kNone};
    double mass = 0.0, dot = 0.0;
    for (int pack = G::thread(); pack < row.packs(); pack += kGroup) {
      const Pack<V::kWidth> logits = row.load(x, pack, -INFINITY), targets = row.load(labels, pack, 0.0F);
      const int place = row.place(pack);
      running.add<kOnce>(&logits, kOnce, &place);
      for (int i = 0; i < V::kWidth; ++i) {
        const double t = static_cast<double>(targets.at[i]);
        mass += t;
        // A class with t = 0 adds nothing, however small its probability (0 * -inf).
        if (t != 0.0) dot += t * static_cast<double>(logits.at[i]);
        const bool inside = place + i >= 0 && place + i < classes;
        if (const Maximum next{targets.at[i], place + i}; inside && larger(next, wanted)) wanted = next;
      }
    }
    const auto [top, sum] = merged<kGroup>(running, first_logit);
    wanted = G::maximum(wanted);
    mass = G::sum(mass);
    dot = G::sum(dot);
    loss += mass * (log(sum) + static_cast<double>(top.value)) - dot;
    hits += top.index >= 0 && top.index == wanted.index && !std::isnan(first_target) ? 1.0 : 0.0;
    if (dx == nullptr) return;
    const float factor = static_cast<float>(mass / sum);
    for (int pack = G::thread(); pack < row.packs(); pack += kGroup) {
      Pack<V::kWidth> logits = row.load(x, pack, -INFINITY);
      const Pack<V::kWidth> targets = row.load(labels, pack, 0.0F);
      for (int i = 0; i < V::kWidth; ++i)
        logits.at[i] = (expf(logits.at[i] - top.value) * factor - targets.at[i]) * gradient_scale;
      row.store(dx, pack, logits);
    }
  });
  write_partial<kGroup>(loss, hits, partial);
}

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
          launch_rows(lane, "softmax_cross_entropy", rows, classes, kLossBlocks,
                      cross_entropy_kernel<T, kWarp>, cross_entropy_kernel<T, kThreads>,
                      wide_aligned(logits, gradient), logits, labels, gradient_scale, gradient, partial);
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
