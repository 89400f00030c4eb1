// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Selection and renaming of variables for warm starts and exports. Names are the paths of variables
// ("conv1/kernel") without the group "variables/". Works on text only, not on files.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/name_pattern.h"

namespace lockstep {

/// Patterns of which a name matches at least one: "conv1/*", "re:conv[12]/.*".
class NamePatterns {
 public:
  /// Every name matches if there are no patterns. Throws Error(usage) for an invalid pattern.
  explicit NamePatterns(std::vector<std::string> patterns = {});
  bool matches(const std::string& name) const;
  /// The patterns that match none of `names`, which are probably misspelt.
  std::vector<std::string> unused(const std::vector<std::string>& names) const;

 private:
  std::vector<NamePattern> patterns_;
};

/// Renaming by rules (from, to). A rule whose left side equals the name has priority; otherwise the first
/// matching rule applies. "scope/" stands for everything below it and "/" for everything, on either side. Any
/// other left side is a pattern for the whole name, and $1, $2, ... in `to` are its groups, or the texts that
/// stand for the *, ? and [...] of a glob. A name without a matching rule does not change.
class NameRules {
 public:
  using Rule = std::pair<std::string, std::string>;
  /// Throws Error(usage) for an invalid rule.
  explicit NameRules(std::vector<Rule> rules = {});
  std::string renamed(const std::string& name) const;
  /// The left sides of the rules that match none of `names`.
  std::vector<std::string> unused(const std::vector<std::string>& names) const;

 private:
  std::optional<std::size_t> rule_for(const std::string& name) const;
  std::vector<Rule> rules_;
  std::vector<std::optional<NamePattern>> patterns_;  // empty for scopes
};

}  // namespace lockstep
