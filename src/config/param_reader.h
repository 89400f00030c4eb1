// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads one value according to its ParamSpec: type, range, choices. Internal to Params.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "core/scalar.h"

namespace lockstep {

/// Parses the default of a table entry: a scalar, a flat list or an empty map.
Node parse_fallback(std::string_view text);
/// A short description of a value for messages: "null", "a map", "a list of 3", "'abc'".
std::string description(const Node& node);
/// The number of an option that takes a number or one of a table with its options; nothing if `node` is one
/// of the latter: a map, or an unquoted name. Throws Error(config) as ParamReader does.
std::optional<double> plain_number(const Node& node, const ParamSpec& spec, const std::string& subject,
                                   const std::string& where);
/// True if null is a valid value of this option.
bool may_be_null(const ParamSpec& spec);
/// A null that is written out stands for the default of an option that has one and takes no null: it undoes
/// what an included file says. A key without a value is a mistake.
bool means_default(const Node& node, const ParamSpec& spec);

/// Reads values of one option. Each function throws Error(config) with the position of the value, or of the
/// enclosing map if the value has none.
class ParamReader {
 public:
  /// Keeps references to all three arguments.
  ParamReader(const ParamSpec& spec, const std::string& subject, const std::string& where_of_map)
      : spec_(spec), subject_(subject), where_(where_of_map) {}

  bool boolean(const Node& node) const;
  std::int64_t integer(const Node& node) const;
  double real(const Node& node) const;
  std::string string(const Node& node) const;
  /// Reads a list; a single value counts as a list of one. `read` is one of the functions above.
  template <typename T>
  std::vector<T> list(const Node& node, T (ParamReader::*read)(const Node&) const) const {
    std::vector<T> values;
    if (node.kind != Node::Kind::list) {
      values.push_back((this->*read)(node));
    } else {
      for (const Node& item : node.items) values.push_back((this->*read)(item));
    }
    return values;
  }

  [[noreturn]] void fail(const Node& node, std::string what, std::string advice = {}) const;

 private:
  [[noreturn]] void wrong_type(const Node& node, std::string_view wanted, std::string advice = {}) const;
  void check_number(const Node& node, double value) const;
  void check_choice(const Node& node, const std::string& value) const;

  const ParamSpec& spec_;
  const std::string& subject_;
  const std::string& where_;
};

}  // namespace lockstep
