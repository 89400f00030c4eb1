// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Penalties of many variables in one call. A device whose LossTermKernels are also PenaltyTableKernels is one
// on which each call costs a launch; others call LossTermKernels::penalty() for each block.
#pragma once

#include <cstdint>

#include "kernels/lane.h"

namespace lockstep {

/// `count` elements from `first` of flat arrays of values and gradients.
struct PenaltyBlock {
  std::int64_t first, count;
  double l1, l2;
};

class PenaltyTableKernels {
 public:
  virtual ~PenaltyTableKernels() = default;
  /// For each block b of a table on the device, with the formulas of LossTermKernels::penalty(): sums[b] =
  /// its penalty, unless `sums` (on the device or pinned) is null; adds its slopes to `gradient` unless that
  /// is null. One launch.
  virtual void penalties(const Lane&, std::int64_t num_blocks, const PenaltyBlock* blocks, const float* w,
                         float* gradient, double* sums) const = 0;
};

}  // namespace lockstep
