// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sets made of several: joined to one with inputs and targets, chained one after the other.
#include "data/joined_dataset.h"

#include "core/device.h"
#include "data/sample_chain.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DatasetParts parts_of(const std::string& source, const std::vector<float>& values, const Shape& shape) {
  DatasetParts parts;
  parts.source = source;
  parts.record_word = "record";
  parts.feature_shape = shape;
  parts.size = std::ssize(values) / shape.num_elements();
  parts.features = Buffer(cpu_device(), values.size() * sizeof(float));
  std::ranges::copy(values, parts.features.as<float>().begin());
  return parts;
}

std::shared_ptr<const ReaderDataset> set_of(DatasetParts parts) {
  return std::make_shared<const ReaderDataset>(std::move(parts));
}

DatasetParts with_labels(DatasetParts parts, std::vector<std::int32_t> labels) {
  parts.num_label_columns = 1;
  parts.label_indices = std::move(labels);
  return parts;
}

TEST(JoinedDataset, SamplesHaveTheFeaturesOfEachInputAndTheLabelsOfTheFirstThatHasAny) {
  const auto a = set_of(parts_of("a", {1, 2, 3}, {1}));
  const auto b = set_of(with_labels(parts_of("b", {10, 11, 20, 21, 30, 31}, {2}), {7, 8, 9}));
  const JoinedDataset joined({{"a", a}, {"b", b}});
  EXPECT_EQ(joined.feature_shape(), Shape({3}));
  EXPECT_THAT(features_of(joined, {2, 0}), ElementsAre(3, 30, 31, 1, 10, 11));
  EXPECT_THAT(labels_of<std::int32_t>(joined), ElementsAre(7, 8, 9));
  EXPECT_THAT(labels_of<float>(joined), ElementsAre(7, 8, 9));
  EXPECT_FALSE(joined.labels_come_from(0));
  EXPECT_TRUE(joined.labels_come_from(1));
  EXPECT_EQ(joined.where(1), "b, record 1");
  EXPECT_EQ(joined.single(), nullptr);
  EXPECT_EQ(b->single(), b.get());
  ASSERT_EQ(joined.parts().size(), 2U);
  EXPECT_EQ(joined.parts()[1].name, "b");
  EXPECT_EQ(joined.parts()[1].data, b.get());
}

TEST(JoinedDataset, SetsThatDoNotFitAreNamed) {
  const auto two = set_of(with_labels(parts_of("two", {1, 2}, {1}), {0, 1}));
  const auto three = set_of(parts_of("three", {1, 2, 3}, {1}));
  const auto other = set_of(with_labels(parts_of("other", {1, 2}, {1}), {0, 2}));
  expect_data_error(
      [&] {
        JoinedDataset({{"a", two}, {"b", three}});
      },
      "three", "input b has 3 samples, but input a has 2; the samples have the shapes 1 and 1");
  const auto wide = set_of(parts_of("wide", {1, 2, 3, 4}, {2}));  // two samples of two values
  const auto four = set_of(parts_of("four", {1, 2, 3, 4}, {1}));
  EXPECT_THAT(error_of([&] {
                JoinedDataset({{"a", wide}, {"b", four}});
              }).advice(),
              ::testing::Not(HasSubstr("transposed")));
  const auto tall = set_of(parts_of("tall", {1, 2, 3, 4, 5, 6, 7, 8}, {4}));  // two of four
  EXPECT_THAT(error_of([&] {
                JoinedDataset({{"a", tall}, {"b", four}});
              }).advice(),
              HasSubstr("Is tall transposed?"));
  expect_data_error(
      [&] {
        JoinedDataset({{"a", two}, {"b", other}});
      },
      "other, record 1", "the labels of input b are not those of input a");
  EXPECT_EQ(error_of([&] { JoinedDataset({{"", two}}, {{"y", two}}); }).kind(), ErrorKind::config);
}

