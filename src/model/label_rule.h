// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The labels that a loss accepts. Losses declare a rule; data sets are checked against it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "core/error.h"

namespace lockstep {

struct LabelRule {
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  bool whole = false;                   ///< only whole numbers
  std::optional<std::int32_t> ignored;  ///< also allowed; samples with this label do not count
  std::string wanted = "a finite number";

  bool allows(double label) const {
    if (ignored && label == static_cast<double>(*ignored)) return true;
    return std::isfinite(label) && label >= least && label <= most && (!whole || label == std::floor(label));
  }

  static LabelRule classes(std::int64_t count, std::optional<std::int32_t> ignored = {}) {
    return {0, static_cast<double>(count - 1), true, ignored, fmt::format("one of {} classes", count)};
  }
  static LabelRule between_zero_and_one(std::optional<std::int32_t> ignored = {}) {
    return {0, 1, false, ignored, "between 0 and 1"};
  }
  static LabelRule zero_or_one(std::optional<std::int32_t> ignored = {}) {
    return {0, 1, true, ignored, "0 or 1"};
  }
  static LabelRule not_negative() { return {.least = 0, .wanted = "0 or more"}; }
  static LabelRule finite(std::optional<std::int32_t> ignored = {}) { return {.ignored = ignored}; }
};

}  // namespace lockstep
