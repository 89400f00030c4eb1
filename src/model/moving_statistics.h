// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer that keeps moving statistics of its inputs, as batch normalisation does: each forward pass in
// training moves them towards the statistics of the batch. Whoever computes them anew for other weights
// (Trainer::recompute_statistics) sets how much is kept.
#pragma once

#include <optional>

namespace lockstep {

/// A base of such layers in addition to CollectiveLayer.
class MovingStatistics {
 public:
  virtual ~MovingStatistics() = default;
  /// From now on, a pass keeps this share of the old values, in [0, 1); none: that of the layer's options.
  /// With n / (n + 1) in pass n, from 0 on, the statistics are the mean of those of the passes.
  virtual void set_kept(std::optional<double> share) = 0;
  /// The share that the layer's options say.
  virtual double kept() const { return 0; }
};

}  // namespace lockstep
