// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the labels in some columns of a data set must be. Losses declare such rules (model/label_rule.h); what
// trains a model asks its data sets for them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace lockstep {

struct LabelDemand {
  std::int64_t first = 0, last = 0;  ///< columns [first, last)
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  bool whole = false;                   ///< only whole numbers
  std::optional<std::int32_t> ignored;  ///< also allowed
  std::string wanted;                   ///< "one of 10 classes", for messages
  std::string advice;
  std::int64_t distribution = 0;  ///< so many columns, one after the other, sum to 1; 0: any sums
  double sum_tolerance = 0;

  bool allows(double label) const {
    if (ignored && label == static_cast<double>(*ignored)) return true;
    return std::isfinite(label) && label >= least && label <= most && (!whole || label == std::floor(label));
  }
  bool allows_sum(double sum) const { return std::abs(sum - 1) <= sum_tolerance; }
};

struct BadSum {
  std::int64_t first;  ///< column
  double sum;
};
/// The first columns that are no distribution. `label_of`: the label in a column.
template <typename LabelOf>
std::optional<BadSum> first_bad_sum(const LabelDemand& demand, LabelOf label_of) {
  for (std::int64_t first = demand.first; demand.distribution > 0 && first < demand.last;
       first += demand.distribution) {
    double sum = 0;
    for (std::int64_t i = 0; i < demand.distribution; ++i) sum += label_of(first + i);
    if (!demand.allows_sum(sum)) return BadSum{first, sum};
  }
  return {};
}

}  // namespace lockstep
