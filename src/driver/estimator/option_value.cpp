// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/estimator/option_value.h"

namespace lockstep {

namespace {

void append(Node& map, std::string_view name, const Node& value) {
  map.kind = Node::Kind::map;
  map.entries.emplace_back(std::string(name), value);
  map.entry_where.emplace_back();
}

}  // namespace

Node Choice::node() const {
  if (is_null(options) || options.entries.empty()) return Node::scalar(name);
  Node map;
  append(map, name, options);
  return map;
}

Node options_map(std::initializer_list<std::pair<std::string_view, OptionValue>> options) {
  Node map;
  for (const auto& [name, value] : options) append(map, name, value.node());
  return map;
}

Node given_options(std::initializer_list<std::pair<std::string_view, const AnySetting*>> options) {
  Node map;
  for (const auto& [name, setting] : options)
    if (setting->node() != nullptr) append(map, name, *setting->node());
  return map;
}

}  // namespace lockstep
