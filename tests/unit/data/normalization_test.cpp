// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/normalization.h"

#include <cmath>
#include <random>

#include "core/device.h"
#include "data/reader_dataset.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;

ReaderDataset set_of(const std::vector<float>& values, const Shape& shape, NormalizeBy by, float scale = 1) {
  DatasetParts parts;
  parts.source = "x";
  parts.feature_shape = shape;
  parts.size = std::ssize(values) / shape.num_elements();
  parts.features = Buffer(cpu_device(), values.size() * sizeof(float));
  std::copy(values.begin(), values.end(), parts.features.as<float>().begin());
  parts.transform.scale = scale;
  parts.transform.normalize = by;
  return ReaderDataset(std::move(parts));
}

Normalization computed(const ReaderDataset& data, int threads) {
  return computed_normalization(data, nullptr, threads);
}

TEST(Normalization, MeanAndDeviationOfEachChannelAfterScale) {
  const ReaderDataset data = set_of({1, 10, 3, 30, 5, 20, 7, 20}, {2, 2}, NormalizeBy::channels, 2);
  const Normalization values = computed(data, 1);
  EXPECT_THAT(values.mean, ElementsAre(8, 40));
  EXPECT_FLOAT_EQ(values.std[0], 2 * std::sqrt(5.0F));
  EXPECT_FLOAT_EQ(values.std[1], 2 * std::sqrt(50.0F));
  const Normalization all = computed(set_of({1, 2, 3, 6}, {2}, NormalizeBy::all), 1);
  EXPECT_THAT(all.mean, ElementsAre(3));
  EXPECT_FLOAT_EQ(all.std[0], std::sqrt(3.5F));
}

TEST(Normalization, MeanAndDeviationOfEachElement) {
  const ReaderDataset data =
      set_of({1, 10, -2, 7, 3, 30, -2, 7, 5, 20, -2, 9, 7, 20, -2, 9}, {2, 2}, NormalizeBy::elements);
  const Normalization values = computed(data, 1);
  EXPECT_THAT(values.mean, ElementsAre(4, 20, -2, 8));
  EXPECT_FLOAT_EQ(values.std[0], std::sqrt(5.0F));
  EXPECT_FLOAT_EQ(values.std[1], std::sqrt(50.0F));
  EXPECT_EQ(values.std[2], 1);
  EXPECT_EQ(values.std[3], 1);
  EXPECT_THAT(values.constant, ElementsAre(2));
  EXPECT_THAT(values.shape, ElementsAre(2, 2));
  // Elements of a sample of one pixel are its channels, and have their bits.
  std::vector<float> many;
  for (int i = 0; i < 7000; ++i) many.push_back(std::sin(static_cast<float>(i)) * 100 + 3);
  const Normalization elements = computed(set_of(many, {7}, NormalizeBy::elements), 3);
  const Normalization channels = computed(set_of(many, {7}, NormalizeBy::channels), 1);
  EXPECT_EQ(elements.mean, channels.mean);
  EXPECT_EQ(elements.std, channels.std);
}

TEST(Normalization, ElementsActOnEachElement) {
  const ReaderDataset data = set_of({1, 10, 3, 30}, {2, 1}, NormalizeBy::elements);
  const Normalization right{.mean = {1, 10}, .std = {2, 20}, .shape = {2, 1}};
  const auto fitted = [&](const Normalization& values) {
    return data.fitted({.normalization = std::make_shared<const Normalization>(values)});
  };
  EXPECT_THAT(features_of(fitted(right)), ElementsAre(0, 0, 1, 1));
  Normalization other = right;
  other.shape = {1, 2};
  expect_data_error([&] { fitted(other); }, "x", "those of other elements");
  other.shape = {};
  expect_data_error([&] { fitted(other); }, "x", "those of other elements");
}

TEST(Normalization, AFileOfElementsIsExact) {
  const Normalization values{.mean = {0.1F, -1e-30F}, .std = {1.0F / 3, 1e30F}, .shape = {2, 1}};
  const std::string file = normalization_text(values);
  const Normalization read = normalization_from_text(file, "x");
  EXPECT_EQ(read.mean, values.mean);
  EXPECT_EQ(read.std, values.std);
  EXPECT_EQ(read.shape, values.shape);
  expect_data_error([&] { normalization_from_text(file.substr(0, file.size() - 1), "x"); }, "x",
                    "bytes instead");
  expect_data_error([&] { normalization_from_text(file.substr(0, 40), "x"); }, "x", "is cut short");
  Normalization zero = values;
  zero.std[1] = 0;
  expect_data_error([&] { normalization_from_text(normalization_text(zero), "x"); }, "x",
                    "is no array of means");
}

