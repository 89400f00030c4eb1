// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Two runs that should be equal: where they part first, in their records, their checkpoints of equal steps
// and their recorded steps. Values that a clock measures are left out (is_clock_value()).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "view/report/report_run.h"

namespace lockstep::report {

struct Parting {
  /// The records of metrics.jsonl: numbers that both runs have of a step, split and tag.
  struct Records {
    std::int64_t values = 0, steps = 0;  ///< compared
    std::optional<std::int64_t> step;    ///< the first that differs
    std::string split, tag;
    double first = 0, second = 0;
    std::int64_t different = 0;
  } records;
  /// The checkpoints, and the states before recorded steps.
  struct Checkpoints {
    std::vector<std::int64_t> equal;   ///< steps
    std::optional<std::int64_t> step;  ///< the first that differs
    std::string tensor, detail;        ///< "variables/conv1/kernel", "[0, 2, 1, 7]: 0.25 and 0.26"
    std::int64_t different = 0, tensors = 0;
  } checkpoints;
  /// The steps of `train --record`.
  struct Steps {
    std::vector<std::int64_t> equal;
    std::optional<std::int64_t> step;
    std::string row, places;
  } recorded;
  std::vector<std::string> remarks;

  bool parts() const { return records.step || checkpoints.step || recorded.step; }
  bool nothing_compared() const {
    return records.values == 0 && checkpoints.equal.empty() && !checkpoints.step && recorded.equal.empty() &&
           !recorded.step;
  }
};

Parting find_parting(const ReportRun& first, const ReportRun& second);
/// Lines of text.
std::string parting_text(const Parting& parting);

}  // namespace lockstep::report
