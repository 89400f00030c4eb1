// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which variables are meant, and what they are called elsewhere: for warm starts and for exports. Names are
// variables' paths ("conv1/kernel"), without the group "variables/". Text alone: no files.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Names matched by regular expressions (ECMAScript) as a whole: "conv1/.*", ".*/kernel".
class NamePatterns {
 public:
  /// None: every name matches. Throws Error(usage) for one that is no regular expression.
  explicit NamePatterns(std::vector<std::string> patterns = {});
  bool matches(const std::string& name) const;
  /// Patterns that match none of `names`: misspelt ones.
  std::vector<std::string> unused(const std::vector<std::string>& names) const;

 private:
  std::vector<std::string> texts_;
  std::vector<std::regex> patterns_;
};

/// Names changed by rules (from, to). A rule that is the name itself comes first; else the first that fits,
/// in order: "scope/" stands for everything below it and "/" for everything, on either side; anything else is
/// a regular expression for the whole name, and $1, $2 ... in `to` are its groups. No rule: the name stays.
class NameRules {
 public:
  using Rule = std::pair<std::string, std::string>;
  /// Throws Error(usage) for a rule that cannot be meant.
  explicit NameRules(std::vector<Rule> rules = {});
  std::string renamed(const std::string& name) const;
  /// The left sides of rules that change none of `names`.
  std::vector<std::string> unused(const std::vector<std::string>& names) const;

 private:
  std::optional<std::size_t> rule_for(const std::string& name) const;
  std::vector<Rule> rules_;
  std::vector<std::optional<std::regex>> patterns_;  // none for scopes
};

}  // namespace lockstep
