// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whitening: against the values of tests/reference/whitening.json (made by whitening.py next to it), and the
// same bits however the work is divided.
#include "data/whitening.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "comm/tree.h"
#include "config/yaml_node.h"
#include "core/device.h"
#include "core/range.h"
#include "data/outer_products.h"
#include "data/reader_dataset.h"
#include "support/error_support.h"
#include "support/test_folders.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using Json = nlohmann::json;

WhitenOptions options_of(const std::string& text) {
  return whiten_options(Params(parse_yaml("{whiten: {" + text + "}}", "test"), transforms_table(), "data"));
}

ReaderDataset set_of(const std::vector<float>& values, const Shape& shape, const WhitenOptions& options) {
  DatasetParts parts;
  parts.source = "x";
  parts.feature_shape = shape;
  parts.size = std::ssize(values) / shape.num_elements();
  parts.features = Buffer(cpu_device(), values.size() * sizeof(float));
  std::copy(values.begin(), values.end(), parts.features.as<float>().begin());
  return ReaderDataset(std::move(parts)).with_whitening(options).with_transforms(TransformList(), true);
}

ReaderDataset whitened(const ReaderDataset& data, int threads) {
  return data.fitted(
      {.whitening = std::make_shared<const Whitening>(computed_whitening(data, nullptr, threads))});
}

std::vector<float> gathered(const Dataset& data, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < count; ++i) samples.push_back(first + i);
  std::vector<float> out(static_cast<std::size_t>(count * data.feature_shape().num_elements()));
  std::vector<float> scratch(static_cast<std::size_t>(data.scratch_values()));
  data.gather_features(samples, {}, out.data(), scratch.data());
  return out;
}

template <typename Body>
std::string data_error(Body body) {
  return message_of(body, ErrorKind::data);
}

std::vector<float> random_values(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(3, 2);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

/// Whitened values have a deviation of 1; the matrix multiplies values of up to 1 / sqrt(the least variance).
TEST(Whitening, HasTheValuesOfScikitLearnAndNumPy) {
  const Json all = Json::parse(std::ifstream(test_reference("whitening.json")));
  const auto x = all["x"].get<std::vector<float>>();
  for (const Json& item : all["cases"]) {
    const auto text = item["whiten"].get<std::string>();
    const auto y = item["y"].get<std::vector<double>>();
    const ReaderDataset data = whitened(
        set_of(x, {2, 2, 3}, options_of(text.find(':') == std::string::npos ? text + ": null" : text)), 2);
    const std::vector<float> found = gathered(data, 0, data.size());
    ASSERT_EQ(found.size(), y.size()) << text;
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(found[i], y[i], 5e-5) << text << " " << i;
  }
}

TEST(Whitening, ComponentsSetTheShape) {
  const Shape shape{4, 4, 3};
  EXPECT_EQ(whitened_shape(options_of("pca: {components: 7}"), shape), Shape({7}));
  EXPECT_EQ(whitened_shape(options_of("pca: null"), shape), Shape({48}));
  EXPECT_EQ(whitened_shape(options_of("pca: {components: 2, over: channels}"), shape), Shape({4, 4, 2}));
  EXPECT_EQ(whitened_shape(options_of("zca: null"), shape), shape);
  EXPECT_EQ(whitened_shape(options_of("pca: {components: 0.5}"), shape), std::nullopt);
  const ReaderDataset unknown = set_of(random_values(480), shape, options_of("pca: {components: 0.5}"));
  EXPECT_FALSE(unknown.stages().knows_shape());
  const ReaderDataset data = whitened(unknown, 1);
  EXPECT_TRUE(data.stages().knows_shape());
  const std::int64_t components = data.stages().whitening().whitening()->components();
  EXPECT_EQ(data.feature_shape(), Shape({components}));
  EXPECT_LT(components, 10);  // 10 samples span 9 directions
}

/// Small parts are computed side by side, large ones (above 1 MiB) by all threads together.
TEST(Whitening, SumsHaveTheSameBitsOnAnyThreadsAndPartsOfTheTree) {
  for (const auto& [samples, values] : {std::pair{300, 12}, std::pair{1, 5}, std::pair{17, 520}}) {
    const ReaderDataset data =
        set_of(random_values(static_cast<std::size_t>(samples * values)), {values}, options_of("zca: null"));
    const CovarianceSums sums(data, nullptr);
    const int parts = sums.num_parts();
    const CovariancePart one = sums.sum(0, parts, 1);
    EXPECT_EQ(one, sums.sum(0, parts, 2));
    EXPECT_EQ(one, sums.sum(0, parts, 3));
    for (const int ranks : {2, 3, 4, 7}) {
      CovarianceFold fold;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range own = shards_of_rank(rank, ranks, parts);
        for (const Subtree& node :
             maximal_subtrees(static_cast<int>(own.first), static_cast<int>(own.last), parts))
          fold.push(sums.sum(node.first, node.last, 1 + rank % 2), node.size());
      }
      ASSERT_EQ(one, fold.finish()) << samples << " " << ranks;
    }
  }
}

TEST(Whitening, AVectorsResultDoesNotDependOnOthers) {
  for (const Shape& shape : {Shape{5, 5, 3}, Shape{70}}) {
    const ReaderDataset data =
        whitened(set_of(random_values(static_cast<std::size_t>(30 * shape.num_elements())), shape,
                        options_of("zca: {over: channels}")),
                 1);
    const std::vector<float> all = gathered(data, 0, 30);
    std::vector<float> single;
    for (std::int64_t i = 0; i < 30; ++i)
      for (const float value : gathered(data, i, 1)) single.push_back(value);
    EXPECT_EQ(all, single);
    std::vector<float> stored(static_cast<std::size_t>(shape.num_elements()));
    std::vector<float> scratch(static_cast<std::size_t>(data.scratch_values()));
    std::vector<float> raw(stored.size());
    data.gather_unwhitened(29, raw.data());
    data.transform_stored(raw.data(), stored.data(), scratch.data());
    EXPECT_TRUE(std::equal(stored.begin(), stored.end(), all.end() - std::ssize(stored)));
  }
}