TEST(Normalization, AConstantChannelIsDividedByOne) {
  std::vector<float> values;
  for (int i = 0; i < 999; ++i) values.insert(values.end(), {0.1F, static_cast<float>(i), -3.3e7F});
  const Normalization found = computed(set_of(values, {3}, NormalizeBy::channels), 2);
  EXPECT_EQ(found.mean[0], 0.1F);
  EXPECT_EQ(found.mean[2], -3.3e7F);
  EXPECT_EQ(found.std[0], 1);
  EXPECT_EQ(found.std[2], 1);
  EXPECT_THAT(found.constant, ElementsAre(0, 2));
}

TEST(Normalization, IsExactForMeansFarFromZero) {
  std::vector<float> values;
  for (int i = 0; i < 100000; ++i) values.push_back(1e6F + static_cast<float>(i % 2));
  const Normalization found = computed(set_of(values, {1}, NormalizeBy::all), 1);
  EXPECT_EQ(found.mean[0], 1000000.5F);
  EXPECT_EQ(found.std[0], 0.5F);
}

TEST(Normalization, PartsAreTheSameWhoeverComputesThem) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(3, 40);
  for (const int samples : {1, 2, 3, 255, 256, 257, 1000}) {
    std::vector<float> values(static_cast<std::size_t>(samples) * 6);
    for (float& value : values) value = normal(random);
    const ReaderDataset data = set_of(values, {2, 3}, NormalizeBy::channels);
    const Normalization one = computed(data, 1);
    for (const int threads : {2, 3}) {
      const Normalization found = computed(data, threads);
      EXPECT_EQ(found.mean, one.mean);
      EXPECT_EQ(found.std, one.std);
    }
    const NormalizationSums sums(data, nullptr);
    double mean = 0;
    for (std::size_t i = 1; i < values.size(); i += 3) mean += values[i] / (2.0 * samples);
    EXPECT_NEAR(one.mean[1], mean, 1e-5) << samples;
    EXPECT_EQ(sums.num_parts(), std::min(samples, 256));
  }
}

TEST(Normalization, OnlyChosenSamplesCount) {
  const SampleChoice choice({.num_samples = 100, .skip = 10, .take = 3});
  const Normalization found = computed_normalization(set_of(counted(100), {1}, NormalizeBy::all), &choice, 1);
  EXPECT_THAT(found.mean, ElementsAre(11));
}

TEST(Normalization, AppliesAsMeanAndStdDo) {
  const ReaderDataset data = set_of({1, 10, 3, 30}, {2}, NormalizeBy::channels);
  const StageNumbers numbers{
      .normalization = std::make_shared<const Normalization>(Normalization{.mean = {1, 10}, .std = {2, 20}})};
  EXPECT_THAT(features_of(data.fitted(numbers)), ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(error_of([&] { features_of(data); }).kind(), ErrorKind::bug) << "the set has no numbers itself";
}

TEST(Normalization, TextIsExact) {
  const Normalization values{.mean = {0.1F, -1e-30F, 3}, .std = {1.0F / 3, 1e30F, 1}};
  const Normalization read = normalization_from_text(normalization_text(values), "x");
  EXPECT_EQ(read.mean, values.mean);
  EXPECT_EQ(read.std, values.std);
  for (const char* text : {"", "1\n", "1\t0\n", "1\t-1\n", "nan\t1\n", "1\t2", "1\t2\nx", "1\t2\n\n"})
    expect_data_error([&] { normalization_from_text(text, "x"); }, "x", "is no list");
}

TEST(Normalization, ValuesBeyondFloat32AreAnError) {
  const ReaderDataset data = set_of({3e38F, -3e38F}, {1}, NormalizeBy::all);
  EXPECT_NO_THROW(computed(data, 1));
  EXPECT_THROW(computed(set_of({3e38F, 3e38F}, {1}, NormalizeBy::all, 10), 1), Error);
}

}  // namespace
}  // namespace lockstep::testing
