// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The element-wise work of a sum along the shard tree: additions in float32, and where sums are compressed,
// the rounding of nodes to bfloat16 (core/half.h). A compressed sum rounds the value of every node of the
// tree: a leaf, an inner node, the total. So which numbers are rounded depends on the number of leaves alone,
// and a node that another rank needs travels as 16 bits with nothing lost. Rounding a rounded number changes
// nothing: nodes may be rounded when they are computed, or when they are added.
#pragma once

#include <cstdint>

#include "core/half.h"

namespace lockstep {

/// Each call adds work to a stream of the device that the addresses belong to; on the host it returns when
/// the work is done. Ranges do not overlap. The bits do not depend on the device, except for the payload of a
/// NaN, which stays a NaN.
class NodeArithmetic {
 public:
  virtual ~NodeArithmetic() = default;

  /// into = into + from.
  virtual void add(void* stream, std::int64_t count, float* into, const float* from) const = 0;
  /// into = r(into) + r(from), and r of that if it is the `total`; r rounds to bfloat16.
  virtual void add_rounded(void* stream, std::int64_t count, float* into, const float* from,
                           bool total) const = 0;
  virtual void add_rounded(void* stream, std::int64_t count, float* into, const BFloat16* from,
                           bool total) const = 0;
  /// values = r(values).
  virtual void round(void* stream, std::int64_t count, float* values) const = 0;
  /// to = r(from), 16 bits each; and back.
  virtual void narrow(void* stream, std::int64_t count, const float* from, BFloat16* to) const = 0;
  virtual void widen(void* stream, std::int64_t count, const BFloat16* from, float* to) const = 0;
};

/// The arithmetic of host memory, on the calling thread; the stream is ignored.
const NodeArithmetic& host_arithmetic();

}  // namespace lockstep
