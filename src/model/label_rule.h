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
  bool whole = false;                        ///< only whole numbers
  std::optional<std::int32_t> ignored = {};  ///< also allowed; samples with this label do not count
  std::string wanted = "a finite number";
  std::string advice = "Check the label columns.";
  std::int64_t distribution = 0;  ///< so many labels, one after the other, sum to 1; 0: any sums

  bool allows(double label) const {
    if (ignored && label == static_cast<double>(*ignored)) return true;
    return std::isfinite(label) && label >= least && label <= most && (!whole || label == std::floor(label));
  }

  /// Sums of probabilities in 16 bits are off by less.
  static constexpr double kSumTolerance = 0.01;

  static LabelRule classes(std::int64_t count, std::optional<std::int32_t> ignored = {}) {
    return {0,
            static_cast<double>(count - 1),
            true,
            ignored,
            fmt::format("one of {} classes", count),
            "Check the label columns and the loss. Classes count from 0, and the last layer has a unit for "
            "each. Numbers that are no classes need a loss such as mean_squared_error."};
  }
  static LabelRule between_zero_and_one(std::optional<std::int32_t> ignored = {}) {
    return {0,
            1,
            false,
            ignored,
            "between 0 and 1",
            "This loss takes a label from 0 to 1 for each output: 1 where the class is there. A class index "
            "needs softmax_cross_entropy, and a number to be predicted mean_squared_error."};
  }
  static LabelRule zero_or_one(std::optional<std::int32_t> ignored = {}) {
    LabelRule rule = between_zero_and_one(ignored);
    rule.whole = true;
    rule.wanted = "0 or 1";
    return rule;
  }
  static LabelRule shares(std::int64_t classes) {
    return {.least = 0,
            .most = 1,
            .wanted = fmt::format("a probability, as each of the {} labels of a distribution", classes),
            .advice =
                "This loss takes class indices, or for each class its probability. Numbers to be "
                "predicted need a loss such as mean_squared_error; classes of which several are there "
                "at once need sigmoid_cross_entropy.",
            .distribution = classes};
  }
  static LabelRule not_negative() { return {.least = 0, .wanted = "0 or more"}; }
  static LabelRule finite(std::optional<std::int32_t> ignored = {}) { return {.ignored = ignored}; }
};

}  // namespace lockstep
