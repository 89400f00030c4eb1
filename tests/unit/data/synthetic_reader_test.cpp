// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

std::unique_ptr<ReaderDataset> open(Options options) {
  options.emplace_back("shape", "[5, 3]");
  return open_dataset("synthetic", params_for("synthetic", options), "");
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments_of(const std::vector<float>& values) {
  Moments moments;
  const auto count = static_cast<double>(values.size());
  for (const float value : values) moments.mean += double{value} / count;
  for (const float value : values) moments.variance += std::pow(double{value} - moments.mean, 2) / count;
  return moments;
}

// 30,000 values: the error of the mean is sqrt(variance / 30000); the limits are five of it.
TEST(SyntheticReader, HasTheDistribution) {
  const auto uniform = moments_of(features_of(*open({{"samples", "2000"}})));
  EXPECT_NEAR(uniform.mean, 0.5, 0.0084);
  EXPECT_NEAR(uniform.variance, 1 / 12.0, 0.003);
  const auto normal = moments_of(features_of(*open({{"samples", "2000"}, {"distribution", "normal"}})));
  EXPECT_NEAR(normal.mean, 0, 0.029);
  EXPECT_NEAR(normal.variance, 1, 0.041);
  const auto bytes = moments_of(features_of(*open({{"samples", "2000"}, {"dtype", "uint8"}})));
  EXPECT_NEAR(bytes.mean, 127.5, 2.14);
  EXPECT_THAT(features_of(*open({{"samples", "3"}, {"distribution", "constant"}, {"scale", "2"}})),
              Each(2.0F));
}

TEST(SyntheticReader, BitsArePinned) {
  const auto data = open({{"samples", "4"}, {"seed", "7"}});
  EXPECT_EQ(data->fingerprint(), "e4bb76611228f7a2");
  EXPECT_EQ(open({{"samples", "4"}, {"seed", "7"}, {"dtype", "uint8"}})->fingerprint(), "44bc560ef11dfcf2");
}

TEST(SyntheticReader, ASampleDependsOnSeedAndNumberOnly) {
  for (const char* distribution : {"uniform", "normal"}) {
    const auto all = open({{"samples", "100"}, {"distribution", distribution}, {"labels", "linear"}});
    const auto part = open(
        {{"samples", "200"}, {"distribution", distribution}, {"labels", "linear"}, {"rows", "[40, 90]"}});
    EXPECT_EQ(features_of(*part, {0, 49}), features_of(*all, {40, 89}));
    EXPECT_EQ(labels_of<std::int32_t>(*part)[9], labels_of<std::int32_t>(*all)[49]);
    const auto other = open({{"samples", "100"}, {"distribution", distribution}, {"seed", "2"}});
    EXPECT_NE(features_of(*other, {3}), features_of(*all, {3}));
    EXPECT_NE(features_of(*all, {4}), features_of(*all, {3}));
    const auto stream = open({{"samples", "100"},
                              {"distribution", distribution},
                              {"labels", "linear"},
                              {"memory_gb", "2e-6"},
                              {"block_samples", "2"}});
    ASSERT_NE(stream->stream(), nullptr);
    EXPECT_EQ(features_of(*stream), features_of(*all));
    EXPECT_EQ(stream->fingerprint(), all->fingerprint());
  }
}

TEST(SyntheticReader, EveryClassIsThere) {
  for (const char* labels : {"random", "linear"}) {
    std::vector<int> counts(4);
    const auto data = open({{"samples", "2000"}, {"classes", "4"}, {"labels", labels}});
    for (const std::int32_t label : labels_of<std::int32_t>(*data))
      ++counts.at(static_cast<std::size_t>(label));
    EXPECT_THAT(counts, Each(::testing::Gt(100))) << labels;
  }
  EXPECT_EQ(open({{"samples", "2"}, {"labels", "null"}})->label_kind(), LabelKind::none);
}

TEST(SyntheticReader, WhatCannotBeIsRefused) {
  EXPECT_THAT(error_of([] {
                open({{"samples", "2"}, {"distribution", "normal"}, {"dtype", "uint8"}});
              }).what(),
              HasSubstr("which bytes cannot be"));
  EXPECT_THAT(error_of([] {
                open({{"samples", "2"}, {"distribution", "constant"}, {"labels", "linear"}});
              }).what(),
              HasSubstr("all samples are equal"));
}

}  // namespace
}  // namespace lockstep::testing
