// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the files of the element-wise rules share: their base class, the list of element functions, and the
// options that several rules have. `kPath` leads from the options of a rule to its RuleOptions; it is empty
// where the rule has no others.
#pragma once

#include <cmath>

#include "config/option.h"
#include "kernels/rules.h"
#include "optim/element_rule.h"
#include "optim/optimizer_table.h"

namespace lockstep {

template <auto... kPath>
constexpr ParamSpec rate_option(std::string_view fallback = kRequired) {
  return option<kPath..., &RuleOptions::learning_rate>("learning_rate", fallback, kRateRange, kRateHelp);
}
template <auto... kPath>
constexpr ParamSpec weight_decay_option(
    std::string_view fallback = "0", std::string_view help = "times the variable, is added to its gradient") {
  return option<kPath..., &RuleOptions::weight_decay>("weight_decay", fallback, kDecayRange, help);
}
template <auto... kPath>
constexpr ParamSpec decoupled_option() {
  return option<kPath..., &RuleOptions::decoupled_weight_decay>(
      "decoupled_weight_decay", "false", {},
      "variables are multiplied by 1 - learning rate * weight_decay instead (Loshchilov and Hutter 2019)");
}
template <auto... kPath>
constexpr ParamSpec lazy_option() {
  return option<kPath..., &RuleOptions::lazy>(
      "lazy", "false", {},
      "rows of tables (embeddings) that a step does not touch stay as they are, slots too");
}
/// Help of a weight decay that is always decoupled.
inline constexpr std::string_view kDecoupledHelp =
    "variables are multiplied by 1 - learning rate * weight_decay before the update";

}  // namespace lockstep
