// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sigmoid and tanh in float32 from multiplications, additions and one division. The bits are the same at
// every instruction-set level and on a GPU; the error is within 4 units in the last place. NaN stays NaN. V
// is float, or a register of floats with a FloatBits specialisation. For files compiled per level (isa.h) and
// for *.cu files.
#pragma once

#include <cstdint>

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Computes 2^k from the number k + 2^23 + 2^22, whose low bits hold k; -126 <= k <= 127.
template <typename V>
struct FloatBits;
template <>
struct FloatBits<float> {
  static constexpr float power_of_two(float shifted) {
    return __builtin_bit_cast(float, (__builtin_bit_cast(std::uint32_t, shifted) + 127U) << 23);
  }
};

/// exp(x) = scale * (1 + rest) for x <= 0. Below -87.33, x counts as -87.33, where scale is the smallest
/// normal number.
template <typename V>
struct Exponential {
  V scale, rest;
};

/// x = k ln 2 + r, where k ln 2 is subtracted in two parts, the first without rounding. scale is 2^k; rest is
/// exp(r) - 1 by the polynomial of Cephes' expf (S. Moshier).
template <typename V>
constexpr Exponential<V> exponential_of_negative(V x) {
  constexpr float kLeast = -87.33654F, kPerLn2 = 1.44269504088896341F, kShift = 12582912.0F;
  constexpr float kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  x = x < kLeast ? V{} + kLeast : x;
  const V shifted = x * kPerLn2 + kShift;
  const V k = shifted - kShift;
  const V r = (x - k * kLn2High) - k * kLn2Low;
  V p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  return {FloatBits<V>::power_of_two(shifted), p * (r * r) + r};
}

template <typename V>
constexpr V fast_sigmoid(V x) {
  const Exponential<V> power = exponential_of_negative(x > 0.0F ? -x : x);
  const V e = (power.rest + 1.0F) * power.scale;
  return (x >= 0.0F ? V{} + 1.0F : e) / (e + 1.0F);
}

/// tanh |x| = -m / (2 + m) with m = exp(-2 |x|) - 1, which keeps all digits where it is small.
template <typename V>
constexpr V fast_tanh(V x) {
  const Exponential<V> power = exponential_of_negative((x < 0.0F ? x : -x) * 2.0F);
  const V minus_m = (1.0F - power.scale) - power.rest * power.scale;
  const V size = minus_m / (2.0F - minus_m);
  return x < 0.0F ? -size : size;
}

}  // namespace
}  // namespace lockstep
