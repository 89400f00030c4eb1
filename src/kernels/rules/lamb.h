// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// LAMB: You et al. 2020, arXiv:1904.00962, algorithm 2, in two passes. The first moves the moments and gives
// the direction u, whose norm is measured; the second computes u once more and moves the variable.
#pragma once

#include "kernels/rules/trust_rate.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// u = c1 m / (c2 sqrt(v) + epsilon) + decay w, where c1 and c2 are the corrections of bias.
struct LambNumbers {
  float c1, c2, epsilon, decay;
  LOCKSTEP_ELEMENT float direction(float w, float m, float v) const {
    return c1 * m / (c2 * root(v) + epsilon) + decay * w;
  }
};

/// Slots: m, v, and u, which is written.
struct LambDirection {
  static constexpr int kSlots = 3;
  LambNumbers numbers;
  float gain1, gain2;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    slot[0] += gain1 * (g - slot[0]);
    slot[1] += gain2 * (g * g - slot[1]);
    slot[2] = numbers.direction(w, slot[0], slot[1]);
  }
};

/// Slots: m, v, which are read.
struct LambMove {
  static constexpr int kSlots = 2;
  const double *w2, *x2;  ///< null: the rate is lr
  LambNumbers numbers;
  float lr, low, high;
  float rate = 0;
  LOCKSTEP_ELEMENT void begin() {
    const auto all = static_cast<double>(lr);
    rate = w2 == nullptr ? lr
                         : trust_rate(*w2, *x2, all, 0.0, 0.0, static_cast<double>(low),
                                      static_cast<double>(high), all);
  }
  LOCKSTEP_ELEMENT void apply(float& w, float /*g*/, float* slot) const {
    w -= rate * numbers.direction(w, slot[0], slot[1]);
  }
};

}  // namespace
}  // namespace lockstep
