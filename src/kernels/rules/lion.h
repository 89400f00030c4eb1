// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lion: Chen et al. 2023, arXiv:2302.06675, algorithm 2. The sign of 0 is 0.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slot: the mean of gradients.
struct Lion {
  static constexpr int kSlots = 1;
  float lr, beta1, gain1, beta2, gain2;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float direction = beta1 * slot[0] + gain1 * g;
    slot[0] = beta2 * slot[0] + gain2 * g;
    const float step = with_sign_of(lr, direction);
    w -= magnitude(direction) > 0.0F ? step : direction;  // 0, or NaN
  }
};

}  // namespace
}  // namespace lockstep
