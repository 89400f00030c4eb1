// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The element-wise parts of Shampoo: Anil et al. 2020, arXiv:2002.09018, section 4. The first function moves
// the moments and gives the direction of the rule whose norms Shampoo takes (grafting); the second scales a
// preconditioned block to a norm.
#pragma once

#include "kernels/rules/trust_rate.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Writes the direction c1 m / (c2 sqrt(v) + epsilon), with c1 and c2 the corrections of bias, to w. Slots:
/// the mean m of gradients, and v: their mean square (kSum: the sum of squares).
template <bool kSum>
struct GraftDirection {
  static constexpr int kSlots = 2;
  float gain1, gain2, c1, c2, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    slot[0] += gain1 * (g - slot[0]);
    slot[1] += kSum ? g * g : gain2 * (g * g - slot[1]);
    w = c1 * slot[0] / (c2 * root(slot[1]) + epsilon);
  }
};

/// The same without a second moment: writes c1 m. Slot: m.
struct MeanDirection {
  static constexpr int kSlots = 1;
  float gain, c1;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    slot[0] += gain * (g - slot[0]);
    w = c1 * slot[0];
  }
};

/// w = g |d| / |x|, where `d2` and `x2` are sums of squares in device memory; 0 where a norm is zero. Null:
/// w = factor g.
struct GraftedNorm {
  static constexpr int kSlots = 0;
  const double *d2, *x2;
  float factor = 0;
  LOCKSTEP_ELEMENT void begin() {
    if (d2 != nullptr) factor = trust_rate(*d2, *x2, 1.0, 0.0, 0.0, 0.0, __builtin_inf(), 0.0);
  }
  LOCKSTEP_ELEMENT void apply(float& w, float g, float*) const { w = factor * g; }
};

}  // namespace
}  // namespace lockstep
