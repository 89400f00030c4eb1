// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Losses other than plain softmax cross-entropy (loss.h): of single elements, of rows with more options, of
// whole samples. Arithmetic is in double; gradients are float32. This header uses plain types only (isa.h).
//
// Ignored labels are indices below 0 and, if the options say so, NaN float labels. They add nothing, and
// their gradient is 0.
#pragma once

#include <cstdint>

#include "kernels/lane.h"

namespace lockstep {

enum class ElementLoss {
  squared,
  absolute,
  huber,
  log_cosh,
  hinge,
  sigmoid,
  focal,
  identity,
};

/// Factors of samples: a term of piece i of `per_sample` consecutive ones is multiplied by values[i /
/// per_sample]. Without values all factors are 1. A factor of 0 is the same as an ignored label.
struct SampleWeights {
  const float* values = nullptr;
  std::int64_t per_sample = 1;
};

/// Formulas for an output x and its label t:
///   squared   (x - t)^2
///   absolute  |x - t|
///   huber     (x - t)^2 / 2 where |x - t| <= parameter, else parameter (|x - t| - parameter / 2)
///   log_cosh  log cosh(x - t)
///   hinge     max(0, 1 - (2 t - 1) x)
///   sigmoid   (1 - t) x + (1 + (w - 1) t) log(1 + exp(-x)), w = factors[channel], or 1
///   focal     a t (1 - p)^g (-log p) + (1 - a) (1 - t) p^g (-log(1 - p)) with p = sigmoid(x), g = parameter,
///             a = alpha; without alpha (below 0) the factors a and 1 - a are 1
///   identity  x; there are no labels
struct ElementLossOptions {
  ElementLoss kind = ElementLoss::squared;
  double parameter = 0;
  double alpha = -1;
  const float* factors = nullptr;  ///< one per channel (element e has channel e % channels), or null
  std::int64_t channels = 1;
  bool ignores_nan = false;
  SampleWeights samples = {};  ///< by element
};

/// Formulas for a row x of logits with p = softmax(x) and labels t: an index l, or a dense row. W = sum_j t_j
/// weights_j. Smoothed labels: u_j = t_j (1 - smoothing) + smoothing / classes.
///   focal:      -W (1 - p_l)^gamma log p_l; index labels only, no smoothing
///   divergence: W sum_j u_j (log u_j - log p_j)
///   otherwise:  -W sum_j u_j log p_j
struct RowLossOptions {
  double smoothing = 0;
  const float* weights = nullptr;  ///< per class; null: all 1
  bool focal = false, divergence = false;
  double gamma = 0;
  SampleWeights samples = {};  ///< by row
};

/// Dice loss per sample: the mean over classes c of 1 - (2 sum p t + smooth) / (sum p + sum t + smooth), with
/// sums over positions. p is the softmax over the classes of a position, or the sigmoid of each logit.
struct DiceOptions {
  bool softmax = true;
  double smooth = 1;
  SampleWeights samples = {};  ///< by sample
};
/// The largest number of classes for the dice loss.
inline constexpr std::int64_t kMostDiceClasses = 1024;

class LossTermKernels {
 public:
  virtual ~LossTermKernels();

  /// *loss_sum = the sum over count elements; dx = gradient * gradient_scale unless dx is null.
  virtual void element(const Lane&, const ElementLossOptions&, std::int64_t count, const float* x,
                       const float* labels, float gradient_scale, float* dx, double* loss_sum) const = 0;
  /// Exactly one of `indices` (rows) and `dense` (rows x classes) is not null. *correct is as in LossKernels.
  virtual void row(const Lane&, const RowLossOptions&, std::int64_t rows, std::int64_t classes,
                   const float* x, const std::int32_t* indices, const float* dense, float gradient_scale,
                   float* dx, double* loss_sum, std::int64_t* correct) const = 0;
  /// x is n x positions x classes. Exactly one of `indices` (n x positions) and `dense` (like x) is not null.
  /// Positions with an ignored index are excluded; a sample without any other position has loss 0.
  virtual void dice(const Lane&, const DiceOptions&, std::int64_t n, std::int64_t positions,
                    std::int64_t classes, const float* x, const std::int32_t* indices, const float* dense,
                    float gradient_scale, float* dx, double* loss_sum) const = 0;
  /// *sum = sum of l2 / 2 w^2 + l1 |w|; gradient += l2 w + l1 sign(w).
  virtual void penalty(const Lane&, double l1, double l2, std::int64_t count, const float* w, float* gradient,
                       double* sum) const = 0;
};

}  // namespace lockstep
