// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Operations between an array of outer x middle x inner and an array of outer x inner: products that repeat
// the small array along the middle axis, and sums and maxima over that axis. The shape fixes the order of
// sums: float32 within blocks of the middle, double across blocks. The bits are the same at every
// instruction-set level and for any address. NaN stays NaN. All arrays of a call have one activation type
// unless stated otherwise; kernels widen them, compute in float32 and round when storing. This header uses
// plain types only (isa.h).
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

struct BroadcastShape {
  std::int64_t outer = 0, middle = 1, inner = 1;
};

class BroadcastKernels {
 public:
  virtual ~BroadcastKernels();

  /// y[o][m][i] = a[o][m][i] * b[o][i]; y may alias a. b may be float32 for any type of a and y.
  virtual void multiply(const Lane&, const BroadcastShape& shape, ConstData a, ConstData b, Data y) const = 0;
  /// y[o][m][i] = factor * b[o][i].
  virtual void repeat(const Lane&, const BroadcastShape& shape, float factor, ConstData b, Data y) const = 0;
  /// y[o][i] = factor * sum over m of a[o][m][i] (* b[o][m][i] unless b is null).
  virtual void sum(const Lane&, const BroadcastShape& shape, double factor, ConstData a, ConstData b,
                   Data y) const = 0;
  /// y[o][i] = the largest a[o][m][i]; at[o][i] = its m (null: not stored). The first of equal values counts.
  /// NaN is larger than any number; the first NaN counts. middle > 0.
  virtual void maximum(const Lane&, const BroadcastShape& shape, ConstData a, Data y,
                       std::int32_t* at) const = 0;
  /// dx[o][m][i] = dy[o][i] where m = at[o][i], else 0.
  virtual void maximum_backward(const Lane&, const BroadcastShape& shape, ConstData dy,
                                const std::int32_t* at, Data dx) const = 0;
};

}  // namespace lockstep
