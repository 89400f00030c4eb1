// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

namespace lockstep {

/// The number; for any NaN the one without a sign, because a processor gives 0 / 0 a sign that means nothing,
/// and texts would say "-nan".
template <typename Float>
Float plain_nan(Float value) {
  return std::isnan(value) ? std::numeric_limits<Float>::quiet_NaN() : value;
}

}  // namespace lockstep
