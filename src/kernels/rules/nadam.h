// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// NAdam: Dozat 2016, "Incorporating Nesterov momentum into Adam", with a momentum that grows with the step.
// The form is that of PyTorch: the momentum of step t is mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2), and
// the bias correction of the mean is a product of these. The bias corrections are parts of the factors.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: m, v.
struct NAdam {
  static constexpr int kSlots = 2;
  float of_gradient, of_m, gain1, gain2, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float m = slot[0] + gain1 * (g - slot[0]);
    const float v = slot[1] + gain2 * (g * g - slot[1]);
    slot[0] = m;
    slot[1] = v;
    w -= (of_gradient * g + of_m * m) / (root(v) + epsilon);
  }
};

}  // namespace
}  // namespace lockstep
