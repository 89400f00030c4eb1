// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer_options.h"

#include <algorithm>

#include "config/named_options.h"
#include "config/option.h"
#include "optim/optimizer.h"
#include "optim/update_rule.h"
#include "optim/variable_groups.h"

namespace lockstep {

namespace {

/// The keys next to the rule, as they are written.
struct Section {
  bool shard = false;
  Gating gating = Gating::graph;
  Node groups;
};

constexpr ParamSpec kSectionTable[] = {
    option<&Section::shard>("shard", "false", {},
                            "Each rank holds the slots of a part of the variables, updates that part and "
                            "sends it to the others (docs/sharding.md). The results are the same.",
                            Change::free),
    option<&Section::gating>("gating", "graph", one_of("graph|op|none"),
                             "When variables are updated. graph: when all gradients of the step are summed; "
                             "op: those of a layer when the sums of the layer are there, beside the rest of "
                             "the backward pass; none: each when its own sum is there. The results are the "
                             "same; what needs all gradients first makes it graph (docs/optimizers.md).",
                             Change::free),
    option<&Section::groups>(
        "groups", "null", in_words("list or null"),
        "Variables with another learning rate, weight decay or rule, or frozen: see the options of a group."),
};

bool is_beside(const std::string& key) {
  return std::ranges::find(kSectionTable, key, &ParamSpec::name) != std::end(kSectionTable);
}

bool is_rule(const std::string& key) { return optimizer_table().find(key) != nullptr; }
}  // namespace

std::span<const ParamSpec> optimizer_section_table() { return kSectionTable; }

OptimizerSection split_optimizer_section(const Node& node) {
  if (node.kind != Node::Kind::map || node.entries.size() < 2) return {node, {}};
  // Next to one known rule, every other key belongs to the section, known or misspelt.
  const bool one_rule =
      std::ranges::count_if(node.entries, [](const auto& entry) { return is_rule(entry.first); }) == 1;
  OptimizerSection section{node, node};
  for (Node* part : {&section.rule, &section.beside}) {
    part->entries.clear();
    part->entry_where.clear();
  }
  for (std::size_t i = 0; i < node.entries.size(); ++i) {
    const std::string& key = node.entries[i].first;
    Node& part = is_beside(key) || (one_rule && !is_rule(key)) ? section.beside : section.rule;
    part.entries.push_back(node.entries[i]);
    if (!node.entry_where.empty()) part.entry_where.push_back(node.entry_where[i]);
  }
  return section;
}

std::unique_ptr<Optimizer> OptimizerOptions::make() const {
  if (entry.name.empty()) return nullptr;
  return std::make_unique<Optimizer>(entry.rule.make(options), groups);
}

std::function<bool(const std::string&)> OptimizerOptions::frozen_variables() const {
  if (groups == nullptr || std::ranges::none_of(*groups, &VariableGroup::frozen)) return {};
  return [all = groups](const std::string& variable) {
    const int group = group_of(*all, variable);
    return group >= 0 && (*all)[static_cast<std::size_t>(group)].frozen;
  };
}

void OptimizerOptions::check(const VariableStore& variables) const {
  if (groups != nullptr) check_groups(*groups, variables);
}

OptimizerOptions optimizer_options(const Node& node) {
  const auto [rule, beside] = split_optimizer_section(node);
  const NamedOptions named = named_options(rule, "optimizer");
  const OptimizerEntry& entry = optimizer_table().at(named);
  ErrorCollector mistakes;
  OptimizerOptions options{.entry = entry,
                           .options = Params(named.options, entry.table, "optimizer " + named.name, mistakes),
                           .section = Params(beside, kSectionTable, "section optimizer", mistakes)};
  mistakes.attempt([&] { entry.rule.check(options.options); });
  mistakes.attempt([&] {
    const auto section = options.section.as<Section>();
    options.shard = section.shard;
    options.gating = section.gating;
    if (mistakes.empty() && !is_null(section.groups))
      options.groups = std::make_shared<const std::vector<VariableGroup>>(
          variable_groups(section.groups, entry, named.options));
  });
  mistakes.throw_if_any();
  return options;
}

}  // namespace lockstep
