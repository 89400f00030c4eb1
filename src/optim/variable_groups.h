// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// optimizer.groups: variables that are updated in another way than the others, chosen by their names. A
// variable belongs to the first group that matches it. Every rank has the same groups.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/name_pattern.h"
#include "optim/optimizer_table.h"

namespace lockstep {

class VariableStore;

/// Options of an item of optimizer.groups.
std::span<const ParamSpec> group_table();

struct VariableGroup {
  std::vector<NamePattern> patterns;
  std::string where;
  bool frozen = false;
  /// The rule: the section's with another weight decay, or one of the group's own.
  OptimizerEntry entry{};
  Params options;
  bool own_rule = false, own_decay = false;
  double learning_rate_factor = 1;

  /// A pattern matches the name, or a part of it that ends before a '/': the name of its layer or block.
  bool matches(std::string_view variable) const;
};

/// `rule` and `options`: those of the section. Throws Error(config) with position.
std::vector<VariableGroup> variable_groups(const Node& list, const OptimizerEntry& rule, const Node& options);

/// A rule that follows `first`, the section's, which outlives it, in what the group does not change; null:
/// the group is frozen. `number`: of the group, from 1 on, for the names of its numbers.
std::unique_ptr<UpdateRule> rule_of_group(const VariableGroup& group, int number, const UpdateRule& first);

/// The number of the variable's group, or -1.
int group_of(std::span<const VariableGroup> groups, std::string_view variable);

/// Throws Error(config) with position for a pattern that matches no variable, and for a group all of whose
/// variables belong to earlier ones.
void check_groups(std::span<const VariableGroup> groups, const VariableStore& variables);

}  // namespace lockstep
