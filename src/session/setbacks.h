// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts the steps that brought a run no further: those whose update was skipped, in a row, and the returns
// to the same checkpoint. A limit for both ends a run that would go on like this for ever. The same on all
// ranks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

class Setbacks {
 public:
  explicit Setbacks(std::int64_t limit = 10) : limit_(limit) {}
  void set_limit(std::int64_t limit) { limit_ = limit; }

  /// The update of step `step` is skipped because of `what`. Throws SharedError(numeric) above the limit.
  void skipped(std::int64_t step, const std::string& what, const std::string& advice);
  /// A step has updated the variables.
  void updated() { counts_[kSkips] = 0; }
  /// The run has gone back to the checkpoint of `step` (0 without one), after which `before` counts. Throws
  /// SharedError(numeric) above the limit.
  void went_back(const Setbacks& before, std::int64_t step);
  /// Why the run goes back, for the message at the limit.
  void set_reason(const std::string& what) { reason_ = what; }

  /// The counts for checkpoints.
  std::span<double> state() { return counts_; }

 private:
  enum { kSkips, kLastSkipped, kReturns, kReturnedTo };
  std::int64_t limit_;
  std::array<double, 4> counts_{};
  std::string reason_;
};

}  // namespace lockstep
