// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/setbacks.h"

#include <fmt/format.h>

#include "comm/shared_error.h"

namespace lockstep {

void Setbacks::skipped(std::int64_t step, const std::string& what, const std::string& advice) {
  const auto number = static_cast<double>(step);
  if (counts_[kSkips] > 0 && counts_[kLastSkipped] == number) return;  // two hooks skip the same step
  counts_[kSkips] += 1;
  counts_[kLastSkipped] = number;
  if (counts_[kSkips] > static_cast<double>(limit_))
    throw SharedError(
        Error(ErrorKind::numeric,
              fmt::format("{}; the updates of {} steps in a row are skipped", what, counts_[kSkips]), "",
              advice + " train.max_setbacks is the limit."));
}

void Setbacks::went_back(const Setbacks& before, std::int64_t step) {
  const auto number = static_cast<double>(step);
  const bool same = before.counts_[kReturns] > 0 && before.counts_[kReturnedTo] == number;
  counts_[kReturns] = same ? before.counts_[kReturns] + 1 : 1;
  counts_[kReturnedTo] = number;
  reason_ = before.reason_;
  if (counts_[kReturns] > static_cast<double>(limit_))
    throw SharedError(Error(
        ErrorKind::numeric,
        fmt::format("{}; the run would go back to step {} more than {} times", reason_, step, limit_), "",
        "Other samples do not help: try a smaller learning rate, or clip gradients. "
        "train.max_setbacks is the "
        "limit."));
}

}  // namespace lockstep
