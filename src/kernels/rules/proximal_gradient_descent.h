// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Proximal gradient descent (FOBOS): Duchi and Singer 2009, section 5: u = w - lr g;
// w = sign(u) max(|u| - lr l1, 0) / (1 + lr l2).
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

struct ProximalGradientDescent {
  static constexpr int kSlots = 0;
  float lr, threshold, divisor;  ///< lr l1, 1 + lr l2
  LOCKSTEP_ELEMENT void apply(float& w, float g, float*) const {
    w = shrunk(w - lr * g, threshold) / divisor;
  }
};

}  // namespace
}  // namespace lockstep
