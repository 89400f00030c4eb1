// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_names.h"

#include <algorithm>
#include <set>

#include "core/error.h"

namespace lockstep {

namespace {

std::regex compiled(const std::string& text) {
  try {
    return std::regex(text, std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is not a regular expression: {}", text, error.what()), "",
                "Patterns match whole names: conv1/.* means all variables of conv1.");
  }
}

bool is_scope(const std::string& text) { return text.ends_with('/'); }

/// The prefix that a scope stands for: nothing for "/".
std::string_view prefix_of(const std::string& scope) {
  return scope == "/" ? std::string_view() : std::string_view(scope);
}

}  // namespace

NamePatterns::NamePatterns(std::vector<std::string> patterns) : texts_(std::move(patterns)) {
  for (const std::string& text : texts_) patterns_.push_back(compiled(text));
}

bool NamePatterns::matches(const std::string& name) const {
  return patterns_.empty() || std::any_of(patterns_.begin(), patterns_.end(), [&](const std::regex& pattern) {
           return std::regex_match(name, pattern);
         });
}

std::vector<std::string> NamePatterns::unused(const std::vector<std::string>& names) const {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < texts_.size(); ++i)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return std::regex_match(name, patterns_[i]); }))
      found.push_back(texts_[i]);
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
    patterns_.push_back(is_scope(from) ? std::nullopt : std::optional(compiled(from)));
  }
}

std::optional<std::size_t> NameRules::rule_for(const std::string& name) const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (rules_[i].first == name) return i;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (patterns_[i] ? std::regex_match(name, *patterns_[i]) : name.starts_with(prefix_of(rules_[i].first)))
      return i;
  return std::nullopt;
}

std::string NameRules::renamed(const std::string& name) const {
  const std::optional<std::size_t> rule = rule_for(name);
  if (!rule) return name;
  const auto& [from, to] = rules_[*rule];
  if (from == name) return to;
  if (patterns_[*rule]) return std::regex_replace(name, *patterns_[*rule], to);
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
