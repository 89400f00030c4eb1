// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/overrides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/yaml_node.h"
#include "core/name_list.h"
#include "core/scalar.h"
#include "optim/optimizer_options.h"

namespace lockstep {

namespace {

constexpr std::size_t kLongestShown = 200;  // of an assignment in a message

/// The kind of a choice: `relu`, or the only key of {dense: {units: 3}}. Empty for other values.
std::string kind_of_choice(const Node& node) {
  if (node.kind == Node::Kind::scalar)
    return !node.quoted && kind_of_scalar(node.text) == ScalarKind::text ? node.text : "";
  if (node.kind != Node::Kind::map || node.entries.size() != 1) return {};
  const Node& options = node.entries[0].second;
  return options.kind == Node::Kind::map || is_null(options) ? node.entries[0].first : "";
}

/// The `name` that an item has in its own map or in its options; null if there is none.
const std::string* written_name(const Node& item) {
  const Node* options =
      kind_of_choice(item).empty() || item.entries.empty() ? &item : &item.entries[0].second;
  const Node* name = options->find("name");
  return name != nullptr && name->kind == Node::Kind::scalar ? &name->text : nullptr;
}

struct NamedItem {
  std::string name;
  std::size_t index;
};

/// The items of a list by name, as for set_value().
std::vector<NamedItem> named_items(const Node& list) {
  std::vector<NamedItem> items;
  std::map<std::string, int> count;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const std::string kind = kind_of_choice(list.items[i]);
    const int number = kind.empty() ? 0 : ++count[kind];
    if (const std::string* name = written_name(list.items[i]))
      items.push_back({*name, i});
    else if (!kind.empty())
      items.push_back({fmt::format("{}{}", kind, number), i});
  }
  for (std::size_t i = 0; i < list.items.size(); ++i)
    if (const std::string kind = kind_of_choice(list.items[i]); count[kind] == 1) items.push_back({kind, i});
  return items;
}

Node& item_of(Node& list, std::string_view segment, std::string_view path, const std::string& where) {
  if (const auto index = parse_integer(segment);
      index && *index >= 0 && *index < static_cast<std::int64_t>(list.items.size()))
    return list.items[static_cast<std::size_t>(*index)];
  const std::vector<NamedItem> items = named_items(list);
  for (const NamedItem& item : items)
    if (item.name == segment) return list.items[item.index];
  std::vector<std::string_view> names;
  for (const NamedItem& item : items) names.push_back(item.name);
  const std::string close = nearest(segment, names);
  std::string advice = close.empty() ? "" : fmt::format("Did you mean '{}'? ", close);
  if (list.items.empty())
    advice += "The list is empty.";
  else
    advice += fmt::format("Give an index from 0 to {}, or the name of an item{}{}.", list.items.size() - 1,
                          names.empty() ? "" : ": ", name_list(names));
  throw Error(ErrorKind::config, fmt::format("the list '{}' has no item '{}'", path, segment), where, advice);
}

/// A walk along a path of keys. It knows where a value is a choice with options, whose name a path may leave
/// out.
class Walk {
 public:
  Walk(Node& root, std::string_view path, std::string where)
      : node_(&root), path_(path), where_(std::move(where)) {}

  void step(std::string_view segment) {
    if (state_ == State::optimizer) return step_in_optimizer(segment);
    const bool is_name = state_ == State::choice && segment == kind_of_choice(*node_);
    if (state_ == State::choice) enter_options();
    if (!is_name) enter(segment);
    walked_ += segment.size() + 1;
  }

  void set(Node value) {
    value.key_quoted = node_->key_quoted;
    *node_ = std::move(value);
  }

 private:
  enum class State { plain, choice, options, optimizer };

  std::string_view walked() const { return path_.substr(0, walked_ == 0 ? 0 : walked_ - 1); }

  /// In the section `optimizer`: to a key next to the rule, to the rule or to one of its options.
  void step_in_optimizer(std::string_view segment) {
    const std::span<const ParamSpec> beside = optimizer_section_table();
    const auto is_beside = [&](std::string_view key) {
      return std::ranges::find(beside, key, &ParamSpec::name) != beside.end();
    };
    if (node_->kind == Node::Kind::scalar && !kind_of_choice(*node_).empty()) name_to_map();
    auto rule =
        std::ranges::find_if(node_->entries, [&](const auto& entry) { return entry.first == segment; });
    if (rule == node_->entries.end())
      rule = std::ranges::find_if(node_->entries, [&](const auto& entry) { return !is_beside(entry.first); });
    node_->overridden = where_;
    if (is_beside(segment) || rule == node_->entries.end()) {
      state_ = State::plain;
      enter(segment);
    } else {
      const bool is_name = segment == rule->first;
      node_ = &rule->second;
      node_->overridden = where_;
      state_ = State::options;
      if (!is_name) enter(segment);
    }
    walked_ += segment.size() + 1;
  }

