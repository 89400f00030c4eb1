// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/name_pattern.h"

#include <regex>

#include "core/error.h"

namespace lockstep {

namespace {

constexpr std::string_view kRegex = "re:";
constexpr std::string_view kAdvice =
    "Patterns match whole names: conv1/* means all variables of conv1. After re: stands a regular "
    "expression, as in "
    "re:conv[0-9]+/.*";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::usage, what, "", std::string(kAdvice));
}

/// The set that begins at text[at] as a regular expression; `at` becomes the position after it.
std::string set_of(const std::string& text, std::size_t& at) {
  const std::size_t first = at + (text.substr(at + 1, 1) == "!" ? 2 : 1);
  const std::size_t end = text.find(']', first + 1);  // the first one may be a ']' itself
  if (end == std::string::npos) refuse(fmt::format("the pattern '{}' has a '[' without ']'", text));
  std::string set = first == at + 2 ? "[^" : "[";
  for (const char c : text.substr(first, end - first)) {
    if (c == '\\' || c == '[' || c == ']' || c == '^') set += '\\';
    set += c;
  }
  at = end + 1;
  return set + ']';
}

/// A glob as a regular expression with a group for each wildcard.
std::string from_glob(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '[') {
      out += '(' + set_of(text, at) + ')';
      continue;
    }
    if (c == '*') {
      out += "([^]*)";
    } else if (c == '?') {
      out += "([^])";
    } else {
      if (std::string_view("^$\\.+()]{}|").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
    ++at;
  }
  return out;
}

/// The roles of variables, which the last parts of their names say: "mha/qkv_bias" is a bias. Each variable
/// of Lockstep's layers has exactly one.
struct Role {
  std::string_view name, last_part;
};
constexpr std::string_view kRole = "role:";
constexpr Role kRoles[] = {
    {"kernels", "(?:[^/]*_)?(?:kernel|weights)(?:_[^/]*)?"},
    {"biases", "(?:[^/]*_)?bias(?:es)?(?:_[^/]*)?"},
    {"norms", "gamma|beta|moving_mean|moving_variance"},
    {"embeddings", "embeddings"},
};

std::string of_role(std::string_view name) {
  std::string known;
  for (const Role& role : kRoles) {
    if (role.name == name) return fmt::format("[^]*/(?:{})", role.last_part);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", role.name);
  }
  throw Error(ErrorKind::usage, fmt::format("there is no role '{}'", name), "",
              fmt::format("After role: stands one of {}.", known));
}

std::regex compiled(const std::string& text) {
  if (text.size() > NamePattern::kMostCharacters)
    refuse(fmt::format("the pattern '{}...' has {} characters, and the limit is {}", text.substr(0, 40),
                       text.size(), NamePattern::kMostCharacters));
  const bool is_regex = text.starts_with(kRegex);
  const std::string expression = is_regex                  ? text.substr(kRegex.size())
                                 : text.starts_with(kRole) ? of_role(text.substr(kRole.size()))
                                                           : from_glob(text);
  try {
    // libstdc++'s default search backtracks: exponential time and deep recursion for some patterns.
#ifdef __GLIBCXX__
    return std::regex(expression, std::regex::ECMAScript | std::regex_constants::__polynomial);
#else
    return std::regex(expression, std::regex::ECMAScript);
#endif
  } catch (const std::regex_error& error) {
    if (is_regex) refuse(fmt::format("'{}' is not a regular expression: {}", expression, error.what()));
    refuse(fmt::format("'{}' is not a pattern", text));
  }
}

}  // namespace

struct NamePattern::Compiled {
  std::regex regex;
};

NamePattern::NamePattern(std::string text)
    : text_(std::move(text)), compiled_(std::make_shared<const Compiled>(Compiled{compiled(text_)})) {}

bool NamePattern::matches(const std::string& name) const { return std::regex_match(name, compiled_->regex); }

std::optional<std::string> NamePattern::replaced(const std::string& name, const std::string& to) const {
  std::smatch groups;
  if (!std::regex_match(name, groups, compiled_->regex)) return std::nullopt;
  return groups.format(to);
}

std::string advice_for_pattern(std::string_view text) {
  if (text.starts_with(kRegex) || text.find_first_of(".()|+\\^$") == std::string_view::npos) return {};
  return fmt::format("Patterns are globs: conv1/* means all of conv1. For a regular expression write re:{}. ",
                     text);
}

}  // namespace lockstep
