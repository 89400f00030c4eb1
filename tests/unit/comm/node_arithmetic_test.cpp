// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/node_arithmetic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace lockstep {
namespace {

constexpr int kMost = 70;  ///< beyond the widest vector's main loop and remainder

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
/// The payload of a NaN is not promised.
bool same(float a, float b) { return bits(a) == bits(b) || (std::isnan(a) && std::isnan(b)); }
float kept(float value) { return to_float(from_float<BFloat16>(value)); }

/// All kinds of bit patterns: subnormal numbers, infinities, NaN, both zeros, ties.
std::vector<float> patterns(unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> values;
  const std::uint32_t special[] = {0x00000000U, 0x80000000U, 0x7F800000U, 0xFF800000U,
                                   0x7F800001U, 0x7FFFFFFFU, 0x00000001U, 0x00008000U,
                                   0x3F808000U, 0x3F818000U, 0x7F7FFFFFU, 0xFF7F8000U};
  for (int i = 0; i < kMost + 20; ++i) {
    const auto random = static_cast<std::uint32_t>(generator());
    values.push_back(std::bit_cast<float>(i % 5 == 0 ? special[random % std::size(special)] : random));
  }
  return values;
}

TEST(NodeArithmetic, RoundsAndAddsEachElement) {
  const NodeArithmetic& host = host_arithmetic();
  for (int offset = 0; offset < 3; ++offset)
    for (int count = 0; count <= kMost; ++count) {
      const std::vector<float> a = patterns(static_cast<unsigned>(count)),
                               b = patterns(1000U + static_cast<unsigned>(count));
      const auto at = [&](const std::vector<float>& values, int i) {
        return values[static_cast<std::size_t>(offset + i)];
      };
      std::vector<BFloat16> narrow(b.size(), {7});
      host.narrow(nullptr, count, b.data() + offset, narrow.data() + 1);
      std::vector<float> wide(b.size(), -1.0F), rounded = a;
      host.widen(nullptr, count, narrow.data() + 1, wide.data() + 2);
      host.round(nullptr, count, rounded.data() + offset);
      EXPECT_EQ(narrow[static_cast<std::size_t>(count) + 1].bits, 7);
      EXPECT_EQ(wide[static_cast<std::size_t>(count) + 2], -1.0F);
      for (int i = 0; i < count; ++i) {
        EXPECT_TRUE(same(wide[static_cast<std::size_t>(i) + 2], kept(at(b, i))));
        EXPECT_TRUE(same(at(rounded, i), kept(at(a, i))));
        EXPECT_EQ(std::isnan(at(rounded, i)), std::isnan(at(a, i)));
      }
      for (const bool total : {false, true}) {
        std::vector<float> floats = a, halves = a, plain = a;
        host.add_rounded(nullptr, count, floats.data() + offset, b.data() + offset, total);
        host.add_rounded(nullptr, count, halves.data() + offset, narrow.data() + 1, total);
        host.add(nullptr, count, plain.data() + offset, b.data() + offset);
        for (int i = 0; i < count; ++i) {
          const float sum = kept(at(a, i)) + kept(at(b, i)), expected = total ? kept(sum) : sum;
          EXPECT_TRUE(same(at(floats, i), expected)) << count << " elements, " << i;
          EXPECT_TRUE(same(at(halves, i), expected)) << count << " elements, " << i;
          EXPECT_TRUE(same(at(plain, i), at(a, i) + at(b, i)));
        }
        for (std::size_t i = static_cast<std::size_t>(offset + count); i < a.size(); ++i)
          EXPECT_TRUE(bits(floats[i]) == bits(a[i]) && bits(halves[i]) == bits(a[i]) &&
                      bits(plain[i]) == bits(a[i]));
      }
    }
}

}  // namespace
}  // namespace lockstep