TEST(Whitening, ChosenSamplesAloneCount) {
  const std::vector<float> values = random_values(50 * 4);
  const ReaderDataset all = set_of(values, {4}, options_of("zca: null"));
  const SampleChoice choice({.num_samples = 50, .skip = 10, .take = 30});
  const ReaderDataset part =
      set_of({values.begin() + 40, values.begin() + 160}, {4}, options_of("zca: null"));
  EXPECT_EQ(computed_whitening(all, &choice, 1).matrix, computed_whitening(part, nullptr, 1).matrix);
}

TEST(Whitening, IsExactForMeansFarFromZero) {
  std::vector<float> values;
  for (int i = 0; i < 10000; ++i) values.push_back(1e7F + static_cast<float>(i % 2));
  const ReaderDataset data = set_of(values, {1}, options_of("pca: {epsilon: 0}"));
  const Whitening found = computed_whitening(data, nullptr, 1);
  EXPECT_NEAR(found.mean[0], 1e7, 1);
  EXPECT_NEAR(found.matrix[0], 2, 2e-4);  // 1 / sqrt(0.25 n / (n - 1))
}

TEST(Whitening, DirectionsWithoutVarianceNeedAnEpsilon) {
  std::vector<float> values;
  for (int i = 0; i < 99; ++i) values.insert(values.end(), {0.1F, static_cast<float>(i)});
  const auto compute = [&](const char* text) {
    const ReaderDataset data = set_of(values, {2}, options_of(text));
    return computed_whitening(data, nullptr, 1);
  };
  EXPECT_THAT(data_error([&] { compute("zca: {epsilon: 0}"); }),
              HasSubstr("has variance in 1 of 2 directions only"));
  EXPECT_NO_THROW(compute("pca: {epsilon: 0, components: 1}"));
  EXPECT_EQ(compute("zca: null").matrix[0], 1000);  // epsilon alone: 1 / sqrt(1e-6)
  const ReaderDataset constant = set_of(std::vector<float>(20, 0.3F), {2}, options_of("zca: null"));
  EXPECT_THAT(data_error([&] { computed_whitening(constant, nullptr, 1); }), HasSubstr("nothing to whiten"));
  const ReaderDataset one = set_of({1, 2}, {2}, options_of("zca: null"));
  EXPECT_THAT(data_error([&] { computed_whitening(one, nullptr, 1); }), HasSubstr("has one sample"));
}

TEST(Whitening, MistakesAreNamed) {
  EXPECT_THAT(message_of([] { options_of("zca: {components: 3}"); }), HasSubstr("components"));
  EXPECT_THAT(message_of([] { options_of("pca: {components: 2.5}"); }),
              HasSubstr("neither a whole number nor below 1"));
  EXPECT_THAT(message_of([] { whitened_shape(options_of("pca: {components: 9}"), {8}); }),
              HasSubstr("9 components, but vectors have 8"));
  EXPECT_THAT(message_of([] {
                whitened_shape(options_of("zca: null"), {224, 224, 3});
              }),
              HasSubstr("vectors of 150528 values (224x224x3) have a covariance of 181 GB"));
  EXPECT_NO_THROW(whitened_shape(options_of("zca: {over: channels}"), {224, 224, 3}));
}

TEST(Whitening, ItsFileIsExact) {
  const Whitening values{.mean = {0.1F, -1e-30F, 3}, .matrix = {1, 2, 3, 4, 1.0F / 3, 6}};
  const std::string bytes = whitening_file(values);
  const Whitening read = whitening_from_file(bytes, "x");
  EXPECT_EQ(read.mean, values.mean);
  EXPECT_EQ(read.matrix, values.matrix);
  EXPECT_EQ(read.components(), 2);
  std::string other = bytes;
  other.back() = static_cast<char>(0xFF);
  other[other.size() - 2] = static_cast<char>(0xFF);
  for (const std::string& wrong :
       {std::string(), bytes.substr(0, 20), bytes.substr(0, bytes.size() - 1), bytes + "x", other})
    EXPECT_THROW(whitening_from_file(wrong, "x"), Error);
}

TEST(OuterProducts, AreThoseOfTheirVectors) {
  for (const std::int64_t size : {1, 3, 8, 13, 40}) {
    std::vector<double> vectors(static_cast<std::size_t>(size * 21));
    for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = std::sin(static_cast<double>(i));
    std::vector<double> whole(static_cast<std::size_t>(packed_count(size))), parts = whole;
    add_outer_products(vectors.data(), 21, size, whole.data(), 2);
    add_outer_products(vectors.data(), 4, size, parts.data(), 1);
    add_outer_products(vectors.data() + 4 * size, 17, size, parts.data(), 1);
    EXPECT_EQ(whole, parts) << size;
    for (std::int64_t i = 0; i < size; ++i)
      for (std::int64_t j = i; j < size; ++j) {
        double sum = 0;
        for (std::int64_t t = 0; t < 21; ++t)
          sum += vectors[static_cast<std::size_t>(t * size + i)] *
                 vectors[static_cast<std::size_t>(t * size + j)];
        EXPECT_EQ(whole[static_cast<std::size_t>(packed_place(i, j, size))], sum) << size;
      }
  }
}

}  // namespace
}  // namespace lockstep
