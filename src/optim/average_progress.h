// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How far the average of a run is (average_rule.h). It belongs to the state of the run: an average that was
// added in the middle of a run has had fewer updates than the steps say.
#pragma once

#include <cstdint>
#include <optional>

#include "optim/average_rule.h"

namespace lockstep {

struct AverageProgress {
  std::int64_t first = 0;    ///< global step after which it begins, or has begun
  std::int64_t updates = 0;  ///< so far
  std::int64_t last = 0;     ///< global step of the last one; `first` before it

  /// Of an average that begins as the rule says, but not before global step `step`.
  static AverageProgress beginning(const AverageRule& rule, std::int64_t step);
  /// At global step `step`, of an average that began as the rule says.
  static AverageProgress at(const AverageRule& rule, std::int64_t step);

  /// Whether the average may differ from the variables after global step `step`.
  bool has_begun(std::int64_t step) const { return step > first; }
  /// The weight of the update after global step `step`, which is counted; none: there is no update. Called
  /// once for each step.
  std::optional<float> next_weight(const AverageRule& rule, std::int64_t step);
};

}  // namespace lockstep
