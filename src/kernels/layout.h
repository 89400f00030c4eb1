// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Moving numbers without changing them: concat, split, slice and transpose are one strided copy. Plain types
// only.
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

/// For every index i below the extents: to[sum i_a to_strides[a]] = from[sum i_a from_strides[a]], in
/// elements. The last axis is the innermost. Strides are positive; places written are distinct.
struct StridedCopy {
  static constexpr int kMaxRank = 9;  ///< a sample's axes and the samples
  int rank = 0;
  std::int64_t extents[kMaxRank] = {}, from_strides[kMaxRank] = {}, to_strides[kMaxRank] = {};

  /// Adds an axis inside of those that are there, joined with the last one where both sides allow: then loops
  /// are few and long.
  void add_axis(std::int64_t extent, std::int64_t from_stride, std::int64_t to_stride);
  /// The way back.
  StridedCopy reversed() const;
};

/// Calls body(from, to) with both addresses as those of float, or of the bits of 16-bit numbers: what moves
/// them looks at their size alone. Types that differ are a bug.
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
  /// Numbers of any of Data's types, of the same one on both sides: every bit is kept, of NaN too. No
  /// aliasing. An extent of 0 copies nothing; `samples` replaces the first extent.
  virtual void copy(const Lane&, const StridedCopy& copy, std::int64_t samples, ConstData from,
                    Data to) const = 0;
};

}  // namespace lockstep
