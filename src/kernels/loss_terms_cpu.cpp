// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The losses of loss_terms.h on the CPU, per instruction-set level (isa.h): in double, element by element, in
// order.
#include "kernels/loss_terms.h"

#include "kernels/isa.h"
#include "kernels/loss_formulas.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

struct Math {
  static double abs(double x) { return __builtin_fabs(x); }
  static double exp(double x) { return __builtin_exp(x); }
  static double log(double x) { return __builtin_log(x); }
  static double log1p(double x) { return __builtin_log1p(x); }
  static double pow(double x, double y) { return __builtin_pow(x, y); }
  static double tanh(double x) { return __builtin_tanh(x); }
};

/// The position of the largest value, the lowest of equal ones; -1 if the first value is NaN.
std::int64_t largest(const float* x, std::int64_t count) {
  std::int64_t best = 0;
  for (std::int64_t j = 1; j < count; ++j)
    if (x[j] > x[best]) best = j;
  return x[0] == x[0] ? best : -1;
}

RowSoftmax softmax_of(const float* x, std::int64_t count) {
  const std::int64_t top = largest(x, count);
  const double max = static_cast<double>(x[top < 0 ? 0 : top]);
  double sum = 0.0;
  for (std::int64_t j = 0; j < count; ++j) sum += Math::exp(static_cast<double>(x[j]) - max);
  return {max, Math::log(sum)};
}

void zero(float* x, std::int64_t count) {
  for (std::int64_t j = 0; x != nullptr && j < count; ++j) x[j] = 0.0F;
}

/// The label t_j of a position.
double target(const std::int32_t* indices, const float* dense, std::int64_t position, std::int64_t j,
              std::int64_t classes) {
  if (indices != nullptr) return indices[position] == j ? 1.0 : 0.0;
  return static_cast<double>(dense[position * classes + j]);
}

class LossTerms final : public LossTermKernels {
 public:
  void element(const Lane&, const ElementLossOptions& options, std::int64_t count, const float* x,
               const float* labels, float gradient_scale, float* dx, double* loss_sum) const override {
    const double scale = static_cast<double>(gradient_scale);
    double total = 0.0;
    for (std::int64_t e = 0; e < count; ++e) {
      const LossAndSlope term = element_at<Math>(options, x, labels, e);
      total += term.loss;
      if (dx != nullptr) dx[e] = static_cast<float>(term.slope * scale);
    }
    *loss_sum = total;
  }

