// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Softmax with cross-entropy, forward and backward in one pass over the logits. Plain types only.
#pragma once

#include <cstdint>

#include "kernels/lane.h"

namespace lockstep {

class LossKernels {
 public:
  virtual ~LossKernels();

  /// Per row i with label l: loss_i = log(sum_j exp(x_ij - max)) - (x_il - max); *loss_sum = sum over rows
  /// (double); *correct = rows whose label has the largest logit (the lowest index wins ties); dx = (softmax
  /// - onehot) * gradient_scale unless dx is null (may alias x). Labels must lie in [0, classes): the caller
  /// checked them.
  virtual void softmax_cross_entropy(const Lane&, std::int64_t rows, std::int64_t classes, const float* x,
                                     const std::int32_t* labels, float gradient_scale, float* dx,
                                     double* loss_sum, std::int64_t* correct) const = 0;
  /// The same with dense labels t (rows x classes): loss_i = -sum_j t_ij (x_ij - max - log sum exp);
  /// dx = (softmax * sum_j t_ij - t) * gradient_scale; correct compares the positions of the two maxima.
  virtual void softmax_cross_entropy_dense(const Lane&, std::int64_t rows, std::int64_t classes,
                                           const float* x, const float* labels, float gradient_scale,
                                           float* dx, double* loss_sum, std::int64_t* correct) const = 0;
  /// y = softmax of each row; may alias.
  virtual void softmax(const Lane&, std::int64_t rows, std::int64_t channels, const float* x,
                       float* y) const = 0;
  /// dx_j = y_j * (dy_j - sum_k dy_k y_k); may alias dy.
  virtual void softmax_backward(const Lane&, std::int64_t rows, std::int64_t channels, const float* y,
                                const float* dy, float* dx) const = 0;
  /// y_j = x_j - max - log(sum exp(x - max)) of each row; may alias.
  virtual void log_softmax(const Lane&, std::int64_t rows, std::int64_t channels, const float* x,
                           float* y) const = 0;
  /// dx_j = dy_j - exp(y_j) * sum_k dy_k; may alias dy.
  virtual void log_softmax_backward(const Lane&, std::int64_t rows, std::int64_t channels, const float* y,
                                    const float* dy, float* dx) const = 0;
};

}  // namespace lockstep
