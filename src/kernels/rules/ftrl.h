// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// FTRL-Proximal: McMahan et al. 2013, "Ad click prediction: a view from the trenches", algorithm 1, with the
// parameters of TensorFlow. The accumulator grows by g^2 without the shrinkage, as in TensorFlow 2.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: the accumulated squares, z. kRoot: the power of the rate is -1/2.
template <bool kRoot>
struct Ftrl {
  static constexpr int kSlots = 2;
  float per_lr;        ///< 1 / lr
  float l1, twice_l2;  ///< twice_l2: 2 l2 + beta / lr
  float shrinkage;     ///< 2 l2_shrinkage
  double power;        ///< - learning_rate_power
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float before = slot[0], after = before + g * g;
    float difference, last;
    if constexpr (kRoot) {
      last = root(after);
      difference = last - root(before);
    } else {
      const double end = power_of(after, power);
      last = static_cast<float>(end);
      difference = static_cast<float>(end - power_of(before, power));
    }
    const float z = slot[1] + (g + shrinkage * w - difference * per_lr * w);
    slot[0] = after;
    slot[1] = z;
    const float rest = magnitude(z) - l1;
    const float moved = rest / (last * per_lr + twice_l2);
    w = 0.0F - with_sign_of(rest <= 0.0F ? 0.0F : moved, z);
  }
};

}  // namespace
}  // namespace lockstep
