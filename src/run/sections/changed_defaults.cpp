// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/changed_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "config/named_options.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

struct ChangedDefault {
  std::string_view layer, option, former;
};

/// Do not change a line: runs of earlier programs are read by it.
constexpr ChangedDefault kChanged[] = {{"batch_norm", "momentum", "0.99"}};

std::string_view default_today(const ChangedDefault& changed) {
  const LayerEntry* const layer = layer_table().find(changed.layer);
  LOCKSTEP_CHECK(layer != nullptr, "there is no layer {}", changed.layer);
  const auto option = std::ranges::find(layer->table, changed.option, &ParamSpec::name);
  LOCKSTEP_CHECK(option != layer->table.end(), "layer {} has no option {}", changed.layer, changed.option);
  return option->fallback;
}

void put(Node& options, const ChangedDefault& changed, std::string_view value) {
  options.kind = Node::Kind::map;
  options.text.clear();
  options.entries.emplace_back(std::string(changed.option), Node::scalar(std::string(value), options.where));
  options.entry_where.push_back(options.where);
}

/// An item of a list of layers: `batch_norm`, or `batch_norm: {...}`. True if the option was written.
bool state(Node& item, const ChangedDefault& changed, std::string_view value) {
  if (item.kind == Node::Kind::scalar && item.text == changed.layer) {
    Node options;
    options.where = item.where;
    put(options, changed, value);
    item.kind = Node::Kind::map;
    item.entries.emplace_back(std::exchange(item.text, {}), std::move(options));
    item.entry_where.push_back(item.where);
    return true;
  }
  if (item.kind != Node::Kind::map || item.entries.size() != 1 || item.entries[0].first != changed.layer)
    return false;
  Node& options = item.entries[0].second;
  if (!is_null(options) && options.kind != Node::Kind::map) return false;  // a mistake that others report
  if (options.find(changed.option) != nullptr) return false;
  put(options, changed, value);
  return true;
}

/// Every list of layers: that of the model, of blocks, of repeats.
bool state_in(Node& node, const ChangedDefault& changed, std::string_view value) {
  bool any = false;
  for (auto& [key, below] : node.entries) {
    any = state_in(below, changed, value) || any;
    if (key != "layers") continue;
    for (Node& item : below.items) any = state(item, changed, value) || any;
  }
  for (Node& item : node.items) any = state_in(item, changed, value) || any;
  return any;
}

Node* model_of(Node& root) {
  const auto found = std::ranges::find(root.entries, "model", &std::pair<std::string, Node>::first);
  return found != root.entries.end() ? &found->second : nullptr;
}

}  // namespace

void state_layer_defaults(Node& root) {
  if (Node* const model = model_of(root))
    for (const ChangedDefault& changed : kChanged) state_in(*model, changed, default_today(changed));
}

std::vector<std::string> state_former_layer_defaults(Node& root) {
  std::vector<std::string> stated;
  if (Node* const model = model_of(root))
    for (const ChangedDefault& changed : kChanged)
      if (state_in(*model, changed, changed.former))
        stated.push_back(fmt::format("{} of {} is {}, the default when the run began; it is {} now",
                                     changed.option, changed.layer, changed.former, default_today(changed)));
  return stated;
}

}  // namespace lockstep
