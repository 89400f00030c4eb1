// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Arrays seen as outer x middle x inner beside arrays of outer x inner: products that repeat the small one
// along the middle, and sums and maxima over it. Sums run in an order that the shape fixes: float32 within
// blocks of the middle, double across. Every instruction-set level gives the same bits at any address. NaN
// stays NaN. The arrays of a call have one type of activations (unless said otherwise): they are widened,
// computed with in float32, and rounded when they are stored. Plain types only.
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

  /// y[o][m][i] = a[o][m][i] * b[o][i]; y may alias a. b may be float32 whatever the others are.
  virtual void multiply(const Lane&, const BroadcastShape& shape, ConstData a, ConstData b, Data y) const = 0;
  /// y[o][m][i] = factor * b[o][i].
  virtual void repeat(const Lane&, const BroadcastShape& shape, float factor, ConstData b, Data y) const = 0;
  /// y[o][i] = factor * sum over m of a[o][m][i] (* b[o][m][i] unless b is null).
  virtual void sum(const Lane&, const BroadcastShape& shape, double factor, ConstData a, ConstData b,
                   Data y) const = 0;
  /// y[o][i] = the largest a[o][m][i], at[o][i] = its m (at null: not kept), the first of several; a NaN is
  /// larger than any number, the first one counts. middle > 0.
  virtual void maximum(const Lane&, const BroadcastShape& shape, ConstData a, Data y,
                       std::int32_t* at) const = 0;
  /// dx[o][m][i] = dy[o][i] where m = at[o][i], else 0.
  virtual void maximum_backward(const Lane&, const BroadcastShape& shape, ConstData dy,
                                const std::int32_t* at, Data dx) const = 0;
};

}  // namespace lockstep
