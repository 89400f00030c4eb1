// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Softmax and cross-entropy on the CPU, per instruction-set level (isa.h). Sums over a row use 16 float32
// columns (element j in column j % 16), which are then added in order in double. Losses are in double
// throughout. A NaN or infinite logit makes its row's loss NaN.
#include "kernels/loss.h"

#include "kernels/isa.h"
#include "kernels/vec_math.h"
#include "kernels/vec_sums.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

constexpr int kColumns = 16;
constexpr int kPieces = kColumns / kLanes;  // registers that hold the columns
using L = Lanes<Vec>;

struct Maximum {
  float value;
  std::int64_t index;
};
/// The largest value and its lowest index. NaN is ignored, except that the result is NaN and -1 if the first
/// value is NaN.
inline Maximum maximum(const float* x, std::int64_t count) {
  float value = x[0];
  std::int64_t j = 0;
  if (count >= kLanes) {
    Vec best = Vec{} + value;
    for (; j + kLanes <= count; j += kLanes) {
      const Vec next = L::load(x + j);
      best = next > best ? next : best;
    }
    float columns[kLanes];
    L::store(columns, best);
    for (float column : columns) value = column > value ? column : value;
  }
  for (; j < count; ++j) value = x[j] > value ? x[j] : value;
  constexpr std::int64_t kStride = 64;
  std::int64_t index = 0;
  for (; index + kStride <= count; index += kStride) {
    int found = 0;
    for (std::int64_t i = 0; i < kStride; ++i) found |= x[index + i] == value ? 1 : 0;
    if (found != 0) break;
  }
  while (index < count && !(x[index] == value)) ++index;
  return {value, index < count ? index : -1};
}

/// Adds exp(from - max) for 16 columns to sums, and stores the terms in `to` unless it is null.
inline void add_exponentials(const float* from, float max, float* to, Vec* sums) {
#pragma GCC unroll 4
  for (int k = 0; k < kPieces; ++k) {
    const Vec term = exp_of_nonpositive(L::load(from + k * kLanes) - max);
    sums[k] += term;
    if (to != nullptr) L::store(to + k * kLanes, term);
  }
}

inline double sum_of_columns(const Vec* sums) {
  float columns[kColumns];
  for (int k = 0; k < kPieces; ++k) L::store(columns + k * kLanes, sums[k]);
  double sum = 0.0;
  for (float column : columns) sum += static_cast<double>(column);
  return sum;
}

/// The sum of exp(x_j - max); the terms are stored in e unless it is null (e may be x).
inline double sum_of_exponentials(const float* x, std::int64_t count, float max, float* e) {
  Vec sums[kPieces] = {};
  std::int64_t j = 0;
  for (; j + kColumns <= count; j += kColumns)
    add_exponentials(x + j, max, e == nullptr ? nullptr : e + j, sums);
  if (j < count) {
    const int rest = static_cast<int>(count - j);
    float padded[kColumns];
    for (int i = 0; i < kColumns; ++i) padded[i] = i < rest ? x[j + i] : -__builtin_inff();
    add_exponentials(padded, max, padded, sums);
    if (e != nullptr)
      for (int i = 0; i < rest; ++i) e[j + i] = padded[i];
  }
  return sum_of_columns(sums);
}

/// Sum of a_j * b_j, in 16 columns.
inline double dot(const float* a, const float* b, std::int64_t count) {
  Vec sums[kPieces] = {};
  std::int64_t j = 0;
  for (; j + kColumns <= count; j += kColumns)
#pragma GCC unroll 4
    for (int k = 0; k < kPieces; ++k) sums[k] += L::load(a + j + k * kLanes) * L::load(b + j + k * kLanes);
  double sum = sum_of_columns(sums);
  for (; j < count; ++j) sum += static_cast<double>(a[j] * b[j]);
  return sum;
}

