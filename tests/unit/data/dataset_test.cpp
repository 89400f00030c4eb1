// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/reader_dataset.h"

#include <cmath>
#include <limits>

#include "core/device.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
DatasetParts parts_of(const std::vector<T>& values, const Shape& shape) {
  DatasetParts parts;
  parts.source = "some.file";
  parts.record_word = "record";
  parts.feature_shape = shape;
  parts.feature_dtype = dtype_of<T>;
  parts.size = static_cast<std::int64_t>(values.size()) / shape.num_elements();
  parts.features = Buffer(cpu_device(), values.size() * sizeof(T));
  std::copy(values.begin(), values.end(), parts.features.template as<T>().begin());
  return parts;
}

template <typename T>
class DatasetTypeTest : public ::testing::Test {};
using FeatureTypes = ::testing::Types<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::int32_t,
                                      std::int64_t, float, double>;
TYPED_TEST_SUITE(DatasetTypeTest, FeatureTypes);

TYPED_TEST(DatasetTypeTest, GatherConvertsAndTransforms) {
  constexpr std::int64_t kSamples = 5, kPixels = 37,
                         kChannels = 3;  // more than one block of the normalisation
  std::vector<TypeParam> values(kSamples * kPixels * kChannels);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<TypeParam>(static_cast<int>(i * 31 % 127) - (std::is_signed_v<TypeParam> ? 60 : 0));
  DatasetParts parts = parts_of(values, {kPixels, kChannels});
  parts.transform = {0.3F, -7.0F, {1.0F, 2.5F, -3.0F}, {0.7F, 3.0F, 11.0F}};
  const FeatureTransform t = parts.transform;
  const ReaderDataset data(std::move(parts));
  const std::vector<std::int64_t> samples = {3, 0, 3, 4, 3};  // duplicates are allowed
  const std::vector<float> found = features_of(data, samples);
  std::size_t k = 0;
  for (const std::int64_t sample : samples)
    for (std::int64_t i = 0; i < kPixels * kChannels; ++i, ++k) {
      const auto channel = static_cast<std::size_t>(i % kChannels);
      const float x = static_cast<float>(values[static_cast<std::size_t>(sample * kPixels * kChannels + i)]);
      const float expected = (x * t.scale + t.offset - t.mean[channel]) / t.std[channel];
      ASSERT_EQ(found[k], expected) << "sample " << sample << ", value " << i;
    }
}

TYPED_TEST(DatasetTypeTest, WithoutTransformValuesAreExact) {
  std::vector<TypeParam> values(200);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<TypeParam>(i % 128);
  const ReaderDataset data(parts_of(values, {10, 2}));
  EXPECT_EQ(data.size(), 10);
  EXPECT_EQ(data.feature_dtype(), dtype_of<TypeParam>);
  EXPECT_EQ(features_of(data), std::vector<float>(values.begin(), values.end()));
}

TEST(Dataset, NormalisesEachOfManyChannels) {
  std::vector<float> values(2 * 300);
  std::iota(values.begin(), values.end(), 0.0F);
  DatasetParts parts = parts_of(values, {300});
  for (int i = 0; i < 300; ++i) parts.transform.mean.push_back(static_cast<float>(i));
  const std::vector<float> found = features_of(ReaderDataset(std::move(parts)));
  for (std::size_t i = 0; i < 300; ++i) {
    EXPECT_EQ(found[i], 0.0F);
    EXPECT_EQ(found[300 + i], 300.0F);
  }
}

TEST(Dataset, LabelsOfSeveralColumns) {
  DatasetParts parts = parts_of<float>({1, 2, 3}, {1});
  parts.num_label_columns = 2;
  parts.label_indices = {10, 11, 20, 21, 30, 31};
  const ReaderDataset data(std::move(parts));
  std::vector<std::int32_t> labels(6);
  data.gather_labels(std::vector<std::int64_t>{2, 0, 2}, labels.data());
  EXPECT_THAT(labels, ElementsAre(30, 31, 10, 11, 30, 31));
}

TEST(Dataset, GatheringMissingLabelsIsABug) {
  const ReaderDataset without(parts_of<float>({1}, {1}));
  std::int32_t index = 0;
  float row = 0;
  EXPECT_THROW(without.gather_labels(std::vector<std::int64_t>{0}, &index), Error);
  EXPECT_THROW(without.gather_labels(std::vector<std::int64_t>{0}, &row), Error);
  DatasetParts parts = parts_of<float>({1}, {1});
  parts.num_label_columns = 1;
  parts.label_rows = {0.5F};
  const ReaderDataset rows(std::move(parts));
  EXPECT_THROW(rows.gather_labels(std::vector<std::int64_t>{0}, &index), Error);
  rows.gather_labels(std::vector<std::int64_t>{0}, &row);
  EXPECT_EQ(row, 0.5F);
}

TEST(Dataset, NonFiniteValuesAreReported) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto with_first = [](DatasetParts parts) {
    parts.first_record = 100;
    return parts;
  };
  expect_data_error(
      [&] {
        ReaderDataset d(with_first(parts_of<float>({1, 2, 3, kNan}, {2})));
      },
      "some.file, record 101", "value 1 (from 0) of the features");
  expect_data_error(
      [&] {
        ReaderDataset d(with_first(parts_of<double>({1, 1e60}, {1})));
      },
      "some.file, record 101", "the value of the features");
  DatasetParts parts = parts_of<float>({1, 2}, {1});
  parts.num_label_columns = 1;
  parts.label_rows = {1, std::numeric_limits<float>::infinity()};
  expect_data_error([&] { ReaderDataset d(std::move(parts)); }, "some.file, record 1", "the label is not");
}

