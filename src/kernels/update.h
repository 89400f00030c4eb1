// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates, each one fused pass over a flat range. Element-wise with a fixed rounding order, so any
// cut of the range gives the same bits. Rules as in the reference table of docs/optimizers.md. Plain types
// only.
#pragma once

#include <cstdint>

#include "kernels/lane.h"

namespace lockstep {

/// Rows of a table that move by a gradient of which some rows are given. Addresses are the device's; counts
/// are the host's.
struct RowUpdate {
  std::int64_t first = 0, last = 0;    ///< the rows of the table that this call is for
  std::int64_t width = 0;              ///< numbers per row
  std::int64_t count = 0;              ///< rows with a gradient, of the whole table
  const std::int32_t* rows = nullptr;  ///< [count] which they are, ascending, each once
  const float* values = nullptr;       ///< [count][width] their gradients
  /// Rows without a gradient move as with one of zero; if false they stay as they are, and so do their slots.
  bool others = true;
};

class UpdateKernels {
 public:
  virtual ~UpdateKernels();

  /// g = factor * g; *not_finite = 1 if one of them is NaN or infinite, else it stays. Device memory, or
  /// pinned memory that the host reads.
  virtual void unscale(const Lane&, std::int64_t count, float factor, float* g,
                       std::int32_t* not_finite) const = 0;
  /// w -= lr * g.
  virtual void gradient_descent(const Lane&, std::int64_t count, float* w, const float* g,
                                float lr) const = 0;
  /// a = mu * a + g; w -= lr * a, or with nesterov w -= lr * g + lr * mu * a (the new a). Sutskever et al.
  /// 2013.
  virtual void momentum(const Lane&, std::int64_t count, float* w, const float* g, float* a, float lr,
                        float mu, bool nesterov) const = 0;
  /// m += (1 - beta1) (g - m); v += (1 - beta2) (g^2 - v); w -= alpha * m / (sqrt(v) + epsilon), where
  /// alpha = lr * sqrt(1 - beta2^t) / (1 - beta1^t) is the caller's. Kingma and Ba 2015, arXiv:1412.6980,
  /// section 2, last paragraph.
  virtual void adam(const Lane&, std::int64_t count, float* w, const float* g, float* m, float* v,
                    float alpha, float beta1, float beta2, float epsilon) const = 0;

  /// The same for rows of a table; w, a, m and v begin with its row 0. The bits are those of the calls above
  /// with a gradient that is zero where no row is given.
  virtual void gradient_descent_rows(const Lane&, const RowUpdate&, float* w, float lr) const = 0;
  virtual void momentum_rows(const Lane&, const RowUpdate&, float* w, float* a, float lr, float mu,
                             bool nesterov) const = 0;
  virtual void adam_rows(const Lane&, const RowUpdate&, float* w, float* m, float* v, float alpha,
                         float beta1, float beta2, float epsilon) const = 0;
};

}  // namespace lockstep
