// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Moving numbers without changing them: concat, split, slice and transpose are one strided copy. Plain types
// only.
#pragma once

#include <cstdint>

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

class LayoutKernels {
 public:
  virtual ~LayoutKernels();
  /// No aliasing. An extent of 0 copies nothing; `samples` replaces the first extent.
  virtual void copy(const Lane&, const StridedCopy& copy, std::int64_t samples, const float* from,
                    float* to) const = 0;
};

}  // namespace lockstep
