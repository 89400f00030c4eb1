// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/scalar.h"
#include "optim/optimizer_options.h"
#include "run/sections/configuration_file.h"

namespace lockstep {

namespace {

using Path = std::vector<std::string_view>;

void put(Node& map, const std::string& key, Node value, const std::string& where) {
  const auto found = std::ranges::find(map.entries, key, &std::pair<std::string, Node>::first);
  if (found != map.entries.end()) {
    map.entry_where[static_cast<std::size_t>(found - map.entries.begin())] = where;
    found->second = std::move(value);
  } else {
    map.entries.emplace_back(key, std::move(value));
    map.entry_where.push_back(where);
  }
}

template <typename Wanted>
void remove(Node& map, Wanted wanted) {
  for (std::size_t i = map.entries.size(); i-- > 0;)
    if (wanted(map.entries[i].first)) {
      map.entries.erase(map.entries.begin() + static_cast<std::ptrdiff_t>(i));
      map.entry_where.erase(map.entry_where.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

/// True where a map of one name is a choice: {adam: {learning_rate: 0.1}}.
bool is_choice(const Path& path) {
  if (path.empty()) return false;
  if (path.back() == "average" && path.size() == 1) return true;
  if (path.back() == "loss" || path.back() == "whiten") return true;
  // Schedules of the options of a rule or of an average, and their warm-ups.
  return path.size() >= 3 && (path[0] == "optimizer" || path[0] == "average");
}

bool is_beside_rule(const std::string& key) {
  return std::ranges::find(optimizer_section_table(), std::string_view(key), &ParamSpec::name) !=
         optimizer_section_table().end();
}

/// `adam` as {adam: null}.
Node as_map(const Node& node) {
  if (node.kind != Node::Kind::scalar || is_null(node)) return node;
  Node map;
  map.kind = Node::Kind::map;
  map.where = node.where;
  map.entries.emplace_back(node.text, Node{});
  map.entries[0].second.where = node.where;
  map.entry_where.push_back(node.where);
  return map;
}

std::string rule_of(const Node& optimizer) {
  for (const auto& [key, value] : optimizer.entries)
    if (!is_beside_rule(key)) return key;
  return {};
}

const Node* format_of(const Node& data) { return data.find("format"); }

Node merged(const Node& base, const Node& over, Path& path) {
  if (is_choice(path)) {
    const Node named_base = as_map(base), named_over = as_map(over);
    const bool same = named_base.entries.size() == 1 && named_over.entries.size() == 1 &&
                      named_base.entries[0].first == named_over.entries[0].first;
    if (!same || base.kind != Node::Kind::map || over.kind != Node::Kind::map) return over;
  }
  const bool is_optimizer = path.size() == 1 && path[0] == "optimizer";
  Node result = is_optimizer ? as_map(base) : base;
  const Node top = is_optimizer ? as_map(over) : over;
  if (result.kind != Node::Kind::map || top.kind != Node::Kind::map) return over;
  if (is_optimizer) {
    const std::string rule = rule_of(top);
    if (!rule.empty() && rule != rule_of(result))
      remove(result, [](const std::string& key) { return !is_beside_rule(key); });
  }
  if (path.size() == 1 && path[0] == "data")
    if (const Node* before = format_of(result), *now = format_of(top);
        before != nullptr && now != nullptr && before->text != now->text)
      return over;
  if (path.size() == 1 && path[0] == "train") {
    const auto replaces = [&](std::string_view one, std::string_view other) {
      const Node* const given = top.find(one);
      if (given != nullptr && !is_null(*given) && top.find(other) == nullptr)
        remove(result, [&](const std::string& key) { return key == other; });
    };
    replaces("steps", "epochs");
    replaces("epochs", "steps");
  }
  result.where = top.where;
  for (std::size_t i = 0; i < top.entries.size(); ++i) {
    const auto& [key, value] = top.entries[i];
    const Node* const below = result.find(key);
    // A rule that is named alone keeps the options that it has below.
    if (is_optimizer && below != nullptr && is_null(value) && !is_beside_rule(key)) continue;
    path.push_back(key);
    Node both = below == nullptr ? value : merged(*below, value, path);
    path.pop_back();
    both.key_quoted = value.key_quoted;
    put(result, key, std::move(both), top.entry_where[i]);
  }
  return result;
}

}  // namespace

Node merged_configuration(const Node& base, const Node& over) {
  Path path;
  return merged(base, over, path);
}

}  // namespace lockstep
