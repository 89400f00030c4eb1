// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/token_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/error.h"

namespace lockstep {
namespace {

/// Probabilities 0.5, 0.3, 0.15 and 0.05 of the ids 3, 0, 2 and 1.
const std::vector<float> kLogits = {std::log(0.3F), std::log(0.05F), std::log(0.15F), std::log(0.5F)};
constexpr int kDraws = 4000;

std::map<std::int32_t, double> shares(const TokenChoice& choice,
                                      std::vector<std::int32_t> ids = {0, 1, 2, 3}) {
  const TokenSampler sampler(choice, std::move(ids));
  std::map<std::int32_t, double> found;
  for (std::uint32_t i = 0; i < kDraws; ++i) found[sampler.choose(kLogits, i)] += 1.0 / kDraws;
  return found;
}

void expect_shares(const TokenChoice& choice, const std::map<std::int32_t, double>& expected) {
  const std::map<std::int32_t, double> found = shares(choice);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [id, share] : expected)
    EXPECT_NEAR(found.at(id), share, 5 * std::sqrt(share * (1 - share) / kDraws) + 1e-12) << id;
}

TEST(TokenSampler, DrawsBySoftmax) {
  expect_shares({}, {{3, 0.5}, {0, 0.3}, {2, 0.15}, {1, 0.05}});
  expect_shares({.temperature = 0}, {{3, 1}});
  expect_shares({.top_k = 2}, {{3, 0.625}, {0, 0.375}});
  expect_shares({.top_k = 99}, {{3, 0.5}, {0, 0.3}, {2, 0.15}, {1, 0.05}});
}

/// The token with which the sum reaches the share stays.
TEST(TokenSampler, TheNucleusIsTheFewestLikelyTokensWithTheShare) {
  expect_shares({.top_p = 0.9}, {{3, 0.5 / 0.95}, {0, 0.3 / 0.95}, {2, 0.15 / 0.95}});
  expect_shares({.top_p = 0.79}, {{3, 0.625}, {0, 0.375}});
  expect_shares({.top_p = 0.49}, {{3, 1}});
  expect_shares({.top_p = 0}, {{3, 1}});
  expect_shares({.top_p = 0.999999}, {{3, 0.5}, {0, 0.3}, {2, 0.15}, {1, 0.05}});
  // After top_k: of 0.625 and 0.375.
  expect_shares({.top_k = 2, .top_p = 0.6}, {{3, 1}});
  // After the temperature: the square roots of the probabilities are nearer to each other.
  EXPECT_EQ(shares({.temperature = 2, .top_p = 0.6}).size(), 2U);
  EXPECT_EQ(shares({.temperature = 0.5, .top_p = 0.6}).size(), 1U);
}

TEST(TokenSampler, IsAFunctionOfSeedAndNumber) {
  EXPECT_EQ(shares({.seed = 1}), shares({.seed = 1}));
  EXPECT_NE(shares({.seed = 1}), shares({.seed = 2}));
}

TEST(TokenSampler, LooksAtItsCandidatesOnly) {
  EXPECT_EQ(shares({}, {1, 2}).size(), 2U);
  const TokenSampler sampler({}, {0, 1});
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_LE(sampler.choose(std::vector<float>{0, 0, kNan}, 0), 1);
  EXPECT_THROW((void)sampler.choose(std::vector<float>{0, kNan, 0}, 0), Error);
}

}  // namespace
}  // namespace lockstep
