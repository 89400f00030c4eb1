// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What `precision` of a configuration says: the type of activations, and the loss scale. In float16 the
// gradients of activations are small enough to vanish (below 2^-24): the loss is multiplied by a scale before
// the backward pass, the summed gradients are divided by it before anything looks at them. The scale is a
// power of two, so that neither changes a bit of what neither vanishes nor overflows. Micikevicius et al.
// 2018, arXiv:1710.03740, section 3.2.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "driver/config/config.h"

namespace lockstep {

/// From precision.compute.
DType activation_type(const Config& config);

struct LossScale {
  static constexpr double kDynamicInitial = 0x1p16;
  bool dynamic = false;
  double initial = 1;                ///< a power of two
  std::int64_t growth_steps = 2000;  ///< doubled after so many steps with finite gradients
  static constexpr double kMost = 0x1p60;
  /// Gradients are divided by it, and looked at.
  bool used() const { return dynamic || initial != 1; }
};

/// How a dynamic scale moves: halved by gradients that are not finite, doubled after growth_steps steps on
/// end with finite ones. Both numbers are what a run must keep.
struct LossScaleState {
  double scale = 1, good_steps = 0;
  void finite(const LossScale& options);
  /// False: the scale is 1 and cannot be halved.
  bool overflowed();
};

/// From precision.loss_scale: auto, dynamic or a number. Throws Error(config) for a number that is no power
/// of two.
LossScale loss_scale(const Config& config);

}  // namespace lockstep
