// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent: w -= lr g.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

struct GradientDescent {
  static constexpr int kSlots = 0;
  float lr;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float*) const { w -= lr * g; }
};

}  // namespace
}  // namespace lockstep