  /// A name alone becomes a map of the name to no options.
  void name_to_map() {
    Node map;
    map.kind = Node::Kind::map;
    map.where = where_;
    map.entries.emplace_back(node_->text, Node{});
    map.entries[0].second.where = node_->where;
    map.entry_where.push_back(node_->where);
    *node_ = std::move(map);
  }

  /// From a choice to its options.
  void enter_options() {
    if (node_->kind == Node::Kind::scalar) name_to_map();
    node_->overridden = where_;
    node_ = &node_->entries[0].second;
    node_->overridden = where_;
    state_ = State::options;
  }

  void enter(std::string_view segment) {
    if (is_null(*node_)) make_map();
    if (node_->kind == Node::Kind::map) {
      enter_map(segment);
    } else if (node_->kind == Node::Kind::list) {
      node_ = &item_of(*node_, segment, walked(), where_);
      node_->overridden = where_;
      state_ = kind_of_choice(*node_).empty() ? State::plain : State::choice;
    } else {
      throw Error(ErrorKind::config,
                  fmt::format("'{}' is a single value: there is no '{}' in it", walked(), segment), where_);
    }
  }

  void make_map() {
    const std::string overridden = node_->overridden;
    *node_ = Node{};
    node_->kind = Node::Kind::map;
    node_->where = where_;
    node_->overridden = overridden;
  }

  void enter_map(std::string_view segment) {
    auto entry = std::find_if(node_->entries.begin(), node_->entries.end(),
                              [&](const auto& candidate) { return candidate.first == segment; });
    if (entry == node_->entries.end()) {
      node_->entries.emplace_back(std::string(segment), Node{});
      node_->entry_where.push_back(where_);
      entry = node_->entries.end() - 1;
    }
    node_ = &entry->second;
    // The options of a choice may be choices themselves: schedules, initialisers.
    const bool may_be_choice = state_ == State::options || segment == "loss" || segment == "rule";
    if (segment == "optimizer" && walked_ == 0)
      state_ = State::optimizer;
    else
      state_ = may_be_choice && !kind_of_choice(*node_).empty() ? State::choice : State::plain;
  }

  Node* node_;
  std::string_view path_;
  std::string where_;
  std::size_t walked_ = 0;  ///< characters of the path, with a dot
  State state_ = State::plain;
};

/// The option that says the end of training in place of `path`; empty for other paths.
std::string_view other_end_of_training(std::string_view path) {
  return path == "train.steps" ? "train.epochs" : path == "train.epochs" ? "train.steps" : "";
}

/// The position of an override in messages: one line, not too long.
std::string place_of(std::string_view assignment) {
  std::string text(assignment.substr(0, kLongestShown));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return fmt::format("--set {}{}", text, assignment.size() > kLongestShown ? "..." : "");
}

std::string_view path_of(std::string_view assignment) { return assignment.substr(0, assignment.find('=')); }

}  // namespace

void set_value(Node& root, std::string_view path, Node value) {
  Walk walk(root, path, value.where);
  for (std::string_view rest = path;;) {
    const auto dot = rest.find('.');
    const std::string_view segment = rest.substr(0, dot);
    if (segment.empty())
      throw Error(ErrorKind::config, fmt::format("'{}' is not a path of keys", path), value.where,
                  "Write it as in 'train.batch_size'.");
    walk.step(segment);
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  walk.set(std::move(value));
}

void apply_override(Node& root, std::string_view assignment) {
  const std::string where = place_of(assignment);
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

void apply_overrides(Node& root, std::span<const std::string> assignments, ErrorCollector& mistakes) {
  std::set<std::string_view> paths;
  for (const std::string& assignment : assignments) paths.insert(path_of(assignment));
  for (const std::string& assignment : assignments)
    mistakes.attempt([&] {
      apply_override(root, assignment);
      const std::string_view other = other_end_of_training(path_of(assignment));
      if (other.empty() || paths.contains(other)) return;
      const Node& train = *root.find("train");
      if (is_null(*train.find(path_of(assignment).substr(6)))) return;
      Node nothing;
      nothing.where = place_of(assignment);
      set_value(root, other, std::move(nothing));
    });
}

}  // namespace lockstep
