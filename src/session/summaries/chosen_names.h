// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The names that a summary's option chooses by patterns.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "model/variable_store.h"

namespace lockstep {

/// The member for an option with patterns of names, such as layers or variables; null: all.
class ChosenNames {
 public:
  static constexpr ParamType kParamType = ParamType::strings;
  friend void set_member(ChosenNames& member, const Params& params, const ParamSpec& option);

  bool is_all() const { return !patterns_; }
  /// Which of the names are chosen. Throws Error(config) for a pattern that matches none of them, and
  /// suggests the nearest name.
  std::vector<bool> among(std::span<const std::string> names) const;
  /// The chosen variables.
  std::vector<VariableId> among(const VariableStore& store, bool trained_only) const;
  /// As Params::error().
  Error error(const std::string& what_happened, std::string advice) const;

 private:
  std::optional<std::vector<std::string>> patterns_;
  std::string name_, where_, subject_;
};

/// "2 of 8 variables (conv1/kernel, conv1/bias)", or "all 8 variables"; `of` counts all, and `things` are
/// what they are.
std::string chosen_text(std::span<const std::string> chosen, std::size_t of, std::string_view things);

}  // namespace lockstep
