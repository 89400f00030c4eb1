// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of all update rules (docs/adding_an_optimizer.md).
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "config/params.h"
#include "config/table.h"

namespace lockstep {

class UpdateRule;

struct RuleFactory {
  /// Throws the mistakes of options that have the right types and ranges, as Error(config) with position.
  void (*check)(const Params& options);
  /// The rule for options that check() accepts.
  std::unique_ptr<UpdateRule> (*make)(const Params& options);
};
/// Rule is constructed from Rule::Options, whose members the table binds (config/option.h). What only several
/// options together show is refused by a member function `void check(const Params&) const` of Options.
template <typename Rule>
void check_rule(const Params& p) {
  const auto options = p.as<typename Rule::Options>();
  if constexpr (requires { options.check(p); }) options.check(p);
}
template <typename Rule>
std::unique_ptr<UpdateRule> construct_rule(const Params& p) {
  return std::make_unique<Rule>(p.as<typename Rule::Options>());
}
template <typename Rule>
inline constexpr RuleFactory make_rule = {check_rule<Rule>, construct_rule<Rule>};

struct OptimizerEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  RuleFactory rule;
};
/// Lockstep's own rules, then those that add() added.
Table<OptimizerEntry>& optimizer_table();

}  // namespace lockstep
