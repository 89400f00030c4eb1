// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/config/yaml_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace lockstep {

namespace {

// The list item that `segment` names: an index, or the `name` of an item, which may be written as
// `- conv2d: {name: a}`.
Node* item_of(Node& list, std::string_view segment) {
  std::size_t index = 0;
  const auto [end, status] = std::from_chars(segment.data(), segment.data() + segment.size(), index);
  if (status == std::errc{} && end == segment.data() + segment.size())
    return index < list.items.size() ? &list.items[index] : nullptr;
  for (Node& item : list.items) {
    Node* named = item.entries.size() == 1 && item.entries[0].second.kind == Node::Kind::map
                      ? &item.entries[0].second
                      : &item;
    const Node* name = named->find("name");
    if (name != nullptr && name->kind == Node::Kind::scalar && name->text == segment) return named;
  }
  return nullptr;
}

}  // namespace

void set_value(Node& root, std::string_view path, Node value) {
  const std::string where = value.where;
  Node* node = &root;
  for (std::string_view rest = path;;) {
    const auto dot = rest.find('.');
    const std::string_view segment = rest.substr(0, dot);
    const std::string_view before = path.substr(0, path.size() - rest.size());
    if (segment.empty())
      throw Error(ErrorKind::config, fmt::format("'{}' is not a path of keys", path), where,
                  "Write it as in 'train.batch_size'.");
    if (is_null(*node)) {
      *node = Node{};
      node->kind = Node::Kind::map;
      node->where = where;
    }
    if (node->kind == Node::Kind::map) {
      auto entry = std::find_if(node->entries.begin(), node->entries.end(),
                                [&](const auto& candidate) { return candidate.first == segment; });
      if (entry == node->entries.end()) {
        node->entries.emplace_back(std::string(segment), Node{});
        node->entry_where.push_back(where);
        entry = node->entries.end() - 1;
      }
      node = &entry->second;
    } else if (node->kind == Node::Kind::list) {
      Node* item = item_of(*node, segment);
      if (item == nullptr)
        throw Error(
            ErrorKind::config,
            fmt::format("the list '{}' has no item '{}'", before.substr(0, before.size() - 1), segment),
            where,
            fmt::format("Give an index from 0 to {}, or the 'name' of an item.", node->items.size() - 1));
      node = item;
    } else {
      throw Error(ErrorKind::config,
                  fmt::format("'{}' is a single value: there is no '{}' in it",
                              before.substr(0, before.size() - 1), segment),
                  where);
    }
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  *node = std::move(value);
}

void apply_override(Node& root, std::string_view assignment) {
  const std::string where = fmt::format("--set {}", assignment);
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw Error(ErrorKind::usage, "not of the form key=value", where,
                "For example: --set optimizer.learning_rate=0.01");
  Node value;
  try {
    value = parse_yaml(assignment.substr(equals + 1), where);
  } catch (const Error& error) {
    throw Error(ErrorKind::config, error.what_happened(), where,
                "The value is YAML: quote special characters.");
  }
  // One position for the whole value: lines and columns inside a command-line argument do not help.
  const auto place = [&](Node& node, const auto& self) -> void {
    node.where = where;
    for (std::string& key : node.entry_where) key = where;
    for (auto& entry : node.entries) self(entry.second, self);
    for (Node& item : node.items) self(item, self);
  };
  place(value, place);
  set_value(root, assignment.substr(0, equals), std::move(value));
}

}  // namespace lockstep
