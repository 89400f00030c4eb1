// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The watchdog's limit where the user gives none (comm.timeout_seconds: null): the larger of 60 s and five
// times the slowest of the first ten steps; 300 s until they are done.
//
// Each rank computes it for itself. No communication is needed: no rank ends a step before the slowest one
// has given its gradients, so all measure nearly the same times, and the factor of five is far wider than
// what is left of a difference. All ranks change over after the same step. The limit is only ever too large
// by that: a rank with a larger one is spoken for by another.
#pragma once

#include <algorithm>

namespace lockstep {

class AdaptiveTimeout {
 public:
  static constexpr double kStartSeconds = 300, kLeastSeconds = 60, kFactor = 5;
  static constexpr int kFirstSteps = 10;

  /// A step has taken so long, waiting for other ranks included. True if the limit has changed.
  bool step(double seconds) {
    if (steps_ >= kFirstSteps) return false;
    const double before = limit_seconds();
    slowest_ = std::max(slowest_, seconds);
    ++steps_;
    return limit_seconds() != before;
  }
  double limit_seconds() const {
    return steps_ < kFirstSteps ? std::max(kStartSeconds, kFactor * slowest_)
                                : std::max(kLeastSeconds, kFactor * slowest_);
  }

 private:
  int steps_ = 0;
  double slowest_ = 0;
};

}  // namespace lockstep
