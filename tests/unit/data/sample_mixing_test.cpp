// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Mixup and CutMix: the distribution of shares, what is mixed, and what cannot be mixed.
#include "data/sample_mixing.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "config/yaml_node.h"
#include "core/hash.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

MixingOptions options(const std::string& yaml) {
  return *mixing_options(Params(parse_yaml("{mix: " + yaml + "}", "test"), mixing_table(), "section data"));
}
SampleMixing::Draw drawn(const SampleMixing& mixing, std::int64_t sample, std::int64_t epoch = 0) {
  return mixing.draw({.seed = 5, .epoch = epoch, .place = sample});
}

/// Beta(a, a) has mean 1/2 and variance 1 / (4 (2 a + 1)).
TEST(SampleMixing, SharesOfMixupFollowTheBetaDistribution) {
  for (const double alpha : {0.2, 1.0, 4.0}) {
    const SampleMixing mixing(options("{mixup: " + std::to_string(alpha) + ", classes: 3}"), {4}, true, 1);
    constexpr int kDraws = 20000;
    double mean = 0, squares = 0;
    for (int sample = 0; sample < kDraws; ++sample) {
      const double share = drawn(mixing, sample).share;
      ASSERT_GE(share, 0);
      ASSERT_LE(share, 1);
      mean += share / kDraws;
      squares += (share - 0.5) * (share - 0.5) / kDraws;
    }
    EXPECT_NEAR(mean, 0.5, 0.01) << alpha;
    EXPECT_NEAR(squares, 1 / (4 * (2 * alpha + 1)), 0.005) << alpha;
  }
}

TEST(SampleMixing, MixesFeaturesAndLabelsWithOneShare) {
  const SampleMixing mixing(options("{mixup: 1, classes: 3}"), {2}, true, 1);
  std::vector<float> own{1, 2}, row(3);
  const std::vector<float> partner{5, 10}, partner_row{0, 0, 1};
  mixing.write_row(1, row.data());
  const SampleMixing::Draw draw{.share = 0.75F};
  mixing.mix_features(draw, own.data(), partner.data());
  mixing.mix_labels(draw, row.data(), partner_row.data());
  EXPECT_THAT(own, ElementsAre(2, 4));
  EXPECT_THAT(row, ElementsAre(0, 0.75F, 0.25F));
}

TEST(SampleMixing, CutMixTakesABoxAndItsShareOfTheLabel) {
  const Shape shape{8, 8, 1};
  const SampleMixing mixing(options("{cutmix: 1, classes: 2}"), shape, true, 1);
  double mean = 0;
  for (int sample = 0; sample < 2000; ++sample) {
    const auto draw = drawn(mixing, sample);
    std::vector<float> own(64, 0.0F), row{1, 0};
    const std::vector<float> partner(64, 1.0F), partner_row{0, 1};
    mixing.mix_features(draw, own.data(), partner.data());
    mixing.mix_labels(draw, row.data(), partner_row.data());
    float taken = 0;
    for (const float value : own) taken += value;
    ASSERT_FLOAT_EQ(row[1], taken / 64) << sample;
    mean += taken / 64 / 2000;
  }
  EXPECT_GT(mean, 0.2);
  EXPECT_LT(mean, 0.5) << "boxes lose what lies outside the image";
}

TEST(SampleMixing, ProbabilityAndTheChoiceOfTheMethod) {
  const SampleMixing mixing(options("{mixup: 1, cutmix: 1, probability: 0.5, classes: 2}"), {8, 8, 1}, true,
                            1);
  int mixed = 0, cut = 0;
  for (int sample = 0; sample < 4000; ++sample) {
    const auto draw = drawn(mixing, sample);
    mixed += draw.share < 1 ? 1 : 0;
    cut += draw.cuts ? 1 : 0;
  }
  EXPECT_NEAR(mixed, 2000, 200);  // a box may be empty
  EXPECT_NEAR(cut, 1000, 150);
}

/// The random numbers are part of what a run's bits depend on.
TEST(SampleMixing, BitsArePinned) {
  const SampleMixing mixing(options("{mixup: 0.2, cutmix: 1, classes: 2}"), {8, 8, 1}, true, 1);
  Digest digest;
  for (int sample = 0; sample < 50; ++sample) {
    const float share = drawn(mixing, sample, 2).share;
    digest.add(&share, sizeof(share));
  }
  EXPECT_EQ(digest.hex().substr(0, 16), "3a94d5da51be66ac");
}

TEST(SampleMixing, WhatCannotBeMixedIsRefused) {
  const auto refused = [](const std::string& yaml, const Shape& shape, bool indices, std::int64_t columns) {
    return message_of([&] { SampleMixing(options(yaml), shape, indices, columns); });
  };
  EXPECT_THAT(refused("{classes: 2}", {4}, true, 1), HasSubstr("neither mixup nor cutmix"));
  EXPECT_THAT(refused("{mixup: 1}", {4}, true, 1), HasSubstr("number of classes is not given"));
  EXPECT_THAT(refused("{mixup: 1, classes: 3}", {4}, true, 2), HasSubstr("2 columns of class indices"));
  EXPECT_THAT(refused("{mixup: 1, classes: 3}", {4}, false, 2), HasSubstr("rows of 2 values"));
  EXPECT_THAT(refused("{mixup: 1}", {4}, false, 0), HasSubstr("no labels"));
  EXPECT_THAT(refused("{cutmix: 1}", {4}, false, 2), HasSubstr("takes images"));
  EXPECT_THAT(refused("{mixup: 0}", {4}, false, 2), HasSubstr("mixup"));
}

}  // namespace
}  // namespace lockstep
