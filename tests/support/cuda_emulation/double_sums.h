// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums of products in double, for the emulated libraries. Each sum adds its products in a fixed order; the
// innermost loops run over sums side by side, which a compiler vectorises.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/half.h"

namespace lockstep::cuda {

using Doubles = std::vector<double>;

template <typename T>
Doubles doubles(const T* from, std::int64_t count) {
  Doubles all(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    all[static_cast<std::size_t>(i)] = static_cast<double>(to_float(from[i]));
  return all;
}

/// sums[i] += factor * of[i]
inline void add_product(double factor, const double* of, std::int64_t count, double* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += factor * of[i];
}

/// Rounds to 16 bits of mantissa.
inline double coarse(double number) {
  int exponent = 0;
  const double mantissa = std::frexp(number, &exponent);
  return std::ldexp(std::nearbyint(mantissa * 0x1p16), exponent - 16);
}

}  // namespace lockstep::cuda
