// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_names.h"

#include <algorithm>
#include <set>

#include "core/error.h"

namespace lockstep {

namespace {

bool is_scope(const std::string& text) { return text.ends_with('/'); }

/// The prefix that a scope stands for: nothing for "/".
std::string_view prefix_of(const std::string& scope) {
  return scope == "/" ? std::string_view() : std::string_view(scope);
}

}  // namespace

NamePatterns::NamePatterns(std::vector<std::string> patterns) {
  for (std::string& text : patterns) patterns_.emplace_back(std::move(text));
}

bool NamePatterns::matches(const std::string& name) const {
  return patterns_.empty() ||
         std::ranges::any_of(patterns_, [&](const NamePattern& pattern) { return pattern.matches(name); });
}

std::vector<std::string> NamePatterns::unused(const std::vector<std::string>& names) const {
  std::vector<std::string> found;
  for (const NamePattern& pattern : patterns_)
    if (std::ranges::none_of(names, [&](const std::string& name) { return pattern.matches(name); }))
      found.push_back(pattern.text());
  return found;
}

NameRules::NameRules(std::vector<Rule> rules) : rules_(std::move(rules)) {
  for (const auto& [from, to] : rules_) {
    LOCKSTEP_REQUIRE(!from.empty() && !to.empty(), ErrorKind::usage,
                     "a rule that renames '{}' to '{}' needs both sides", from, to);
    LOCKSTEP_REQUIRE(
        is_scope(from) == is_scope(to), ErrorKind::usage,
        "a rule that renames '{}' to '{}': both sides must be scopes, which end with '/', or neither", from,
        to);
    patterns_.push_back(is_scope(from) ? std::nullopt : std::optional(NamePattern(from)));
  }
}

std::optional<std::size_t> NameRules::rule_for(const std::string& name) const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (rules_[i].first == name) return i;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (patterns_[i] ? patterns_[i]->matches(name) : name.starts_with(prefix_of(rules_[i].first))) return i;
  return std::nullopt;
}

std::string NameRules::renamed(const std::string& name) const {
  const std::optional<std::size_t> rule = rule_for(name);
  if (!rule) return name;
  const auto& [from, to] = rules_[*rule];
  if (from == name) return to;
  if (patterns_[*rule]) return patterns_[*rule]->replaced(name, to).value_or(name);
  return std::string(prefix_of(to)) + name.substr(prefix_of(from).size());
}

std::vector<std::string> NameRules::unused(const std::vector<std::string>& names) const {
  std::set<std::size_t> used;
  for (const std::string& name : names)
    if (const auto rule = rule_for(name)) used.insert(*rule);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (!used.contains(i)) found.push_back(rules_[i].first);
  return found;
}

}  // namespace lockstep
