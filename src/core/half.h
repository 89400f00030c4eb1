// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The two 16-bit floating-point types. They are storage types; arithmetic is in float32. bfloat16 is a
// float32 without its lower 16 bits; float16 is binary16 of IEEE 754. Conversions round to nearest, ties to
// even, and preserve NaN, infinities and subnormal numbers. They produce the same bits on every
// instruction-set level and on a GPU, except for the payload of a NaN.
//
// Files compiled per instruction-set level (kernels/isa.h) and *.cu files include this header.
#pragma once

#include <cstdint>

namespace lockstep {

struct BFloat16 {
  std::uint16_t bits;
};
struct Float16 {
  std::uint16_t bits;
};

namespace {  // a copy per file, see kernels/isa.h

constexpr float to_float(float value) { return value; }
constexpr float to_float(BFloat16 value) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
}
constexpr float to_float(Float16 value) {
  const std::uint32_t magnitude = value.bits & 0x7FFFU, sign = (value.bits & 0x8000U) << 16;
  // The exponent biases differ by 112. A subnormal number becomes a subnormal float32, which the
  // multiplication normalises.
  const float shifted = __builtin_bit_cast(float, magnitude << 13) * 0x1p112F;
  const std::uint32_t special = magnitude >= 0x7C00U ? 0x7F800000U : 0U;
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, shifted) | special | sign);
}

template <typename T>
constexpr T from_float(float value) = delete;
template <>
constexpr float from_float<float>(float value) {
  return value;
}
template <>
constexpr BFloat16 from_float<BFloat16>(float value) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const bool nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return {static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40U : rounded)};
}
template <>
constexpr Float16 from_float<Float16>(float value) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U, magnitude = bits & 0x7FFFFFFFU;
  // Below 2^-14 the result is subnormal: adding 0.5 rounds its bits into the end of the fraction.
  constexpr std::uint32_t kHalf = 0x3F000000U;
  const float sum = __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, kHalf);
  const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, sum) - kHalf;
  const std::uint32_t normal = (magnitude + 0xC8000FFFU + ((magnitude >> 13) & 1U)) >> 13;
  const std::uint32_t special = magnitude > 0x7F800000U ? 0x7E00U | ((magnitude >> 13) & 0x3FFU) : 0x7C00U;
  const std::uint32_t rounded = magnitude >= 0x47800000U  ? special
                                : magnitude < 0x38800000U ? subnormal
                                                          : normal;
  return {static_cast<std::uint16_t>(rounded | sign)};
}

/// The largest number that from_float<T> rounds to zero: half of the smallest subnormal number, a tie. For
/// finite x and infinities, to_float(from_float<T>(x)) > 0 if and only if x > kRoundedToZero<T>.
template <typename T>
constexpr float kRoundedToZero = 0.0F;
template <>
constexpr float kRoundedToZero<BFloat16> = 0x1p-134F;
template <>
constexpr float kRoundedToZero<Float16> = 0x1p-25F;

}  // namespace
}  // namespace lockstep
