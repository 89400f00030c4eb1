// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Time limits of waits, in seconds on the steady clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace lockstep {

/// For waits that something else is sure to end (a stop that cancels them).
inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// `seconds` from now; negative and NaN: now. Cut at three years, so that it can be computed with.
inline std::chrono::steady_clock::time_point deadline_after(double seconds) {
  constexpr double kLongest = 1e8;
  const double cut = seconds > 0 ? std::min(seconds, kLongest) : 0;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(cut));
}

}  // namespace lockstep
