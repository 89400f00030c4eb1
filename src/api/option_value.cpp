// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/option_value.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

OptionValue::OptionValue(Number number)
    : node_(Node::scalar(std::visit([](auto value) { return fmt::format("{}", value); }, number))) {}

void set_option(Node& map, std::string_view name, const OptionValue& value) {
  map.kind = Node::Kind::map;
  const auto at = std::ranges::find(map.entries, name, &std::pair<std::string, Node>::first);
  if (at != map.entries.end()) {
    at->second = value.node();
    return;
  }
  map.entries.emplace_back(std::string(name), value.node());
  map.entry_where.emplace_back();
}

Node Choice::node() const {
  if (is_null(options) || options.entries.empty()) return Node::scalar(name);
  Node map;
  set_option(map, name, options);
  return map;
}

Node options_map(std::initializer_list<std::pair<std::string_view, OptionValue>> options) {
  Node map;
  for (const auto& [name, value] : options) set_option(map, name, value);
  return map;
}

Node given_options(std::initializer_list<std::pair<std::string_view, const AnySetting*>> options) {
  Node map;
  for (const auto& [name, setting] : options)
    if (setting->node() != nullptr) set_option(map, name, *setting->node());
  return map;
}

}  // namespace lockstep
