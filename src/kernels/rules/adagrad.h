// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adagrad: Duchi et al. 2011: s += g^2; w -= lr g / (sqrt(s) + epsilon).
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slot: the accumulated squares s.
struct Adagrad {
  static constexpr int kSlots = 1;
  float lr, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float s = slot[0] + g * g;
    slot[0] = s;
    w -= lr * g / (root(s) + epsilon);
  }
};

}  // namespace
}  // namespace lockstep
