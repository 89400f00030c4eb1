// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// RAdam: Liu et al. 2020, arXiv:1908.03265, algorithm 2, in the form of PyTorch: epsilon is added to the
// uncorrected root. A step is rectified, or, as long as the variance of the second moment is not tractable,
// one of momentum alone: then `adaptive` is 0 and epsilon 1, so the divisor is 1. Both corrections of bias
// and the rectification are parts of alpha.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: m, v.
struct RAdam {
  static constexpr int kSlots = 2;
  float alpha, gain1, gain2, adaptive, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float m = slot[0] + gain1 * (g - slot[0]);
    const float v = slot[1] + gain2 * (g * g - slot[1]);
    slot[0] = m;
    slot[1] = v;
    w -= alpha * m / (adaptive * root(v) + epsilon);
  }
};

}  // namespace
}  // namespace lockstep
