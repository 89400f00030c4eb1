// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Normal random numbers (Box and Muller 1958) with the same bits on every device. Libraries differ in the
// last bits of log, sin and cos, so this file computes them from sums and products in double. For files
// compiled per instruction-set level (isa.h) and for *.cu files.
#pragma once

#include <cstdint>

namespace lockstep {
namespace {  // internal linkage, as isa.h requires

/// log(u) for 2^-32 <= u <= 1: u = 2^e m with m in [sqrt(1/2), sqrt(2)), log m = 2 atanh((m - 1) / (m + 1)).
constexpr double log_of_fraction(double u) {
  const std::uint64_t bits = __builtin_bit_cast(std::uint64_t, u);
  double exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  double m = __builtin_bit_cast(double, (bits & 0xFFFFFFFFFFFFFU) | (std::uint64_t{1023} << 52));
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent += 1.0;
  }
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 19.0;
  for (int k = 17; k >= 1; k -= 2) p = p * z + 1.0 / static_cast<double>(k);
  return exponent * 0.69314718055994530942 + 2.0 * s * p;
}

/// The sine and cosine of 2 pi turn / 2^32, by Taylor series around the nearest quarter turn.
struct SineCosine {
  double sine, cosine;
};
constexpr SineCosine sine_cosine(std::uint32_t turn) {
  const std::uint32_t quarter = (turn + 0x20000000U) >> 30;  // of a turn, rounded, modulo 4
  const auto rest = static_cast<std::int32_t>(turn - (quarter << 30));
  const double x = static_cast<double>(rest) * (1.5707963267948966192 * 0x1p-30), z = -(x * x);
  double sine = 1.0, cosine = 1.0;  // x z^k / (2k + 1)! and z^k / (2k)!, starting with the last term
  for (int k = 8; k >= 1; --k) {
    sine = 1.0 + sine * z / static_cast<double>(2 * k * (2 * k + 1));
    cosine = 1.0 + cosine * z / static_cast<double>(2 * k * (2 * k - 1));
  }
  sine *= x;
  switch (quarter) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

/// The squared radius, from the first word of a pair. The second word is the angle.
constexpr double squared_radius(std::uint32_t word) {
  return -2.0 * log_of_fraction((static_cast<double>(word) + 1.0) * 0x1p-32);
}

}  // namespace
}  // namespace lockstep