  void row(const Lane&, const RowLossOptions& options, std::int64_t rows, std::int64_t classes,
           const float* x, const std::int32_t* indices, const float* dense, float gradient_scale, float* dx,
           double* loss_sum, std::int64_t* correct) const override {
    double total = 0.0;
    std::int64_t hits = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const float* logits = x + i * classes;
      float* gradient = dx == nullptr ? nullptr : dx + i * classes;
      const double of_sample = weight_of(options.samples, i);
      if (of_sample == 0 || (indices != nullptr && indices[i] < 0)) {
        zero(gradient, classes);
        continue;
      }
      const std::int64_t label = indices != nullptr ? indices[i] : largest(dense + i * classes, classes);
      hits += label >= 0 && largest(logits, classes) == label ? 1 : 0;
      double weight = of_sample;
      if (options.weights != nullptr) {
        double of_class = 0.0;
        for (std::int64_t j = 0; j < classes; ++j)
          of_class += target(indices, dense, i, j, classes) * static_cast<double>(options.weights[j]);
        weight *= of_class;
      }
      total += weight * (options.focal
                             ? focal(options, logits, classes, indices[i], weight * gradient_scale, gradient)
                             : smoothed(options, logits, classes, indices, dense, i, weight * gradient_scale,
                                        gradient));
    }
    *loss_sum = total;
    *correct = hits;
  }

  void dice(const Lane&, const DiceOptions& options, std::int64_t n, std::int64_t positions,
            std::int64_t classes, const float* x, const std::int32_t* indices, const float* dense,
            float gradient_scale, float* dx, double* loss_sum) const override {
    double total = 0.0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t first = i * positions;
      const double weight = weight_of(options.samples, i);
      if (weight == 0) {
        zero(dx == nullptr ? nullptr : dx + first * classes, positions * classes);
        continue;
      }
      total += weight * dice_of_sample(options, positions, classes, x + first * classes,
                                       indices == nullptr ? nullptr : indices + first,
                                       dense == nullptr ? nullptr : dense + first * classes,
                                       weight * static_cast<double>(gradient_scale),
                                       dx == nullptr ? nullptr : dx + first * classes);
    }
    *loss_sum = total;
  }

  void penalty(const Lane&, double l1, double l2, std::int64_t count, const float* w, float* gradient,
               double* sum) const override {
    double total = 0.0;
    for (std::int64_t i = 0; i < count; ++i) {
      const LossAndSlope term = penalty_term(l1, l2, static_cast<double>(w[i]));
      total += term.loss;
      gradient[i] += static_cast<float>(term.slope);
    }
    *sum = total;
  }

 private:
  static double focal(const RowLossOptions& options, const float* logits, std::int64_t classes,
                      std::int64_t label, double scale, float* gradient) {
    const RowSoftmax softmax = softmax_of(logits, classes);
    double rest = 0.0;
    for (std::int64_t j = 0; j < classes; ++j)
      if (j != label) rest += Math::exp(softmax.log_probability<Math>(static_cast<double>(logits[j])));
    const LossAndSlope term =
        focal_row<Math>(options, softmax.log_probability<Math>(static_cast<double>(logits[label])), rest);
    for (std::int64_t j = 0; gradient != nullptr && j < classes; ++j) {
      const double p = Math::exp(softmax.log_probability<Math>(static_cast<double>(logits[j])));
      gradient[j] = static_cast<float>(scale * term.slope * (j == label ? rest : -p));
    }
    return term.loss;
  }

  static double smoothed(const RowLossOptions& options, const float* logits, std::int64_t classes,
                         const std::int32_t* indices, const float* dense, std::int64_t i, double scale,
                         float* gradient) {
    const RowSoftmax softmax = softmax_of(logits, classes);
    const auto label = [&](std::int64_t j) {
      return target(indices, dense, i, j, classes) * (1 - options.smoothing) +
             options.smoothing / static_cast<double>(classes);
    };
    double loss = 0.0, mass = 0.0;
    for (std::int64_t j = 0; j < classes; ++j) {
      mass += label(j);
      loss +=
          row_term<Math>(options, label(j), softmax.log_probability<Math>(static_cast<double>(logits[j])));
    }
    for (std::int64_t j = 0; gradient != nullptr && j < classes; ++j) {
      const double p = Math::exp(softmax.log_probability<Math>(static_cast<double>(logits[j])));
      gradient[j] = static_cast<float>((mass * p - label(j)) * scale);
    }
    // A NaN logit makes the loss NaN even where no label has mass.
    return softmax.log_sum == softmax.log_sum ? loss : softmax.log_sum;
  }

  static double dice_of_sample(const DiceOptions& options, std::int64_t positions, std::int64_t classes,
                               const float* x, const std::int32_t* indices, const float* dense, double scale,
                               float* dx) {
    double both[kMostDiceClasses], sums[kMostDiceClasses], labels[kMostDiceClasses];
    for (std::int64_t c = 0; c < classes; ++c) both[c] = sums[c] = labels[c] = 0.0;
    std::int64_t counted = 0;
    for (std::int64_t p = 0; p < positions; ++p) {
      if (indices != nullptr && indices[p] < 0) continue;
      ++counted;
      const Probability probability(options, x + p * classes, classes);
      for (std::int64_t c = 0; c < classes; ++c) {
        const double value = probability(c), t = target(indices, dense, p, c, classes);
        both[c] += value * t;
        sums[c] += value;
        labels[c] += t;
      }
    }
    if (counted == 0) {
      zero(dx, positions * classes);
      return 0.0;
    }
    double loss = 0.0;
    for (std::int64_t c = 0; c < classes; ++c) {
      const DiceClass found = dice_class(both[c], sums[c], labels[c], options.smooth);
      loss += found.loss;
      both[c] = found.at_label;  // from here on, both and sums hold the two parts of the slope
      sums[c] = found.everywhere;
    }
    const double share = scale / static_cast<double>(classes);
    for (std::int64_t p = 0; dx != nullptr && p < positions; ++p) {
      float* to = dx + p * classes;
      if (indices != nullptr && indices[p] < 0) {
        zero(to, classes);
        continue;
      }
      const Probability probability(options, x + p * classes, classes);
      const auto slope = [&](std::int64_t c) {
        return both[c] * target(indices, dense, p, c, classes) + sums[c];
      };
      double mean = 0.0;
      for (std::int64_t c = 0; c < classes && options.softmax; ++c) mean += probability(c) * slope(c);
      for (std::int64_t c = 0; c < classes; ++c) {
        const double value = probability(c);
        to[c] =
            static_cast<float>(share * value * (options.softmax ? slope(c) - mean : slope(c) * (1 - value)));
      }
    }
    return loss / static_cast<double>(classes);
  }

  /// Probabilities of the classes at one position.
  struct Probability {
    Probability(const DiceOptions& options, const float* logits, std::int64_t classes)
        : is_softmax(options.softmax), x(logits) {
      if (is_softmax) softmax = softmax_of(logits, classes);
    }
    double operator()(std::int64_t c) const {
      const double value = static_cast<double>(x[c]);
      return is_softmax ? Math::exp(softmax.log_probability<Math>(value)) : sigmoid<Math>(value);
    }
    bool is_softmax;
    const float* x;
    RowSoftmax softmax{0, 0};
  };
};

}  // namespace

const LossTermKernels& loss_term_kernels() {
  static const LossTerms kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
