// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Initial values: moments, limits, fans, and fixed numbers, because a change of them changes every run.
#include "model/initializer.h"

#include <algorithm>

#include "model_testing.h"

namespace lockstep {
namespace {

std::vector<float> filled(const std::string& yaml, const Shape& shape, std::uint64_t seed = 1,
                          const std::string& name = "w") {
  std::vector<float> values(static_cast<std::size_t>(shape.num_elements()), -77.0F);
  make_initializer(parse_yaml(yaml, "test"))->fill(seed, name, shape, values);
  return values;
}

struct Summary {
  double mean = 0, stddev = 0, low = 0, high = 0;
};
Summary summary(const std::vector<float>& values) {
  Summary s;
  const auto n = static_cast<double>(values.size());
  for (float v : values) s.mean += static_cast<double>(v) / n;
  for (float v : values) s.stddev += std::pow(static_cast<double>(v) - s.mean, 2) / n;
  s.stddev = std::sqrt(s.stddev);
  s.low = static_cast<double>(*std::min_element(values.begin(), values.end()));
  s.high = static_cast<double>(*std::max_element(values.begin(), values.end()));
  return s;
}

constexpr std::int64_t kMany = 100000;
constexpr double kSigma = 5 / 316.2;  // five standard errors of a mean of kMany numbers with deviation 1

TEST(Initializer, Constants) {
  for (float v : filled("zeros", Shape{5})) EXPECT_EQ(v, 0.0F);
  for (float v : filled("ones", Shape{5})) EXPECT_EQ(v, 1.0F);
  for (float v : filled("constant: {value: 0.3}", Shape{5})) EXPECT_EQ(v, 0.3F);
}

TEST(Initializer, Uniform) {
  const Summary s = summary(filled("uniform: {low: -1, high: 3}", Shape{kMany}));
  EXPECT_NEAR(s.mean, 1.0, kSigma * 4 / std::sqrt(12));
  EXPECT_NEAR(s.stddev, 4 / std::sqrt(12), 0.02);
  EXPECT_GE(s.low, -1.0);
  EXPECT_LE(s.high, 3.0);
  EXPECT_LT(s.low, -0.99);
  EXPECT_GT(s.high, 2.99);
}

TEST(Initializer, Normal) {
  const Summary s = summary(filled("normal: {mean: 2, stddev: 0.5}", Shape{kMany}));
  EXPECT_NEAR(s.mean, 2.0, kSigma * 0.5);
  EXPECT_NEAR(s.stddev, 0.5, kSigma * 0.5);
  EXPECT_GT(s.high, 3.5);  // three sigma is reached
}

TEST(Initializer, TruncatedNormalStaysWithinTwoDeviations) {
  const Summary s = summary(filled("truncated_normal: {mean: 2, stddev: 0.5}", Shape{kMany}));
  EXPECT_NEAR(s.mean, 2.0, kSigma * 0.5);
  EXPECT_NEAR(s.stddev, 0.5 * 0.87962566, kSigma * 0.5);
  EXPECT_GE(s.low, 1.0);
  EXPECT_LE(s.high, 3.0);
}

TEST(Initializer, Fans) {
  EXPECT_EQ(fans_of(Shape{3, 5, 4, 6}).in, 60);
  EXPECT_EQ(fans_of(Shape{3, 5, 4, 6}).out, 90);
  EXPECT_EQ(fans_of(Shape{7, 9}).in, 7);
  EXPECT_EQ(fans_of(Shape{7, 9}).out, 9);
  EXPECT_EQ(fans_of(Shape{7}).in, 7);
  EXPECT_EQ(fans_of(Shape{7}).out, 7);
}

TEST(Initializer, GlorotAndHeVariances) {
  const Shape kernel{3, 3, 40, 250};  // fan_in 360, fan_out 2250
  const double glorot = std::sqrt(2.0 / (360 + 2250)), he = std::sqrt(2.0 / 360);
  const struct {
    const char* name;
    double stddev;
    bool uniform;
  } cases[] = {{"glorot_uniform", glorot, true},
               {"glorot_normal", glorot, false},
               {"he_uniform", he, true},
               {"he_normal", he, false}};
  for (const auto& test : cases) {
    const Summary s = summary(filled(test.name, kernel));
    EXPECT_NEAR(s.mean, 0, kSigma * test.stddev) << test.name;
    EXPECT_NEAR(s.stddev, test.stddev, kSigma * test.stddev) << test.name;
    const double limit = test.stddev * (test.uniform ? std::sqrt(3.0) : 2 / 0.87962566);
    EXPECT_LE(s.high, limit * (1 + 1e-6)) << test.name;
    EXPECT_GE(s.high, limit * 0.99) << test.name;
    EXPECT_GE(s.low, -limit * (1 + 1e-6)) << test.name;
  }
}

TEST(Initializer, StreamDependsOnSeedAndName) {
  for (const char* kind : {"uniform", "normal", "truncated_normal", "glorot_uniform", "he_normal"}) {
    const auto values = filled(kind, Shape{8, 8});
    EXPECT_EQ(filled(kind, Shape{8, 8}), values) << kind;
    EXPECT_NE(filled(kind, Shape{8, 8}, 2), values) << kind;
    EXPECT_NE(filled(kind, Shape{8, 8}, 1, "v"), values) << kind;
  }
}

/// A number is a function of its place: more elements change none.
TEST(Initializer, LongerVariablesStartAlike) {
  for (const char* kind : {"uniform", "normal", "truncated_normal"}) {
    const auto some = filled(kind, Shape{7}), more = filled(kind, Shape{50});
    EXPECT_TRUE(std::equal(some.begin(), some.end(), more.begin())) << kind;
  }
}

TEST(Initializer, UniformIsPhilox) {
  const PhiloxBlock words = philox_words(42, philox_purpose("conv1/kernel"), 0, 0, 0);
  const auto values = filled("uniform: {low: -1, high: 3}", Shape{4}, 42, "conv1/kernel");
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(values[i], static_cast<float>(-1 + 4 * (static_cast<double>(words[i]) * 0x1p-32)));
}

/// Computed apart from this code, from the published generator and the formulas; normal numbers pass through
/// the system's log, cos and sin, so the last bit is free. If this fails, runs no longer start where they
/// did: old configurations give other results.
TEST(Initializer, CheckVectors) {
  const auto expect = [](const std::string& yaml, const std::vector<float>& expected) {
    const auto values = filled(yaml, Shape{3, 2}, 42, "conv1/kernel");
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_FLOAT_EQ(values[i], expected[i]) << yaml << " " << i << fmt::format(": {:a}", values[i]);
  };
  expect("uniform: {low: -1, high: 3}",
         {0x1.5636b6p+0F, 0x1.2f0f6ep-4F, 0x1.f1496cp+0F, 0x1.f34a38p-1F, 0x1.23b698p+1F, -0x1.9ac5fap-1F});
  expect("normal: {mean: 0, stddev: 1}",
         {-0x1.ec79b4p-4F, 0x1.07a442p+0F, -0x1.90e7d6p-1F, 0x1.f481e4p-6F, 0x1.335d2ap-1F, 0x1.8a964cp-3F});
  expect("truncated_normal: {mean: 0, stddev: 1}",
         {-0x1.ec79b4p-4F, 0x1.07a442p+0F, -0x1.90e7d6p-1F, 0x1.f481e4p-6F, 0x1.335d2ap-1F, 0x1.8a964cp-3F});
  expect("glorot_uniform",
         {0x1.79c506p-3F, -0x1.03af52p-1F, 0x1.085102p-1F, -0x1.bd8ad0p-7F, 0x1.66ad80p-1F, -0x1.f96c7cp-1F});
  expect("he_normal",
         {-0x1.c921a2p-4F, 0x1.e970f0p-1F, -0x1.742224p-1F, 0x1.d09640p-6F, 0x1.1d4e14p-1F, 0x1.6e44b0p-3F});
}

TEST(Initializer, UnknownNamesAndOptions) {
  EXPECT_THROW(make_initializer("glorot"), Error);
  EXPECT_THROW(filled("normal: {stdev: 1}", Shape{1}), Error);
  EXPECT_THROW(filled("normal: {stddev: 0}", Shape{1}), Error);
}

}  // namespace
}  // namespace lockstep
