// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Softmax with cross-entropy, forward and backward in one pass over the logits. This header uses plain types
// only (isa.h).
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

class LossKernels {
 public:
  virtual ~LossKernels();

  /// x and dx have the same type, any of core/half.h; the others are float32. 16-bit logits are widened, and
  /// the float32 gradient is rounded to dx once.
  ///
  /// Per row i with label l: loss_i = log(sum_j exp(x_ij - max)) - (x_il - max). *loss_sum = the sum over
  /// rows (double). *correct = the number of rows whose label has the largest logit (the lowest index wins
  /// ties). dx = (softmax - onehot) * gradient_scale unless dx is null; dx may alias x. A row with a label
  /// below 0 is ignored: it adds nothing and its gradient is 0. Other labels must be in [0, classes); the
  /// caller has checked them.
  virtual void softmax_cross_entropy(const Lane&, std::int64_t rows, std::int64_t classes, ConstData x,
                                     const std::int32_t* labels, float gradient_scale, Data dx,
                                     double* loss_sum, std::int64_t* correct) const = 0;
  /// The same with dense labels t (rows x classes): loss_i = -sum_j t_ij (x_ij - max - log sum exp); dx =
  /// (softmax * sum_j t_ij - t) * gradient_scale. A row is correct if the maxima of x and t have the same
  /// position.
  virtual void softmax_cross_entropy_dense(const Lane&, std::int64_t rows, std::int64_t classes, ConstData x,
                                           const float* labels, float gradient_scale, Data dx,
                                           double* loss_sum, std::int64_t* correct) const = 0;
  /// y = softmax of each row. y may alias x.
  virtual void softmax(const Lane&, std::int64_t rows, std::int64_t channels, const float* x,
                       float* y) const = 0;
  /// dx_j = y_j * (dy_j - sum_k dy_k y_k). dx may alias dy.
  virtual void softmax_backward(const Lane&, std::int64_t rows, std::int64_t channels, const float* y,
                                const float* dy, float* dx) const = 0;
  /// y_j = x_j - max - log(sum exp(x - max)) of each row. y may alias x.
  virtual void log_softmax(const Lane&, std::int64_t rows, std::int64_t channels, const float* x,
                           float* y) const = 0;
  /// dx_j = dy_j - exp(y_j) * sum_k dy_k. dx may alias dy.
  virtual void log_softmax_backward(const Lane&, std::int64_t rows, std::int64_t channels, const float* y,
                                    const float* dy, float* dx) const = 0;
};

}  // namespace lockstep
