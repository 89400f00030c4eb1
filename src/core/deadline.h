// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Time limits of waits, in seconds on the steady clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace lockstep {

/// The limit of waits that are certain to be ended otherwise, for example by a stop that cancels them.
inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// The time `seconds` from now. Negative values and NaN mean now. Limited to three years to avoid overflow.
inline std::chrono::steady_clock::time_point deadline_after(double seconds) {
  constexpr double kLongest = 1e8;
  const double cut = seconds > 0 ? std::min(seconds, kLongest) : 0;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(cut));
}

}  // namespace lockstep
