// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Options with names, types, defaults and one line of help each: the one table from which values are read,
// typos are caught, and the reference in docs/ is printed. Used by config sections, layers, optimizers,
// schedules, initialisers.
//
// A Node is parsed text with positions (the driver makes it from YAML); a table of ParamSpec says what may
// stand there; Params is the checked result. No file, no YAML here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.h"

namespace lockstep {

/// A value as written: null, scalar text, list or map, each with its position ("file.yaml:3:5").
struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string where;
  std::string text;                                   ///< scalar
  bool quoted = false;                                ///< scalar written in quotes: always a string
  std::vector<Node> items;                            ///< list
  std::vector<std::pair<std::string, Node>> entries;  ///< map, in order of writing
  std::vector<std::string> entry_where;               ///< position of each entry's key

  const Node* find(std::string_view key) const;
  static Node scalar(std::string text, std::string where = {});
};

/// Null, or unquoted text that means null ("~", "null").
bool is_null(const Node& node);

enum class ParamType { boolean, integer, real, string, integers, reals, strings, node };
/// "whole number", "list of numbers" ...: for messages and the reference.
std::string_view name_of(ParamType type);

/// One option. `fallback` is YAML text ("0.9", "[1, 1]", "same", "null"); kRequired: must be given.
/// An option may be null if its fallback is, or if its range ends with "or null".
/// Where a list is wanted, a single value stands for a list of one.
struct ParamSpec {
  std::string_view name;
  ParamType type;
  std::string_view fallback;
  std::string_view range;  ///< unit, range or choices: "> 0", "same|valid"; choices ("a|b|c") are enforced,
                           ///< and so are ">= x", "> x", "[a, b]", "(a, b)", "[a, b)", "(a, b]" for numbers,
                           ///< also when a unit follows (">= 0 seconds"); in lists for each item
  std::string_view help;
};
inline constexpr std::string_view kRequired = "<required>";

class Params {
 public:
  Params() = default;
  /// Checks `node` (a map, or null for "all defaults") against `table`. Unknown keys, wrong types, missing
  /// required keys and values out of range throw Error(config) with position; unknown keys suggest the
  /// nearest known one. `subject` names what the options belong to: "layer conv2d", "section train".
  Params(const Node& node, std::span<const ParamSpec> table, std::string subject);

  bool boolean(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& string(std::string_view name) const;
  const std::vector<std::int64_t>& integers(std::string_view name) const;
  const std::vector<double>& reals(std::string_view name) const;
  const std::vector<std::string>& strings(std::string_view name) const;
  const Node& node(std::string_view name) const;

  /// False if the value is null ("none").
  bool has(std::string_view name) const;
  /// True if the user wrote it (not a default).
  bool given(std::string_view name) const;
  /// Position of the option, or of the whole map when it was not written.
  const std::string& where(std::string_view name) const;
  const std::string& where() const { return where_; }
  const std::string& subject() const { return subject_; }
  /// An Error(config) about this option, with its position: "where: subject, name: what happened".
  Error error(std::string_view name, std::string what_happened, std::string advice = {}) const;

 private:
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                             std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>, Node>;
  struct Entry {
    Value value;
    std::string where;
    bool given = false;
  };
  const Entry& entry(std::string_view name) const;
  template <typename T>
  const T& value(std::string_view name) const;

  std::map<std::string, Entry, std::less<>> entries_;
  std::string where_, subject_;
};

/// `written` (a map or null) with every option of `table` that it lacks put behind, at its default.
Node with_defaults(const Node& written, std::span<const ParamSpec> table);

/// The candidate nearest to `word` (edit distance of at most a third of its length), or empty.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace lockstep
