// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The mean of gradients that Muon orthogonalizes: m += gain (g - m). Nesterov: the direction is
// g + momentum (m - g) with the new m. As torch.optim.Muon of PyTorch 2.9.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Writes the direction to w. Slot: the mean m.
template <bool kNesterov>
struct MuonDirection {
  static constexpr int kSlots = 1;
  float gain, momentum;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float m = slot[0] + gain * (g - slot[0]);
    slot[0] = m;
    w = kNesterov ? g + momentum * (m - g) : m;
  }
};

}  // namespace
}  // namespace lockstep
