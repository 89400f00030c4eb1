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

  bool allows(double label) const {
    if (ignored && label == static_cast<double>(*ignored)) return true;
    return std::isfinite(label) && label >= least && label <= most && (!whole || label == std::floor(label));
  }
};

}  // namespace lockstep
