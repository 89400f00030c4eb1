// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One step of an element-wise rule without its type, for the interface of the kernels (kernels/update.h).
#pragma once

namespace lockstep {

inline constexpr int kMostSlots = 3, kRuleBytes = 48;

/// One step of an element-wise rule, made by rule_step() of kernels/rules.h.
struct RuleStep {
  int rule = -1;  ///< its number in the list of rules
  /// Weight decay. Before the rule, `coupled` w is added to the gradient, and w is multiplied by `kept`.
  float coupled = 0, kept = 1;
  bool decays() const { return coupled != 0 || kept != 1; }
  alignas(8) unsigned char numbers[kRuleBytes] = {};  ///< those of the rule
};

/// Where a range's slots are; unused ones are null.
struct RuleSlots {
  float* at[kMostSlots] = {};
};

}  // namespace lockstep
