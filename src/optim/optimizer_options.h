// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `optimizer` of a configuration: an update rule with its options, and the keys next to it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "optim/gating.h"
#include "optim/optimizer_table.h"

namespace lockstep {

class Optimizer;
class VariableStore;
struct VariableGroup;  // optim/variable_groups.h

/// The keys of the section that stand next to the name of the rule.
std::span<const ParamSpec> optimizer_section_table();
/// The section in two parts: `rule` is a name, or a map of one name to its options; `beside` a map of the
/// other keys, or null. A map that names no rule alone is `rule` whole.
struct OptimizerSection {
  Node rule, beside;
};
OptimizerSection split_optimizer_section(const Node& node);

struct OptimizerOptions {
  OptimizerEntry entry = {};
  Params options = {};
  Params section = {};  ///< checked against optimizer_section_table()
  /// The slots are distributed over the ranks, each of which updates the variables of its part.
  bool shard = false;
  Gating gating = Gating::graph;
  std::shared_ptr<const std::vector<VariableGroup>> groups = {};  ///< null: none
  /// A new optimizer without slots; null: the configuration has none.
  std::unique_ptr<Optimizer> make() const;
  /// Whether a group freezes the variable.
  std::function<bool(const std::string& variable)> frozen_variables() const;
  /// Throws Error(config) with position for a group that fits no variable of the model.
  void check(const VariableStore& variables) const;
};
/// `node`: a name, or a map of one name to its options, with optimizer_section_table()'s keys next to it.
/// Throws all mistakes as Error(config) with position.
OptimizerOptions optimizer_options(const Node& node);

}  // namespace lockstep
