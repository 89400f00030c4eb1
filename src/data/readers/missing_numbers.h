// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the readers of records with named features: the option missing, which says what number takes
// the place of a feature that a record lacks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/option.h"
#include "config/params.h"

namespace lockstep {

struct MissingOptions {
  Node missing;
};
constexpr ParamSpec missing_option(std::string_view help) {
  return option<&MissingOptions::missing>("missing", "error", {}, help);
}

class MissingNumbers {
 public:
  MissingNumbers() = default;
  /// `features`: the names of all. Throws Error(config).
  MissingNumbers(const Params& params, const std::vector<std::string>& features);
  /// Nothing: a missing value is an error.
  std::optional<float> of(std::string_view feature) const;

 private:
  std::map<std::string, float, std::less<>> numbers_;
};

}  // namespace lockstep
