// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Data movement without arithmetic: concat, split, slice and transpose are one strided copy. This header uses
// plain types only (isa.h).
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

/// For every index i below the extents: to[sum i_a to_strides[a]] = from[sum i_a from_strides[a]], in
/// elements. The last axis is the innermost. Strides are positive; destination addresses are distinct.
struct StridedCopy {
  static constexpr int kMaxRank = 9;  ///< the axes of a sample and the sample axis
  int rank = 0;
  std::int64_t extents[kMaxRank] = {}, from_strides[kMaxRank] = {}, to_strides[kMaxRank] = {};

  /// Adds an innermost axis. It is merged with the previous innermost axis if both strides allow it, so that
  /// there are few, long loops.
  void add_axis(std::int64_t extent, std::int64_t from_stride, std::int64_t to_stride);
  /// The copy in the opposite direction.
  StridedCopy reversed() const;
};

/// Calls body(from, to) with both addresses as float* or, for 16-bit types, as std::uint16_t*, since copies
/// depend on the element size alone. Different types are a bug.
template <typename Body>
LOCKSTEP_INLINED inline void with_words(ConstData from, Data to, const Body& body) {
  if (from.type() != to.type()) throw_wrong_type(to.type(), from.type());
  if (from.type() == DType::f32)
    body(from.f32(), to.f32());
  else
    body(static_cast<const std::uint16_t*>(from.address()), static_cast<std::uint16_t*>(to.address()));
}

class LayoutKernels {
 public:
  virtual ~LayoutKernels();
  /// Copies numbers of any Data type, the same on both sides. All bits are preserved, also those of NaN. No
  /// aliasing. An extent of 0 copies nothing; `samples` replaces the first extent.
  virtual void copy(const Lane&, const StridedCopy& copy, std::int64_t samples, ConstData from,
                    Data to) const = 0;
};

}  // namespace lockstep
