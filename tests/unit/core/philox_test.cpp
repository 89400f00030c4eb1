// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace lockstep {
namespace {

// Random123 1.14, tests/kat_vectors, "philox4x32 10".
TEST(Philox, MatchesPublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0U, ~0U, ~0U, ~0U}, ~0U, ~0U),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The initial values of every network depend on these ids, so they must never change. The vectors are those
// of the authors of FNV-1a (32 bits).
TEST(Philox, PurposesAreFnv1a) {
  EXPECT_EQ(philox_purpose(""), 0x811c9dc5U);
  EXPECT_EQ(philox_purpose("a"), 0xe40c292cU);
  EXPECT_EQ(philox_purpose("foobar"), 0xbf9cf968U);
}

TEST(Philox, EveryPartOfTheKeyChangesTheStream) {
  const std::set<PhiloxBlock> streams{
      philox_words(1, 2, 3, 4, 5), philox_words(2, 2, 3, 4, 5), philox_words(1ULL << 32 | 1, 2, 3, 4, 5),
      philox_words(1, 3, 3, 4, 5), philox_words(1, 2, 4, 4, 5), philox_words(1, 2, 3, 5, 5),
      philox_words(1, 2, 3, 4, 6)};
  EXPECT_EQ(streams.size(), 7U);
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(philox_uniform(0), 0.0F);
  EXPECT_EQ(philox_uniform(~0U), 1.0F - 0x1p-24F);
}

TEST(Philox, NormalIsFiniteAndHasStandardMoments) {
  EXPECT_TRUE(std::isfinite(philox_normal(0, 0)[0]));
  EXPECT_TRUE(std::isfinite(philox_normal(~0U, ~0U)[1]));
  // 200,000 numbers: standard errors 0.0022 (mean), 0.0032 (variance), 0.022 (4th moment).
  constexpr int kBlocks = 50000;
  double mean = 0, square = 0, fourth = 0;
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    const PhiloxBlock w = philox_words(11, philox_purpose("test"), 0, 0, block);
    for (const auto& pair : {philox_normal(w[0], w[1]), philox_normal(w[2], w[3])})
      for (double x : pair) {
        mean += x;
        square += x * x;
        fourth += x * x * x * x;
      }
  }
  const double n = 4.0 * kBlocks;
  EXPECT_NEAR(mean / n, 0.0, 5 * 0.0022);
  EXPECT_NEAR(square / n, 1.0, 5 * 0.0032);
  EXPECT_NEAR(fourth / n, 3.0, 5 * 0.022);
}

}  // namespace
}  // namespace lockstep
