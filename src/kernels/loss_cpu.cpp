// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Softmax and cross-entropy on the CPU, per instruction-set level (isa.h). Sums over a row use 16 float32
// columns (element j in column j % 16), which are then added in order in double. Losses are in double
// throughout. A NaN or infinite logit makes its row's loss NaN.
#include "kernels/loss.h"

#include "core/data.h"
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
template <typename T>
inline Maximum maximum(const T* x, std::int64_t count) {
  const auto at = [&](std::int64_t i) { return Lanes<float>::load(x + i); };
  float value = at(0);
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
  for (; j < count; ++j) value = at(j) > value ? at(j) : value;
  constexpr std::int64_t kStride = 64;
  std::int64_t index = 0;
  for (; index + kStride <= count; index += kStride) {
    int found = 0;
    if constexpr (dtype_of<T> == DType::f32) {
      for (std::int64_t i = 0; i < kStride; ++i) found |= x[index + i] == value ? 1 : 0;
    } else {
      float widened[kStride];
      for (std::int64_t i = 0; i < kStride; i += kLanes) L::store(widened + i, L::load(x + index + i));
      for (float wide : widened) found |= wide == value ? 1 : 0;
    }
    if (found != 0) break;
  }
  while (index < count && !(at(index) == value)) ++index;
  return {value, index < count ? index : -1};
}

/// Adds exp(from - max) for 16 columns to sums, and stores the terms in `to` unless it is null.
template <typename T>
inline void add_exponentials(const T* from, float max, float* to, Vec* sums) {
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
template <typename T>
inline double sum_of_exponentials(const T* x, std::int64_t count, float max, float* e) {
  Vec sums[kPieces] = {};
  std::int64_t j = 0;
  for (; j + kColumns <= count; j += kColumns)
    add_exponentials(x + j, max, e == nullptr ? nullptr : e + j, sums);
  if (j < count) {
    const int rest = static_cast<int>(count - j);
    float padded[kColumns];
    for (int i = 0; i < kColumns; ++i)
      padded[i] = i < rest ? Lanes<float>::load(x + j + i) : -__builtin_inff();
    add_exponentials(padded, max, padded, sums);
    if (e != nullptr)
      for (int i = 0; i < rest; ++i) e[j + i] = padded[i];
  }
  return sum_of_columns(sums);
}

/// Stores value(exp(x_j - max), t_j) in `to`, which may be x. Without targets t_j is 0.
template <typename T, typename Value>
inline void map_exponentials(const T* x, const float* targets, std::int64_t count, float max, T* to,
                             const Value& value) {
  std::int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    const Vec target = targets == nullptr ? Vec{} : L::load(targets + j);
    L::store(to + j, value(exp_of_nonpositive(L::load(x + j) - max), target));
  }
  if (j == count) return;
  float logits[kLanes], padded[kLanes] = {};
  for (int i = 0; i < kLanes; ++i) {
    logits[i] = j + i < count ? Lanes<float>::load(x + j + i) : max;
    if (targets != nullptr && j + i < count) padded[i] = targets[j + i];
  }
  L::store(padded, value(exp_of_nonpositive(L::load(logits) - max), L::load(padded)));
  for (int i = 0; j < count; ++i, ++j) Lanes<float>::store(to + j, padded[i]);
}

