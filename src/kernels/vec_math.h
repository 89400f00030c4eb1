// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// exp and related functions on registers of floats, for files compiled per instruction-set level (isa.h).
// They use no fused multiply-add and no branch per element, so each element's bits are the same at every
// level. NaN stays NaN.
#pragma once

#include "kernels/vec.h"

namespace lockstep {
namespace {

using Bits = std::uint32_t __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));

inline Vec absolute(Vec x) { return reinterpret_cast<Vec>(reinterpret_cast<Bits>(x) & 0x7FFFFFFFU); }

/// x = n log 2 + r with |r| <= log(2) / 2, as 2^n and exp(r) - 1.
struct Reduced {
  Vec power, exponential_minus_one;
};

/// For -87.33 <= x <= 0 or NaN. log 2 is split into two parts, and n times the first is exact. The polynomial
/// is the degree-5 minimax polynomial of Cephes' expf (S. Moshier, Cephes Mathematical Library 2.2,
/// single/expf.c).
inline Reduced reduce_exponent(Vec x) {
  constexpr float kRounder =
      12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, stored in the low bits
  const Vec shifted = x * 1.44269504088896341F + kRounder;
  const Vec n = shifted - kRounder;
  const Vec r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  Vec p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  return {reinterpret_cast<Vec>((reinterpret_cast<Bits>(shifted) + 127U) << 23), p * (r * r) + r};
}

constexpr float kLowestExponent =
    -87.33F;  ///< exp of smaller numbers is below the smallest normal number, 1.2e-38

/// exp(x) for x <= 0: within 2 units in the last place for x >= -87.33, 0 below.
inline Vec exp_of_nonpositive(Vec x) {
  const Vec zero = {};
  const Reduced reduced = reduce_exponent(x < kLowestExponent ? zero + kLowestExponent : x);
  return x < kLowestExponent ? zero : (reduced.exponential_minus_one + 1.0F) * reduced.power;
}

/// exp(x) - 1 for x <= 0, with full precision near 0.
inline Vec expm1_of_nonpositive(Vec x) {
  const Vec zero = {};
  const Reduced reduced = reduce_exponent(x < kLowestExponent ? zero + kLowestExponent : x);
  return reduced.exponential_minus_one * reduced.power + (reduced.power - 1.0F);
}

/// log(1 + e) for 0 <= e <= 1, as 2 atanh(e / (2 + e)) by its series; the argument is at most 1/3.
inline Vec log1p_of_fraction(Vec e) {
  const Vec s = e / (e + 2.0F), z = s * s;
  Vec p = z * (1.0F / 15.0F) + 1.0F / 13.0F;
  p = p * z + 1.0F / 11.0F;
  p = p * z + 1.0F / 9.0F;
  p = p * z + 1.0F / 7.0F;
  p = p * z + 0.2F;
  p = p * z + 1.0F / 3.0F;
  return (s + s) + (s + s) * (z * p);
}

/// exp(-a^2 / 2). a^2 is split into two parts, the first exact, so that large a lose no precision.
inline Vec gaussian(Vec a) {
  const Vec limit = Vec{} + 13.25F;  // the result is 0 beyond
  const Vec bounded = a > limit ? limit : a;
  const Vec head = reinterpret_cast<Vec>(reinterpret_cast<Bits>(bounded) & 0xFFFFF000U);
  const Vec half_rest = (bounded - head) * (bounded + head) * 0.5F;
  const Vec rest = 1.0F - half_rest * (1.0F - half_rest * (0.5F - half_rest * (1.0F / 6.0F)));
  return exp_of_nonpositive(head * head * -0.5F) * rest;
}

/// The normal distribution function at -a for a >= 0, given gaussian(a). Their ratio is t Q(t) with t = 1 /
/// (1 + 0.4 a); Q is the degree-9 polynomial of least relative error (1.5e-8) for a in [0, 13.5].
inline Vec normal_tail(Vec a, Vec density) {
  const Vec t = 1.0F / (a * 0.4F + 1.0F);
  Vec q = t * 0.031965468F - 0.17546192F;
  q = q * t + 0.37912533F;
  q = q * t - 0.3697898F;
  q = q * t + 0.11596418F;
  q = q * t - 0.024957906F;
  q = q * t + 0.09069165F;
  q = q * t + 0.13327451F;
  q = q * t + 0.15961187F;
  q = q * t + 0.15957665F;
  return q * t * density;
}

}  // namespace
}  // namespace lockstep
