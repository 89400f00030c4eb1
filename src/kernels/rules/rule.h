// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the element functions of the rules share. A rule is a struct with the numbers of one step and
//
//   static constexpr int kSlots                                  at most kMostSlots
//   void apply(float& w, float g, float* slot) const             marked LOCKSTEP_ELEMENT
//
// which updates one element: w, and slot[0] to slot[kSlots - 1], from the gradient g. The same function
// serves dense ranges and rows, on the CPU (in vectors) and on GPUs. A rule that needs numbers in device
// memory has also void begin(), which reads them into the rule before its elements (trust_rate.h).
//
// What a configuration says of a rule, its slots and the numbers of a step are in optim/rules.
//
// - Each operation is rounded once, in the order written. There is no branch that depends on an element:
//   write `condition ? a : b` with both values computed before, so that the compiler can make vectors.
// - A gradient that is NaN makes w NaN, so that it is noticed.
// - Only what is here may be called: it has the same bits on the CPU at every instruction-set level and on a
//   GPU. For files compiled per level (isa.h) and *.cu files.
#pragma once

#include <cstdint>

#include "kernels/rules/rule_step.h"

#if defined(__CUDACC__)
#define LOCKSTEP_ELEMENT __host__ __device__ __forceinline__
#else
#define LOCKSTEP_ELEMENT __attribute__((always_inline)) inline
#endif

namespace lockstep {
namespace {  // each file's own, see isa.h

/// A step of a rule with the numbers in `rule`; of kernels/rules.h.
template <typename Rule>
RuleStep rule_step(const Rule& rule);

LOCKSTEP_ELEMENT float root(float x) {
#if defined(__CUDA_ARCH__)
  return sqrtf(x);
#else
  return __builtin_sqrtf(x);
#endif
}

LOCKSTEP_ELEMENT float magnitude(float x) {
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, x) & 0x7FFFFFFFU);
}

/// `x` with the sign bit of `sign`.
LOCKSTEP_ELEMENT float with_sign_of(float x, float sign) {
  return __builtin_bit_cast(float, (__builtin_bit_cast(std::uint32_t, x) & 0x7FFFFFFFU) |
                                       (__builtin_bit_cast(std::uint32_t, sign) & 0x80000000U));
}

/// sign(x) max(|x| - threshold, 0), and NaN for NaN: the proximal operator of threshold |x|.
LOCKSTEP_ELEMENT float shrunk(float x, float threshold) {
  const float rest = magnitude(x) - threshold;
  return with_sign_of(rest <= 0.0F ? 0.0F : rest, x);
}

/// x^exponent in double, for x >= 0 and 0 <= exponent; relative error below 1e-12. Infinity and NaN stay.
LOCKSTEP_ELEMENT double power_of(float x, double exponent) {
  const auto value = static_cast<double>(x);
  // value = 2^n m with m in [sqrt(1/2), sqrt(2)). The shifted number is n + 1024.
  const std::uint64_t bits = __builtin_bit_cast(std::uint64_t, value);
  const std::uint64_t shifted_n = (bits + 0x00195F619980C433U) >> 52;
  const double m = __builtin_bit_cast(double, bits - (shifted_n << 52) + 0x4000000000000000U);
  const double n = __builtin_bit_cast(double, shifted_n | 0x4330000000000000U) - (0x1p52 + 1024.0);
  // log(m) = 2 atanh(t), |t| <= 0.1716, by its series.
  const double t = (m - 1.0) / (m + 1.0), z = t * t;
  double series = 1.0 / 17.0;
  series = series * z + 1.0 / 15.0;
  series = series * z + 1.0 / 13.0;
  series = series * z + 1.0 / 11.0;
  series = series * z + 1.0 / 9.0;
  series = series * z + 1.0 / 7.0;
  series = series * z + 1.0 / 5.0;
  series = series * z + 1.0 / 3.0;
  const double logarithm = n * 0.69314718055994530942 + ((t + t) + (t + t) * (z * series));
  double y = logarithm * exponent;
  y = y > 700.0 ? 700.0 : y < -700.0 ? -700.0 : y;
  // exp(y) = 2^k exp(r), |r| <= log(2) / 2. Adding the shift rounds to a whole number.
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = y * 1.44269504088896340736 + kShift, k = shifted - kShift;
  const double r = (y - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
  double p = 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const std::uint64_t power = (__builtin_bit_cast(std::uint64_t, shifted) + 1023U) << 52;
  const double result = p * __builtin_bit_cast(double, power);
  const double of_zero = exponent == 0.0 ? 1.0 : 0.0;
  return value == 0.0 ? of_zero : value < __builtin_inf() ? result : value;
}

}  // namespace
}  // namespace lockstep
