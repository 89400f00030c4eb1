// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of all update rules (docs/adding_an_optimizer.md).
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "config/params.h"
#include "config/table.h"
#include "optim/update_rule.h"

namespace lockstep {

struct OptimizerEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::unique_ptr<UpdateRule> (*make)(const Params&);
};
/// A factory for OptimizerEntry::make: Rule is constructed from Rule::Options, whose members the table binds
/// (config/option.h), and from Params, too, if it refuses some of them.
template <typename Rule>
std::unique_ptr<UpdateRule> make_rule(const Params& p) {
  using Options = typename Rule::Options;
  if constexpr (std::is_constructible_v<Rule, Options, const Params&>)
    return std::make_unique<Rule>(p.as<Options>(), p);
  else
    return std::make_unique<Rule>(p.as<Options>());
}
/// Lockstep's own rules, then those that add() added.
Table<OptimizerEntry>& optimizer_table();

}  // namespace lockstep
