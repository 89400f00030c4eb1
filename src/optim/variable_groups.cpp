// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/variable_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/name_choice.h"
#include "config/named_options.h"
#include "config/option.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

constexpr std::string_view kDecay = "weight_decay", kDecayVectors = "decay_vectors";

/// A group as it is written.
struct Group {
  std::vector<std::string> variables;
  double learning_rate_factor = 1;
  Node weight_decay, rule;
  bool frozen = false;
};
constexpr ParamSpec kTable[] = {
    option<&Group::variables>(
        "variables", kRequired, {},
        "Patterns of names of variables, or of layers for all of theirs, as in [\"*/bias\", \"*/gamma\"]. A "
        "variable belongs to the first group that matches it."),
    option<&Group::learning_rate_factor>("learning_rate_factor", "1", above(0).up_to(1e6),
                                         "The rule's learning rate is multiplied by it."),
    option<&Group::weight_decay>(
        kDecay, "null", kDecayRange,
        "In place of the rule's, and used by the rule in the same way. null: that of the rule."),
    option<&Group::rule>("rule", "null", {},
                         "An update rule of its own, as its name alone or with options: see the optimizers. "
                         "null: that of the section."),
    option<&Group::frozen>(
        "frozen", "false", {},
        "The variables keep their values, as those of model.frozen: they have no gradient and no slots."),
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

std::vector<NamePattern> patterns_of(const Params& p, const Group& written) {
  const std::string_view option = option_name<&Group::variables>(p);
  std::vector<NamePattern> patterns;
  for (const std::string& text : written.variables) {
    try {
      patterns.emplace_back(text);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
      throw p.error(option, error.what_happened(), error.advice());
    }
  }
  if (patterns.empty()) throw p.error(option, "there is no pattern", "Give one, such as \"*/bias\".");
  return patterns;
}

/// The mistakes of a group whose options do not go together.
void require_sense(const Params& p, const Group& written) {
  const std::string_view factor = option_name<&Group::learning_rate_factor>(p),
                         rule = option_name<&Group::rule>(p);
  const bool has_decay = !is_null(written.weight_decay), has_rule = !is_null(written.rule);
  const auto refuse_beside = [&](std::string_view key, std::string_view advice) {
    for (const auto& [other, is_set] :
         {std::pair(factor, p.given(factor)), std::pair(kDecay, has_decay), std::pair(rule, has_rule)})
      if (other != key && is_set)
        throw p.error(other, fmt::format("it has no meaning beside {}", key), std::string(advice));
  };
  if (written.frozen)
    return refuse_beside(option_name<&Group::frozen>(p), "Remove it: frozen variables are not updated.");
  if (has_rule) return refuse_beside(rule, "Give it as an option of the group's own rule.");
  if (!p.given(factor) && !has_decay)
    throw p.error(option_name<&Group::variables>(p), "the group changes nothing",
                  "Give learning_rate_factor, weight_decay, rule or frozen: true. learning_rate_factor: 1 "
                  "makes an exception from the groups after it.");
}

VariableGroup read_group(const Node& node, const OptimizerEntry& rule, const Node& options) {
  const Params p(node, kTable, "optimizer.groups");
  const auto written = p.as<Group>();
  VariableGroup group{.patterns = patterns_of(p, written),
                      .where = p.where(option_name<&Group::variables>(p)),
                      .frozen = written.frozen,
                      .entry = rule,
                      .options = {}};
  require_sense(p, written);
  if (group.frozen) return group;
  Node of_rule = options;
  if (!is_null(written.rule)) {
    const NamedOptions named = named_options(written.rule, "optimizer");
    group.entry = optimizer_table().at(named);
    group.own_rule = true;
    of_rule = named.options;
  } else if (!is_null(written.weight_decay)) {
    if (!has_option(rule, kDecay))
      throw p.error(kDecay, fmt::format("the rule {} has no weight decay", rule.name),
                    "L2 of chosen variables, as a part of the loss, is model.regularization.");
    group.own_decay = true;
    of_rule = with(of_rule, kDecay, written.weight_decay, p.where(kDecay));
    // The group's number is for all of its variables.
    if (has_option(rule, kDecayVectors)) of_rule = with(of_rule, kDecayVectors, Node::scalar("true"), "");
  }
  group.learning_rate_factor = written.learning_rate_factor;
  group.options = Params(of_rule, group.entry.table, fmt::format("optimizer {}", group.entry.name));
  group.entry.rule.check(group.options);
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

std::unique_ptr<UpdateRule> rule_of_group(const VariableGroup& group, int number, const UpdateRule& first) {
  if (group.frozen) return nullptr;
  std::unique_ptr<UpdateRule> rule = group.entry.rule.make(group.options);
  if (!group.own_rule) rule->follow(first, group.learning_rate_factor, group.own_decay ? kDecay : "");
  for (ScheduledNumber& scheduled : rule->numbers())
    scheduled.set_option(fmt::format("group{}/{}", number, scheduled.option()));
  return rule;
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
    throw Error(ErrorKind::config,
                fmt::format("optimizer.groups: group {} has no variable: earlier groups take all that it "
                            "matches, such as {}, which belongs to group {}",
                            i + 1, *taken, group_of(groups, *taken) + 1),
                group.where,
                "A variable belongs to the first group that matches it: put the special group before the "
                "general one.");
  }
}

}  // namespace lockstep
