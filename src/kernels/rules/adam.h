// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adam: Kingma and Ba 2015, arXiv:1412.6980, section 2, last paragraph: the bias correction is part of the
// rate alpha. AMSGrad: Reddi et al. 2018, arXiv:1904.09237, with the largest uncorrected second moment so
// far. The rate with bias correction is computed from the betas in float32 as the element function uses them:
// 1 - 0.999 in float32 has a relative error of 1.3e-5.
//
// AdamW: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2, with the weight decay times the rate and
// epsilon added to the corrected root, as in PyTorch: w *= 1 - lr weight_decay;
// w -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon). The element function is that of Adam with
// epsilon sqrt(1 - beta2^t).
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: m, v, and with AMSGrad the largest v.
template <bool kAmsgrad>
struct Adam {
  static constexpr int kSlots = kAmsgrad ? 3 : 2;
  float alpha, gain1, gain2, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float m = slot[0] + gain1 * (g - slot[0]);
    const float v = slot[1] + gain2 * (g * g - slot[1]);
    slot[0] = m;
    slot[1] = v;
    float largest = v;
    if constexpr (kAmsgrad) slot[2] = largest = slot[2] > v ? slot[2] : v;
    w -= alpha * m / (root(largest) + epsilon);
  }
};

}  // namespace
}  // namespace lockstep
