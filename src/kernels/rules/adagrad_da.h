// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adagrad with dual averaging: Duchi et al. 2011, section 3. The value before the update is not used.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: the sum of gradients, the accumulated squares.
struct AdagradDa {
  static constexpr int kSlots = 2;
  float lr, threshold, constant;  ///< l1 t, l2 t lr
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float sum = slot[0] + g, squares = slot[1] + g * g;
    slot[0] = sum;
    slot[1] = squares;
    w = 0.0F - lr * shrunk(sum, threshold) / (constant + root(squares));
  }
};

}  // namespace
}  // namespace lockstep
