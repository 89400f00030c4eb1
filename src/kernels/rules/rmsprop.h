// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// RMSProp: Hinton, lecture 6 of "Neural networks for machine learning"; centered: Graves 2013,
// arXiv:1308.0850, equations 38 to 45. Epsilon is within the root, and the rate within the momentum.
// The mean square starts at 1. Without momentum there is no slot for it.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: the mean square of gradients; with momentum the accumulated moves; centered the mean of gradients.
template <bool kMomentum, bool kCentered>
struct RmsProp {
  static constexpr int kSlots = 1 + kMomentum + kCentered;
  float lr, gain, momentum, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float square = slot[0] + gain * (g * g - slot[0]);
    slot[0] = square;
    float variance = square;
    if constexpr (kCentered) {
      const float mean = slot[kSlots - 1] + gain * (g - slot[kSlots - 1]);
      slot[kSlots - 1] = mean;
      variance = square - mean * mean;
      variance = variance < 0.0F ? 0.0F : variance;  // by rounding; NaN stays
    }
    float move = lr * g / root(variance + epsilon);
    if constexpr (kMomentum) slot[1] = move = momentum * slot[1] + move;
    w -= move;
  }
};

}  // namespace
}  // namespace lockstep
