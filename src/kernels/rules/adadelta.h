// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adadelta: Zeiler 2012, arXiv:1212.5701, algorithm 1, with a rate.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: the mean square of gradients, the mean square of moves.
struct Adadelta {
  static constexpr int kSlots = 2;
  float lr, rho, gain, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float s = rho * slot[0] + gain * (g * g);
    const float move = g * root(slot[1] + epsilon) / root(s + epsilon);
    slot[0] = s;
    slot[1] = rho * slot[1] + gain * (move * move);
    w -= lr * move;
  }
};

}  // namespace
}  // namespace lockstep
