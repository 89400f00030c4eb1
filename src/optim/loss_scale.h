// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The loss scale. In float16 the gradients of activations are small enough to vanish (below 2^-24): the loss
// is multiplied by a scale before the backward pass, and the summed gradients are divided by it before
// anything reads them. The scale is a power of two, so it changes no bit of a number that neither underflows
// nor overflows. Micikevicius et al. 2018, arXiv:1710.03740, section 3.2.
#pragma once

#include <cstdint>

namespace lockstep {

struct LossScale {
  static constexpr double kDynamicInitial = 0x1p16;
  static constexpr double kMost = 0x1p60;
  bool dynamic = false;
  double initial = 1;                ///< a power of two
  std::int64_t growth_steps = 2000;  ///< consecutive steps with finite gradients before the scale is doubled
  /// Gradients are divided by the scale and checked for overflow.
  bool used() const { return dynamic || initial != 1; }
};

/// A dynamic scale is halved when gradients are not finite, and doubled after growth_steps consecutive steps
/// with finite ones. A checkpoint keeps both numbers.
struct LossScaleState {
  double scale = 1, good_steps = 0;
  void finite(const LossScale& options);
  /// False: the scale is 1 and cannot be halved.
  bool overflowed();
};

}  // namespace lockstep
