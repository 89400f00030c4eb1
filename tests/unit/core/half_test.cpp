// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

/// The nearest number of a type, ties to the one with an even last bit. Found by search, independently of the
/// bit operations under test.
template <typename T>
T nearest(double value) {
  T best{0};
  double distance = std::numeric_limits<double>::infinity();
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const T candidate{static_cast<std::uint16_t>(bits)};
    const float number = to_float(candidate);
    if (!std::isfinite(number) || std::signbit(number) != std::signbit(value)) continue;
    const double d = std::abs(static_cast<double>(number) - value);
    if (d < distance || (d == distance && (bits & 1U) == 0)) {
      best = candidate;
      distance = d;
    }
  }
  return best;
}

template <typename T>
class HalfTypes : public testing::Test {};
using Types = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(HalfTypes, Types);

TYPED_TEST(HalfTypes, RoundTripThroughFloatIsExact) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const TypeParam value{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(value);
    const TypeParam back = from_float<TypeParam>(wide);
    if (std::isnan(wide))
      EXPECT_TRUE(std::isnan(to_float(back))) << bits;
    else
      EXPECT_EQ(back.bits, value.bits);
  }
}

TYPED_TEST(HalfTypes, RoundsToNearestTiesToEven) {
  // Pairs of neighbours at both ends of the range, including subnormal numbers: their middle and the values
  // next to it.
  for (const std::uint16_t bits : {0x0000, 0x0001, 0x0002, 0x007F, 0x0080, 0x03FF, 0x0400, 0x0401, 0x3BFF,
                                   0x3C00, 0x3C01, 0x3F80, 0x3F81, 0x7BFE}) {
    const float low = to_float(TypeParam{bits}),
                high = to_float(TypeParam{static_cast<std::uint16_t>(bits + 1)});
    const float middle = static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) / 2);
    for (const float value : {middle, std::nextafter(middle, low), std::nextafter(middle, high)})
      for (const float sign : {1.0F, -1.0F})
        EXPECT_EQ(from_float<TypeParam>(sign * value).bits,
                  nearest<TypeParam>(static_cast<double>(sign * value)).bits)
            << bits << " " << value;
  }
}

TYPED_TEST(HalfTypes, PreservesInfinityNanAndSign) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_float(from_float<TypeParam>(kInfinity)), kInfinity);
  EXPECT_EQ(to_float(from_float<TypeParam>(-kInfinity)), -kInfinity);
  EXPECT_TRUE(std::isnan(to_float(from_float<TypeParam>(std::nanf("")))));
  // A NaN stays a NaN even if its payload is only in the discarded bits.
  EXPECT_TRUE(std::isnan(to_float(from_float<TypeParam>(std::bit_cast<float>(0x7F800001U)))));
  EXPECT_TRUE(std::signbit(to_float(from_float<TypeParam>(-0.0F))));
  EXPECT_EQ(to_float(from_float<TypeParam>(std::numeric_limits<float>::max())), kInfinity);
}

TEST(Half, Float16OverflowFollowsIeee) {
  EXPECT_EQ(to_float(from_float<Float16>(65519.0F)), 65504.0F);
  EXPECT_EQ(to_float(from_float<Float16>(65520.0F)), std::numeric_limits<float>::infinity());
  EXPECT_EQ(to_float(from_float<Float16>(0x1p-25F)), 0.0F);  // a tie, rounded to even
  EXPECT_EQ(to_float(from_float<Float16>(0x1.8p-25F)), 0x1p-24F);
}

}  // namespace
}  // namespace lockstep
