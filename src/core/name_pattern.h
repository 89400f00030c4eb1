// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The pattern of every option that chooses things by their names. It matches whole names. In a glob, * stands
// for any text ('/' included), ? for one character, [abc] and [a-z] for one of these, [!abc] for any other. A
// pattern that begins with "re:" is a regular expression (ECMAScript, without back-references).
// "role:biases", and the same with kernels, norms or embeddings, are the variables of a role, which the last
// parts of their names say. Matching takes time in proportion to the lengths of pattern and name, whatever
// the pattern.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class NamePattern {
 public:
  /// The longest pattern. Regular expressions are compiled by recursion.
  static constexpr std::size_t kMostCharacters = 500;

  /// Throws Error(usage) for a pattern that is not valid.
  explicit NamePattern(std::string text);
  bool matches(const std::string& name) const;
  /// `to`, in which $1, $2, ... stand for the texts of the groups, or of a glob's *, ? and [...]. Nothing if
  /// the pattern does not match.
  std::optional<std::string> replaced(const std::string& name, const std::string& to) const;
  /// The pattern as it was written.
  const std::string& text() const { return text_; }

 private:
  struct Compiled;  // <regex> takes long to compile; it stays in the source file

  std::string text_;
  std::shared_ptr<const Compiled> compiled_;
};

/// What to write in place of `text`, which matches nothing, if it looks like a regular expression; else
/// empty.
std::string advice_for_pattern(std::string_view text);

}  // namespace lockstep
