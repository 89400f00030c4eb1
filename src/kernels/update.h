// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates, each in one fused pass over a flat range. They are element-wise with a fixed rounding
// order, so any split of the range has the same bits. The reference table of docs/optimizers.md lists the
// rules. This header uses plain types only (isa.h).
#pragma once

#include <cstdint>

#include "kernels/lane.h"

namespace lockstep {

/// An update of table rows with a sparse gradient. Addresses are device addresses; counts are on the host.
struct RowUpdate {
  std::int64_t first = 0, last = 0;    ///< the table rows that this call updates
  std::int64_t width = 0;              ///< numbers per row
  std::int64_t count = 0;              ///< number of rows with a gradient, in the whole table
  const std::int32_t* rows = nullptr;  ///< [count] their indices, ascending, distinct
  const float* values = nullptr;       ///< [count][width] their gradients
  /// True: rows without a gradient are updated with a zero gradient. False: they and their slots stay
  /// unchanged.
  bool others = true;
};

class UpdateKernels {
 public:
  virtual ~UpdateKernels();

  /// g = factor * g. *not_finite = 1 if any result is NaN or infinite; otherwise unchanged. not_finite is
  /// device memory, or pinned memory that the host reads.
  virtual void unscale(const Lane&, std::int64_t count, float factor, float* g,
                       std::int32_t* not_finite) const = 0;
  /// w -= lr * g.
  virtual void gradient_descent(const Lane&, std::int64_t count, float* w, const float* g,
                                float lr) const = 0;
  /// a = mu * a + g; w -= lr * a, or with nesterov w -= lr * g + lr * mu * a (the new a). Sutskever et al.
  /// 2013.
  virtual void momentum(const Lane&, std::int64_t count, float* w, const float* g, float* a, float lr,
                        float mu, bool nesterov) const = 0;
  /// m += (1 - beta1) (g - m); v += (1 - beta2) (g^2 - v); w -= alpha * m / (sqrt(v) + epsilon). The caller
  /// computes alpha = lr * sqrt(1 - beta2^t) / (1 - beta1^t). Kingma and Ba 2015, arXiv:1412.6980, section 2,
  /// last paragraph.
  virtual void adam(const Lane&, std::int64_t count, float* w, const float* g, float* m, float* v,
                    float alpha, float beta1, float beta2, float epsilon) const = 0;

  /// The same updates for table rows; w, a, m and v begin with row 0 of the table. The bits are those of the
  /// calls above with a gradient that is zero in the rows without one.
  virtual void gradient_descent_rows(const Lane&, const RowUpdate&, float* w, float lr) const = 0;
  virtual void momentum_rows(const Lane&, const RowUpdate&, float* w, float* a, float lr, float mu,
                             bool nesterov) const = 0;
  virtual void adam_rows(const Lane&, const RowUpdate&, float* w, float* m, float* v, float alpha,
                         float beta1, float beta2, float epsilon) const = 0;
};

}  // namespace lockstep