TEST(Dataset, RejectsEmptyData) {
  expect_data_error([] { ReaderDataset d(parts_of<float>({}, {3})); }, "some.file", "no samples");
  DatasetParts parts = parts_of<float>({1, 2}, {1});
  parts.feature_shape = {0, 3};
  expect_data_error([&] { ReaderDataset d(std::move(parts)); }, "some.file", "empty");
}

TEST(Dataset, InconsistentPartsAreABug) {
  DatasetParts few = parts_of<float>({1, 2}, {1});
  few.size = 3;
  EXPECT_EQ(error_of([&] { ReaderDataset d(std::move(few)); }).kind(), ErrorKind::bug);
  DatasetParts labels = parts_of<float>({1, 2}, {1});
  labels.num_label_columns = 1;
  labels.label_indices = {1};
  EXPECT_EQ(error_of([&] { ReaderDataset d(std::move(labels)); }).kind(), ErrorKind::bug);
}

TEST(Dataset, RejectsInvalidTransforms) {
  const auto with = [](FeatureTransform transform) {
    DatasetParts parts = parts_of<float>({1, 2, 3, 4}, {2});
    parts.transform = std::move(transform);
    ReaderDataset d(std::move(parts));
  };
  EXPECT_NO_THROW(with({1, 0, {1, 2}, {3}}));
  expect_data_error([&] { with({1, 0, {1, 2, 3}, {}}); }, "some.file", "option mean has 3 values");
  expect_data_error([&] { with({1, 0, {}, {1, 0}}); }, "some.file", "option std contains 0");
  expect_data_error([&] { with({1, 0, {NAN}, {}}); }, "some.file", "option mean contains nan");
  expect_data_error([&] { with({INFINITY, 0, {}, {}}); }, "some.file", "scale and offset");
}

TEST(Dataset, CheckLabelsReportsTheFirstBadOne) {
  const auto check = [](std::vector<std::int32_t> labels, std::int64_t classes) {
    DatasetParts parts = parts_of<float>({1, 2, 3}, {1});
    parts.num_label_columns = 1;
    parts.label_indices = std::move(labels);
    ReaderDataset(std::move(parts)).check_labels(testing::classes(classes));
  };
  EXPECT_NO_THROW(check({0, 1, 2}, 3));
  expect_data_error([&] { check({0, 3, 4}, 3); }, "some.file, record 1", "label 3 is not one of 3 classes");
  expect_data_error([&] { check({0, 1, -1}, 3); }, "some.file, record 2", "label -1 is not one of 3 classes");
  expect_data_error([&] { ReaderDataset(parts_of<float>({1}, {1})).check_labels(classes(3)); }, "some.file",
                    "has no labels");
  DatasetParts parts = parts_of<float>({1, 2}, {1});
  parts.num_label_columns = 1;
  parts.label_rows = {1, 1.5F};
  const ReaderDataset rows(std::move(parts));
  expect_data_error([&] { rows.check_labels(classes(3)); }, "some.file, record 1",
                    "label 1.5 is not one of 3 classes");
}

TEST(Dataset, FingerprintCoversContentNotName) {
  const auto parts = [] {
    DatasetParts made = parts_of<float>({1, 2, 3, 4}, {2});
    made.num_label_columns = 1;
    made.label_indices = {0, 1};
    return made;
  };
  const std::string reference = ReaderDataset(parts()).fingerprint();
  EXPECT_EQ(reference.size(), 16U);
  EXPECT_EQ(reference.find_first_not_of("0123456789abcdef"), std::string::npos);
  DatasetParts renamed = parts();
  renamed.source = "elsewhere";
  EXPECT_EQ(ReaderDataset(std::move(renamed)).fingerprint(), reference);

  DatasetParts value = parts(), label = parts(), shape = parts(), scale = parts(), mean = parts(),
               std = parts();
  value.features.as<float>()[3] = 5;
  label.label_indices[1] = 2;
  shape.feature_shape = {1, 2};
  scale.transform.scale = 2;
  mean.transform.mean = {2};
  std.transform.std = {2};
  for (DatasetParts* changed : {&value, &label, &shape, &scale, &mean, &std})
    EXPECT_NE(ReaderDataset(std::move(*changed)).fingerprint(), reference);
  DatasetParts other_mean = parts();
  mean = parts();
  mean.transform.mean = {2};
  other_mean.transform.mean = {3};
  EXPECT_NE(ReaderDataset(std::move(mean)).fingerprint(), ReaderDataset(std::move(other_mean)).fingerprint());
}

TEST(Dataset, CheckedRows) {
  const RowRange all = checked_rows(std::nullopt, 7, "f"), some = checked_rows(RowRange{2, 7}, 7, "f");
  EXPECT_EQ(all.first, 0);
  EXPECT_EQ(all.last, 7);
  EXPECT_EQ(some.first, 2);
  EXPECT_EQ(some.last, 7);
  for (const RowRange bad : {RowRange{0, 8}, RowRange{7, 8}, RowRange{3, 3}, RowRange{-1, 2}})
    EXPECT_THAT(error_of([&] { checked_rows(bad, 7, "f"); }).what(), HasSubstr("there are 7 rows"));
}

}  // namespace
}  // namespace lockstep::testing