class Loss final : public LossKernels {
 public:
  void softmax_cross_entropy(const Lane&, std::int64_t rows, std::int64_t classes, const float* x,
                             const std::int32_t* labels, float gradient_scale, float* dx, double* loss_sum,
                             std::int64_t* correct) const override {
    double total = 0.0;
    std::int64_t hits = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* logits = x + row * classes;
      float* gradient = dx == nullptr ? nullptr : dx + row * classes;
      const std::int32_t label = labels[row];
      if (label < 0) {
        for (std::int64_t j = 0; gradient != nullptr && j < classes; ++j) gradient[j] = 0.0F;
        continue;
      }
      const Maximum top = maximum(logits, classes);
      const double at_label = static_cast<double>(logits[label]) - static_cast<double>(top.value);
      const double sum = sum_of_exponentials(logits, classes, top.value, gradient);
      total += __builtin_log(sum) - at_label;
      hits += top.index == label ? 1 : 0;
      if (gradient == nullptr) continue;
      const float factor = static_cast<float>(static_cast<double>(gradient_scale) / sum);
      const float label_term = gradient[label];
      for (std::int64_t j = 0; j < classes; ++j) gradient[j] *= factor;
      // In double: for a confident prediction, softmax - 1 would lose precision in float32.
      gradient[label] = static_cast<float>((static_cast<double>(label_term) - sum) / sum *
                                           static_cast<double>(gradient_scale));
    }
    *loss_sum = total;
    *correct = hits;
  }

  void softmax_cross_entropy_dense(const Lane&, std::int64_t rows, std::int64_t classes, const float* x,
                                   const float* labels, float gradient_scale, float* dx, double* loss_sum,
                                   std::int64_t* correct) const override {
    double total = 0.0;
    std::int64_t hits = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* logits = x + row * classes;
      const float* target = labels + row * classes;
      float* gradient = dx == nullptr ? nullptr : dx + row * classes;
      const Maximum top = maximum(logits, classes);
      double mass = 0.0, expected = 0.0;
      for (std::int64_t j = 0; j < classes; ++j) {
        const double t = static_cast<double>(target[j]);
        mass += t;
        // A class with t = 0 adds nothing, however small its probability (0 * -inf).
        if (t != 0.0) expected += t * (static_cast<double>(logits[j]) - static_cast<double>(top.value));
      }
      const double sum = sum_of_exponentials(logits, classes, top.value, gradient);
      total += mass * __builtin_log(sum) - expected;
      hits += top.index >= 0 && top.index == maximum(target, classes).index ? 1 : 0;
      if (gradient == nullptr) continue;
      const float factor = static_cast<float>(mass / sum);
      for (std::int64_t j = 0; j < classes; ++j)
        gradient[j] = (gradient[j] * factor - target[j]) * gradient_scale;
    }
    *loss_sum = total;
    *correct = hits;
  }

  void softmax(const Lane&, std::int64_t rows, std::int64_t channels, const float* x,
               float* y) const override {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* from = x + row * channels;
      float* to = y + row * channels;
      const float factor =
          static_cast<float>(1.0 / sum_of_exponentials(from, channels, maximum(from, channels).value, to));
      for (std::int64_t j = 0; j < channels; ++j) to[j] *= factor;
    }
  }

  void softmax_backward(const Lane&, std::int64_t rows, std::int64_t channels, const float* y,
                        const float* dy, float* dx) const override {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* out = y + row * channels;
      const float* gradient = dy + row * channels;
      float* to = dx + row * channels;
      const float mean = static_cast<float>(dot(out, gradient, channels));
      for (std::int64_t j = 0; j < channels; ++j) to[j] = out[j] * (gradient[j] - mean);
    }
  }

  void log_softmax(const Lane&, std::int64_t rows, std::int64_t channels, const float* x,
                   float* y) const override {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* from = x + row * channels;
      float* to = y + row * channels;
      const float max = maximum(from, channels).value;
      const float log_sum =
          static_cast<float>(__builtin_log(sum_of_exponentials(from, channels, max, nullptr)));
      for (std::int64_t j = 0; j < channels; ++j) to[j] = (from[j] - max) - log_sum;
    }
  }

  void log_softmax_backward(const Lane&, std::int64_t rows, std::int64_t channels, const float* y,
                            const float* dy, float* dx) const override {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* out = y + row * channels;
      const float* gradient = dy + row * channels;
      float* to = dx + row * channels;
      double total = 0.0;
      sum_along<1>(channels, &total,
                   [&](std::int64_t at, auto* sums) { sums[0] += load_as(gradient + at, sums); });
      const float sum = static_cast<float>(total);
      std::int64_t j = 0;
      for (; j + kLanes <= channels; j += kLanes)
        L::store(to + j, L::load(gradient + j) - exp_of_nonpositive(L::load(out + j)) * sum);
      if (j < channels) {
        float padded[kLanes] = {};
        for (std::int64_t i = j; i < channels; ++i) padded[i - j] = out[i];
        L::store(padded, exp_of_nonpositive(L::load(padded)) * sum);
        for (std::int64_t i = j; i < channels; ++i) to[i] = gradient[i] - padded[i - j];
      }
    }
  }
};

}  // namespace

const LossKernels& loss_kernels() {
  static const Loss kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
