// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/option_value.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

Node OptionValue::node_of(std::int64_t value) { return Node::scalar(fmt::to_string(value)); }
Node OptionValue::node_of(std::uint64_t value) { return Node::scalar(fmt::to_string(value)); }
Node OptionValue::node_of(float value) { return Node::scalar(fmt::format("{}", value)); }
Node OptionValue::node_of(double value) { return Node::scalar(fmt::format("{}", value)); }
OptionValue::OptionValue(std::string text) : node_(Node::scalar(std::move(text))) { node_.quoted = true; }
OptionValue::OptionValue(const Choice& choice) : node_(choice.node()) {}
OptionValue::OptionValue(Node node) : node_(std::move(node)) {}

// Not in the header: programs have hundreds of options, and compile none of this for them.
OptionValue::OptionValue(const OptionValue&) = default;
OptionValue::OptionValue(OptionValue&&) noexcept = default;
OptionValue& OptionValue::operator=(const OptionValue&) = default;
OptionValue& OptionValue::operator=(OptionValue&&) noexcept = default;
OptionValue::~OptionValue() = default;

AnySetting::AnySetting() = default;
AnySetting::AnySetting(const OptionValue& value) : node_(std::make_unique<const Node>(value.node())) {}
AnySetting::AnySetting(const AnySetting& other)
    : node_(other.node_ ? std::make_unique<const Node>(*other.node_) : nullptr) {}
AnySetting::AnySetting(AnySetting&&) noexcept = default;
AnySetting& AnySetting::operator=(const AnySetting& other) { return *this = AnySetting(other); }
AnySetting& AnySetting::operator=(AnySetting&&) noexcept = default;
AnySetting::~AnySetting() = default;

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
