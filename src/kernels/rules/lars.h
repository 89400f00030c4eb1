// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// LARS: You, Gitman and Ginsburg 2017, arXiv:1708.03888, algorithm 1 with equation 6: momentum with a rate of
// its own per variable. The weight decay is RuleStep::coupled, in addition to `decay` in the rate.
#pragma once

#include "kernels/rules/trust_rate.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// a = momentum a + rate g; w -= a. Nesterov: w -= momentum a + rate g, with the new a. Slot: a.
template <bool kNesterov>
struct Lars {
  static constexpr int kSlots = 1;
  const double *w2, *x2;  ///< null: the rate is lr
  double decay;
  float lr, coefficient, epsilon, momentum;
  float rate = 0;
  LOCKSTEP_ELEMENT void begin() {
    const auto all = static_cast<double>(lr);
    rate = w2 == nullptr ? lr
                         : trust_rate(*w2, *x2, all * static_cast<double>(coefficient), decay,
                                      static_cast<double>(epsilon), 0.0, __builtin_inf(), all);
  }
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float move = rate * g;
    const float a = momentum * slot[0] + move;
    slot[0] = a;
    w -= kNesterov ? momentum * a + move : a;
  }
};

}  // namespace
}  // namespace lockstep
