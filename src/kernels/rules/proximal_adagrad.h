// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Proximal Adagrad: the rule of proximal_gradient_descent.h with the rate of Adagrad of each element. Duchi
// et al. 2011.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slot: the accumulated squares.
struct ProximalAdagrad {
  static constexpr int kSlots = 1;
  float lr, l1, l2;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float s = slot[0] + g * g;
    slot[0] = s;
    const float rate = lr / root(s);
    w = shrunk(w - rate * g, rate * l1) / (1.0F + rate * l2);
  }
};

}  // namespace
}  // namespace lockstep
