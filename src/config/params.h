// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Options with names, types, defaults and one line of help each. One table serves to read the values, to
// detect misspelt keys and to print the reference in docs/. Configuration sections, layers, optimizers,
// schedules and initialisers use it.
//
// A Node is parsed text with positions (node.h). A table of ParamSpec declares the accepted options. Params
// is the checked result. This header knows neither files nor YAML.
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

#include "config/node.h"
#include "config/option_range.h"
#include "core/error.h"
#include "core/error_group.h"

namespace lockstep {

enum class ParamType { boolean, integer, real, string, integers, reals, strings, node };
/// The name of a type for messages and the reference: "whole number", "numbers", ...
std::string_view name_of(ParamType type);

/// What another value of an option means for a run that continues (`lockstep train`).
enum class Change {
  result,  ///< it changes the numbers: refused without --accept-changes
  free,    ///< it cannot change the numbers: taken
  place,   ///< it says where files are: taken if their contents are the same
  fixed    ///< refused: a run keeps the value for its life
};

class Params;
struct ParamSpec;

/// The member that takes the value of an option; option.h makes it.
struct OptionBinding {
  /// Sets the member of an object of the type `owner`. Throws ReportedMistake if the value is wrong.
  void (*set)(void* object, const Params& params, const ParamSpec& option) = nullptr;
  const void* owner = nullptr;   ///< owner_tag<T>
  const void* member = nullptr;  ///< member_tag of option.h
};
/// Its address stands for a type whose members take options.
template <typename T>
inline constexpr char owner_tag = 0;

/// One option of a table.
///
/// `fallback` is the default as YAML text ("0.9", "[1, 1]", "same", "null"); kRequired means that there is
/// none. Limits and choices of `range` are enforced; in a list they apply to each item. Null is a value if
/// `fallback` is "null" or if `range` takes it; otherwise a null that is written out means the default. For a
/// list type, a single value counts as a list of one.
struct ParamSpec {
  std::string_view name;
  ParamType type;
  std::string_view fallback;
  OptionRange range;
  std::string_view help;
  Change change = Change::result;
  OptionBinding binding = {};
};
inline constexpr std::string_view kRequired = "<required>";

/// True for an option that takes a number, or a schedule of numbers (optim/scheduled_number.h).
constexpr bool takes_schedule(const ParamSpec& option) {
  return option.type == ParamType::node && option.range.takes_schedule();
}

class Params {
 public:
  Params() = default;
  /// Checks `node` (a map, or null for all defaults) against `table`. Throws all mistakes together, as
  /// Error(config) with positions: unknown keys, wrong types, missing required keys and values out of range.
  /// The error for an unknown key suggests the right one. `subject` names the owner of the options: "layer
  /// conv2d", "section train".
  Params(const Node& node, std::span<const ParamSpec> table, std::string subject);
  /// Checks like the constructor above, but collects the mistakes. An option with a mistake throws
  /// ReportedMistake when it is read, so that the other options can be used.
  Params(const Node& node, std::span<const ParamSpec> table, std::string subject, ErrorCollector& mistakes);

  /// The members of a T at the values of the options that option.h binds to them. Throws the mistakes of all
  /// of them together.
  template <typename T>
  T as() const {
    T object{};
    set_members(&object, &owner_tag<T>);
    return object;
  }
  /// The option that sets a member, by its member_tag.
  std::string_view name_of_member(const void* member) const;

  bool boolean(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& string(std::string_view name) const;
  const std::vector<std::int64_t>& integers(std::string_view name) const;
  const std::vector<double>& reals(std::string_view name) const;
  const std::vector<std::string>& strings(std::string_view name) const;
  const Node& node(std::string_view name) const;
  /// Returns nothing if the value is null.
  std::optional<std::int64_t> optional_integer(std::string_view name) const;
  std::optional<double> optional_real(std::string_view name) const;

  /// False if the value is null.
  bool has(std::string_view name) const;
  /// True if the configuration contains the option, false if the default applies.
  bool given(std::string_view name) const;
  /// The position of the option, or of the whole map if the option is not written.
  const std::string& where(std::string_view name) const;
  const std::string& where() const { return where_; }
  const std::string& subject() const { return subject_; }
  /// Creates an Error(config) about this option with its position: "where: subject, name: what happened".
  Error error(std::string_view name, std::string what_happened, std::string advice = {}) const;

 private:
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                             std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>, Node>;
  struct Entry {
    Value value;
    std::string where;
    bool given = false;
    bool is_wrong = false;
  };
  void check_keys(const Node& node, std::span<const ParamSpec> table, ErrorCollector& mistakes) const;
  Entry read(const Node* written, const ParamSpec& spec) const;
  void set_members(void* object, const void* owner) const;
  const Entry& entry(std::string_view name) const;
  const Entry& good_entry(std::string_view name) const;
  template <typename T>
  const T& value(std::string_view name) const;

  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<ParamSpec> bound_;  ///< The options of the table that set members.
  std::string where_, subject_;
};

/// Returns `written` (a map or null) with every missing option of `table` appended at its default.
Node with_defaults(const Node& written, std::span<const ParamSpec> table);

/// The candidate with the smallest edit distance to `word`, at most a third of its length; empty if there is
/// none.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace lockstep
