// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The element functions of all rules. To add one: its file in kernels/rules, and here its name next to its
// #include (docs/adding_an_optimizer.md). For files compiled per instruction-set level (isa.h) and *.cu
// files.
#pragma once

#include "kernels/rules/adadelta.h"
#include "kernels/rules/adagrad.h"
#include "kernels/rules/adagrad_da.h"
#include "kernels/rules/adam.h"
#include "kernels/rules/ftrl.h"
#include "kernels/rules/gradient_descent.h"
#include "kernels/rules/lamb.h"
#include "kernels/rules/lars.h"
#include "kernels/rules/lion.h"
#include "kernels/rules/momentum.h"
#include "kernels/rules/muon.h"
#include "kernels/rules/nadam.h"
#include "kernels/rules/proximal_adagrad.h"
#include "kernels/rules/proximal_gradient_descent.h"
#include "kernels/rules/radam.h"
#include "kernels/rules/rmsprop.h"
#include "kernels/rules/shampoo.h"
#include "kernels/update.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Element functions. The number of one is its place in this list. It is in no file: the order may change.
template <typename... All>
struct RuleList {
  static constexpr int kCount = sizeof...(All);
  static_assert(((All::kSlots <= kMostSlots && sizeof(All) <= kRuleBytes) && ...));

  template <typename Rule>
  static constexpr int number_of() {
    const bool same[] = {__is_same(Rule, All)...};
    int number = 0;
    while (!same[number]) ++number;  // does not compile for a rule that is not in the list
    return number;
  }

  /// Calls body(rule) with the rule of a step.
  template <typename Body>
  static void with(const RuleStep& step, const Body& body) {
    (void)((step.rule == number_of<All>() && (body(numbers<All>(step)), true)) || ...);
  }

 private:
  template <typename Rule>
  static Rule numbers(const RuleStep& step) {
    Rule rule;
    __builtin_memcpy(&rule, step.numbers, sizeof rule);
    return rule;
  }
};

// clang-format off
using Rules = RuleList<
    GradientDescent,
    Momentum<false>, Momentum<true>,
    Adam<false>, Adam<true>,
    NAdam,
    RAdam,
    Adagrad,
    Adadelta,
    RmsProp<false, false>, RmsProp<false, true>, RmsProp<true, false>, RmsProp<true, true>,
    Ftrl<true>, Ftrl<false>,
    ProximalGradientDescent,
    ProximalAdagrad,
    AdagradDa,
    Lars<false>, Lars<true>,
    LambDirection, LambMove,
    MuonDirection<false>, MuonDirection<true>,
    GraftDirection<false>, GraftDirection<true>, MeanDirection, GraftedNorm,
    Lion
    >;
// clang-format on

/// `rule`, ready for elements: a rule that reads device memory first has a function begin().
template <typename Rule>
LOCKSTEP_ELEMENT Rule begun(Rule rule) {
  if constexpr (requires { rule.begin(); }) rule.begin();
  return rule;
}

template <typename Element>
RuleStep rule_step(const Element& rule) {
  RuleStep step;
  step.rule = Rules::number_of<Element>();
  __builtin_memcpy(step.numbers, &rule, sizeof rule);
  return step;
}

}  // namespace
}  // namespace lockstep
