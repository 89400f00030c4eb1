// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which layers of a graph are frozen: those that the configuration names, and those to which no loss sends a
// gradient.
#include <algorithm>

#include "config/name_choice.h"
#include "core/scalar.h"
#include "model/graph.h"

namespace lockstep {

namespace {

bool any_matches_layer(std::span<const FreezeRule> rules, const std::string& layer) {
  return std::ranges::any_of(rules, [&](const FreezeRule& rule) {
    return !looks_ahead(rule.pattern) && rule.pattern.matches(layer);
  });
}
bool any_matches_variable(std::span<const FreezeRule> rules, const std::string& variable) {
  return std::ranges::any_of(rules, [&](const FreezeRule& rule) {
    return looks_ahead(rule.pattern) ? matches_path(rule.pattern, variable) : rule.pattern.matches(variable);
  });
}

}  // namespace

/// By node: a loss sends a gradient to it, unless all paths pass a layer that stops gradients.
std::vector<bool> Graph::reached_by_losses() const {
  std::vector<bool> reached(nodes_.size(), false);
  const auto reach = [&](Source source) {
    if (source.node >= 0) reached[static_cast<std::size_t>(source.node)] = true;
  };
  for (const Source output : outputs_) reach(output);
  for (std::size_t i = nodes_.size(); i-- > 0;)
    if (reached[i] && !nodes_[i].layer->traits().stops_gradient)
      for (const Source input : nodes_[i].inputs) reach(input);
  return reached;
}

void Graph::freeze_layers() {
  for (Node& node : nodes_)
    node.trainable = node.trainable && !any_matches_layer(freeze_, node.layer->name());
  std::vector<bool> reached = reached_by_losses();
  for (std::size_t i = 0; i < nodes_.size(); ++i)  // whoever uses the variables trains them
    if (reached[i] && nodes_[i].shared_with >= 0)
      reached[static_cast<std::size_t>(nodes_[i].shared_with)] = true;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!reached[i] && nodes_[i].shared_with < 0) nodes_[i].trainable = false;
}

bool Graph::is_frozen(const Node& node, const std::string& variable) const {
  return !node.trainable || any_matches_variable(freeze_, variable) || (frozen_ && frozen_(variable));
}

void Graph::check_frozen(const VariableStore& variables) const {
  for (const Node& node : nodes_) {
    if (node.shared_with < 0 || node.trainable) continue;
    const Node& owner = nodes_[static_cast<std::size_t>(node.shared_with)];
    if (owner.parameters > 0)
      throw Error(ErrorKind::config,
                  fmt::format("layer {} is frozen, but {}, whose variables it uses, is not",
                              node.layer->name(), owner.layer->name()),
                  node.where, fmt::format("Freeze {}: that freezes both.", owner.layer->name()));
  }
  for (const FreezeRule& rule : freeze_) {
    std::vector<std::string_view> names;
    for (const Node& node : nodes_)
      if (node.last_variable > node.first_variable) names.push_back(node.layer->name());
    for (const Variable& variable : variables.variables()) names.push_back(variable.name);
    if (std::ranges::any_of(names, [&](auto name) { return rule.pattern.matches(std::string(name)); }))
      continue;
    const std::string suggestion = nearest(rule.pattern.text(), names);
    throw Error(ErrorKind::config,
                fmt::format("model.frozen: '{}' matches no layer with variables and no variable",
                            rule.pattern.text()),
                rule.where,
                advice_for_pattern(rule.pattern.text()) +
                    (suggestion.empty() ? "`lockstep check` without it lists the layers."
                                        : fmt::format("Did you mean '{}'?", suggestion)));
  }
}

}  // namespace lockstep