/// exp(x - max), with the bits of the kernels above.
inline float exponential(float x, float max) {
  float terms[kLanes];
  L::store(terms, exp_of_nonpositive(Vec{} + x - max));
  return terms[0];
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

/// Rows of logits of type T. float32 gradients hold the exponentials between the two passes; 16-bit ones have
/// no room for them, so the second pass computes them again, with the same bits.
template <typename T>
void cross_entropy(std::int64_t rows, std::int64_t classes, const T* x, const std::int32_t* labels,
                   float gradient_scale, T* dx, double* loss_sum, std::int64_t* correct) {
  constexpr bool kKept = dtype_of<T> == DType::f32;
  double total = 0.0;
  std::int64_t hits = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* logits = x + row * classes;
    T* gradient = dx == nullptr ? nullptr : dx + row * classes;
    const std::int32_t label = labels[row];
    if (label < 0) {
      for (std::int64_t j = 0; gradient != nullptr && j < classes; ++j) gradient[j] = T{};
      continue;
    }
    const Maximum top = maximum(logits, classes);
    const float label_logit = Lanes<float>::load(logits + label);
    const double at_label = static_cast<double>(label_logit) - static_cast<double>(top.value);
    float* kept = nullptr;
    if constexpr (kKept) kept = gradient;
    const double sum = sum_of_exponentials(logits, classes, top.value, kept);
    total += __builtin_log(sum) - at_label;
    hits += top.index == label ? 1 : 0;
    if (gradient == nullptr) continue;
    const float factor = static_cast<float>(static_cast<double>(gradient_scale) / sum);
    float label_term = 0.0F;
    if constexpr (kKept) {
      label_term = gradient[label];
      for (std::int64_t j = 0; j < classes; ++j) gradient[j] *= factor;
    } else {
      label_term = exponential(label_logit, top.value);
      map_exponentials(logits, nullptr, classes, top.value, gradient,
                       [factor](Vec term, Vec) { return term * factor; });
    }
    // In double: for a confident prediction, softmax - 1 would lose precision in float32.
    gradient[label] = from_float<T>(static_cast<float>((static_cast<double>(label_term) - sum) / sum *
                                                       static_cast<double>(gradient_scale)));
  }
  *loss_sum = total;
  *correct = hits;
}

template <typename T>
void dense_cross_entropy(std::int64_t rows, std::int64_t classes, const T* x, const float* labels,
                         float gradient_scale, T* dx, double* loss_sum, std::int64_t* correct) {
  constexpr bool kKept = dtype_of<T> == DType::f32;
  double total = 0.0;
  std::int64_t hits = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* logits = x + row * classes;
    const float* target = labels + row * classes;
    T* gradient = dx == nullptr ? nullptr : dx + row * classes;
    const Maximum top = maximum(logits, classes);
    double mass = 0.0, expected = 0.0;
    for (std::int64_t j = 0; j < classes; ++j) {
      const double t = static_cast<double>(target[j]);
      mass += t;
      // A class with t = 0 adds nothing, however small its probability (0 * -inf).
      if (t != 0.0)
        expected +=
            t * (static_cast<double>(Lanes<float>::load(logits + j)) - static_cast<double>(top.value));
    }
    float* kept = nullptr;
    if constexpr (kKept) kept = gradient;
    const double sum = sum_of_exponentials(logits, classes, top.value, kept);
    total += mass * __builtin_log(sum) - expected;
    hits += top.index >= 0 && top.index == maximum(target, classes).index ? 1 : 0;
    if (gradient == nullptr) continue;
    const float factor = static_cast<float>(mass / sum);
    if constexpr (kKept)
      for (std::int64_t j = 0; j < classes; ++j)
        gradient[j] = (gradient[j] * factor - target[j]) * gradient_scale;
    else
      map_exponentials(logits, target, classes, top.value, gradient,
                       [=](Vec term, Vec t) { return (term * factor - t) * gradient_scale; });
  }
  *loss_sum = total;
  *correct = hits;
}

class Loss final : public LossKernels {
 public:
  void softmax_cross_entropy(const Lane&, std::int64_t rows, std::int64_t classes, ConstData x,
                             const std::int32_t* labels, float gradient_scale, Data dx, double* loss_sum,
                             std::int64_t* correct) const override {
    with_type(x.type(), [&]<typename T>(T) {
      cross_entropy(rows, classes, x.as<T>(), labels, gradient_scale, dx.as<T>(), loss_sum, correct);
    });
  }

  void softmax_cross_entropy_dense(const Lane&, std::int64_t rows, std::int64_t classes, ConstData x,
                                   const float* labels, float gradient_scale, Data dx, double* loss_sum,
                                   std::int64_t* correct) const override {
    with_type(x.type(), [&]<typename T>(T) {
      dense_cross_entropy(rows, classes, x.as<T>(), labels, gradient_scale, dx.as<T>(), loss_sum, correct);
    });
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