TEST(JoinedDataset, LabelsAreTheTargetsWhichAreCheckedWhenTheyAreGathered) {
  DatasetParts normalised = parts_of("y", {2, 6}, {1});
  normalised.transform.normalize = NormalizeBy::all;
  const auto x = set_of(parts_of("x", {1, 2}, {1})), y = set_of(std::move(normalised));
  const JoinedDataset joined({{"", x}}, {{"y", y}, {"z", x}});
  EXPECT_EQ(joined.label_kind(), LabelKind::rows);
  EXPECT_EQ(joined.num_label_columns(), 2);
  joined.check_labels({.last = 1, .least = -0.5, .wanted = "-0.5 or more"});  // y has no numbers yet
  EXPECT_EQ(error_of([&] { labels_of<float>(joined); }).kind(), ErrorKind::bug);

  const auto numbers = std::make_shared<const Normalization>(Normalization{.mean = {4}, .std = {2}});
  const auto fitted = std::make_shared<const ReaderDataset>(y->fitted({.normalization = numbers}));
  const std::shared_ptr<const Dataset> whole = joined.with_parts({nullptr, fitted, nullptr});
  EXPECT_THAT(features_of(*whole), ElementsAre(1, 2));
  EXPECT_EQ(whole->fingerprint(), joined.fingerprint());
  expect_data_error([&] { labels_of<float>(*whole); }, "y, record 0",
                    "the value of target y is -1, which is not");
  std::vector<float> row(2);
  const std::int64_t second = 1;
  whole->gather_labels({&second, 1}, row.data());
  EXPECT_THAT(row, ElementsAre(1, 2));
  EXPECT_EQ(error_of([&] { labels_of<float>(joined); }).kind(), ErrorKind::bug)
      << "the first set is as it was";
}

TEST(SampleChain, SamplesFollowEachOther) {
  std::vector<OpenedSamples> sets;
  sets.emplace_back(with_labels(parts_of("a", {1, 2, 3, 4}, {2}), {0, 1}));
  sets.emplace_back(with_labels(parts_of("b", {5, 6}, {2}), {2}));
  const ReaderDataset whole(std::make_shared<const StoredSamples>(chained(std::move(sets)), DatasetMemory{}));
  EXPECT_THAT(features_of(whole), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(labels_of<std::int32_t>(whole), ElementsAre(0, 1, 2));
  EXPECT_EQ(whole.where(1), "a, record 1");
  EXPECT_EQ(whole.where(2), "b, record 0");
}

TEST(SampleChain, SamplesOfAnotherFormAreRefused) {
  const auto refused = [](DatasetParts second, const char* what) {
    std::vector<OpenedSamples> sets;
    sets.emplace_back(with_labels(parts_of("a", {1, 2}, {2}), {0}));
    sets.emplace_back(std::move(second));
    expect_data_error([&] { chained(std::move(sets)); }, "b", what);
  };
  refused(with_labels(parts_of("b", {5, 6}, {1}), {2, 3}), "its samples are 1 float32, but those of a are 2");
  refused(parts_of("b", {5, 6}, {2}), "its labels are not of the form of those of a");
  DatasetParts scaled = with_labels(parts_of("b", {5, 6}, {2}), {2});
  scaled.transform.scale = 2;
  refused(std::move(scaled), "is scaled in another way");
}

TEST(JoinedDataset, TargetsOfADistributionSumToOne) {
  const auto x = set_of(parts_of("x", {1, 2}, {1})),
             y = set_of(parts_of("y", {0.5F, 0.5F, 0.5F, 0.25F}, {2}));
  const LabelDemand demand{.last = 2,
                           .least = 0,
                           .most = 1,
                           .advice = "Take another loss.",
                           .distribution = 2,
                           .sum_tolerance = 0.01};
  expect_data_error(
      [&] {
        JoinedDataset({{"", x}}, {{"y", y}}).check_labels(demand);
      },
      "y, record 1", "the 2 values of target y that should be a distribution sum to 0.75");
  const auto good = set_of(parts_of("y", {0.5F, 0.5F, 1, 0}, {2}));
  JoinedDataset({{"", x}}, {{"y", good}}).check_labels(demand);
}

TEST(JoinedDataset, NormalizedTargetsAreNoProbabilities) {
  DatasetParts normalised = parts_of("y", {0, 1}, {1});
  normalised.transform.normalize = NormalizeBy::all;
  const auto x = set_of(parts_of("x", {1, 2}, {1})), y = set_of(std::move(normalised));
  const JoinedDataset joined({{"", x}}, {{"y", y}});
  const Error error =
      error_of([&] { joined.check_labels({.last = 1, .least = 0, .most = 1, .wanted = "between 0 and 1"}); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_THAT(error.what(),
              testing::HasSubstr("target y is normalised, so its values are not between 0 and 1"));
  EXPECT_THAT(error.what(), testing::HasSubstr("normalize: none"));
  EXPECT_NO_THROW(joined.check_labels({.last = 1}));
}

}  // namespace
}  // namespace lockstep::testing
