// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Momentum: a = momentum a + g; w -= lr a. Nesterov: w -= lr g + lr momentum a, with the new a. Sutskever et
// al. 2013.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slot: the accumulated gradient a.
template <bool kNesterov>
struct Momentum {
  static constexpr int kSlots = 1;
  float lr, momentum, lr_momentum;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float a = momentum * slot[0] + g;
    slot[0] = a;
    w -= kNesterov ? lr * g + lr_momentum * a : lr * a;
  }
};

}  // namespace
}  // namespace lockstep
