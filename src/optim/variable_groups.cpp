// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/variable_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/name_choice.h"
#include "config/named_options.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

constexpr std::string_view kDecay = "weight_decay", kDecayVectors = "decay_vectors";

constexpr ParamSpec kTable[] = {
    {"variables",
     ParamType::strings,
     kRequired,
     {},
     "Patterns of names of variables, or of layers for all of theirs, as in [\"*/bias\", \"*/gamma\"]. A "
     "variable "
     "belongs to the first group that matches it."},
    {"learning_rate_factor", ParamType::real, "1", above(0).up_to(1e6),
     "The rule's learning rate is multiplied by it."},
    {"weight_decay", ParamType::node, "null", kDecayRange,
     "In place of the rule's, and used by the rule in the same way. null: that of the rule."},
    {"rule",
     ParamType::node,
     "null",
     {},
     "An update rule of its own, as its name alone or with options: see the optimizers. null: that of the "
     "section."},
    {"frozen",
     ParamType::boolean,
     "false",
     {},
     "The variables keep their values, as those of model.frozen: they have no gradient and no slots."},
};

bool has_option(const OptimizerEntry& entry, std::string_view name) {
  return std::ranges::find(entry.table, name, &ParamSpec::name) != entry.table.end();
}

/// The map with `key` set.
Node with(Node map, std::string_view key, const Node& value, const std::string& where) {
  if (map.kind != Node::Kind::map) {
    const std::string position = map.where;
    map = {};
    map.kind = Node::Kind::map;
    map.where = position;
  }
  for (auto& [name, old] : map.entries)
    if (name == key) {
      old = value;
      return map;
    }
  map.entries.emplace_back(std::string(key), value);
  map.entry_where.resize(map.entries.size());
  map.entry_where.back() = where;
  return map;
}

void read_patterns(const Params& p, VariableGroup& group) {
  for (const std::string& text : p.strings("variables")) {
    try {
      group.patterns.emplace_back(text);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
      throw p.error("variables", error.what_happened(), error.advice());
    }
  }
  if (group.patterns.empty())
    throw p.error("variables", "there is no pattern", "Give one, such as \"*/bias\".");
}

/// The mistakes of a group whose options do not go together.
void require_sense(const Params& p) {
  const auto refuse_beside = [&](std::string_view key, std::string_view advice) {
    for (const std::string_view other :
         {std::string_view("learning_rate_factor"), kDecay, std::string_view("rule")})
      if (other != key && p.given(other) && p.has(other))
        throw p.error(other, fmt::format("it has no meaning beside {}", key), std::string(advice));
  };
  if (p.boolean("frozen")) return refuse_beside("frozen", "Remove it: frozen variables are not updated.");
  if (p.has("rule")) return refuse_beside("rule", "Give it as an option of the group's own rule.");
  if (!p.given("learning_rate_factor") && !p.has(kDecay))
    throw p.error(
        "variables", "the group changes nothing",
        "Give learning_rate_factor, weight_decay, rule or frozen: true. learning_rate_factor: 1 makes "
        "an exception from the groups after it.");
}

VariableGroup read_group(const Node& node, const OptimizerEntry& rule, const Node& options) {
  const Params p(node, kTable, "optimizer.groups");
  VariableGroup group{
      .where = p.where("variables"), .frozen = p.boolean("frozen"), .entry = rule, .options = {}};
  read_patterns(p, group);
  require_sense(p);
  if (group.frozen) return group;
  Node of_rule = options;
  if (p.has("rule")) {
    const NamedOptions named = named_options(p.node("rule"), "optimizer");
    group.entry = optimizer_table().at(named);
    group.own_rule = true;
    of_rule = named.options;
  } else if (p.has(kDecay)) {
    if (!has_option(rule, kDecay))
      throw p.error(kDecay, fmt::format("the rule {} has no weight decay", rule.name),
                    "L2 of chosen variables, as a part of the loss, is model.regularization.");
    group.own_decay = true;
    of_rule = with(of_rule, kDecay, p.node(kDecay), p.where(kDecay));
    // The group's number is for all of its variables.
    if (has_option(rule, kDecayVectors)) of_rule = with(of_rule, kDecayVectors, Node::scalar("true"), "");
  }
  group.learning_rate_factor = p.real("learning_rate_factor");
  group.options = Params(of_rule, group.entry.table, fmt::format("optimizer {}", group.entry.name));
  group.entry.make(group.options);
  return group;
}

}  // namespace

std::span<const ParamSpec> group_table() { return kTable; }

bool VariableGroup::matches(std::string_view variable) const {
  return std::ranges::any_of(patterns,
                             [&](const NamePattern& pattern) { return matches_path(pattern, variable); });
}

std::vector<VariableGroup> variable_groups(const Node& list, const OptimizerEntry& rule,
                                           const Node& options) {
  std::vector<VariableGroup> groups;
  if (is_null(list)) return groups;
  if (list.kind != Node::Kind::list)
    throw Error(ErrorKind::config, "optimizer.groups must be a list", list.where,
                "Write `groups: [{variables: \"*/bias\", weight_decay: 0}]`.");
  ErrorCollector mistakes;
  for (const Node& item : list.items)
    mistakes.attempt([&] { groups.push_back(read_group(item, rule, options)); });
  mistakes.throw_if_any();
  return groups;
}

int group_of(std::span<const VariableGroup> groups, std::string_view variable) {
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (groups[i].matches(variable)) return static_cast<int>(i);
  return -1;
}

void check_groups(std::span<const VariableGroup> groups, const VariableStore& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables.variables())
    if (variable.parameter) names.push_back(variable.name);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const VariableGroup& group = groups[i];
    for (const NamePattern& pattern : group.patterns)
      if (std::ranges::none_of(names, [&](const auto& name) { return matches_path(pattern, name); }))
        throw Error(
            ErrorKind::config,
            fmt::format("optimizer.groups: '{}' matches no variable that can be trained", pattern.text()),
            group.where, advice_for_names(pattern.text(), names, "variables"));
    if (std::ranges::any_of(names,
                            [&](const auto& name) { return group_of(groups, name) == static_cast<int>(i); }))
      continue;
    const auto taken = std::ranges::find_if(names, [&](const auto& name) { return group.matches(name); });
    throw Error(
        ErrorKind::config,
        fmt::format("optimizer.groups: group {} has no variable: earlier groups take all that it matches, "
                    "such as {}, which belongs to group {}",
                    i + 1, *taken, group_of(groups, *taken) + 1),
        group.where,
        "A variable belongs to the first group that matches it: put the special group before the general "
        "one.");
  }
}

}  // namespace lockstep
