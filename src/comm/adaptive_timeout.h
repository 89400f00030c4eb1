// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The default limit of the watchdog (comm.timeout_seconds: null): 300 s during the first ten steps, then the
// larger of 60 s and five times the slowest of these steps.
//
// Each rank computes the limit for itself; no communication is needed. No rank ends a step before the slowest
// one has sent its gradients, so all ranks measure nearly the same times, and the factor of five is much
// larger than the remaining difference. All ranks switch to the new limit after the same step. If their
// limits differ, the rank with the smallest one ends the run.
//
// One fixed limit is too short for large models or too long for small ones.
#pragma once

#include <algorithm>

namespace lockstep {

class AdaptiveTimeout {
 public:
  static constexpr double kStartSeconds = 300, kLeastSeconds = 60, kFactor = 5;
  static constexpr int kFirstSteps = 10;

  /// Records the duration of a step, including the time spent waiting for other ranks. Returns whether the
  /// limit has changed.
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
