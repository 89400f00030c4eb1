// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Transforms: against the values of tests/reference/transforms.json (made by transforms.py next to it), and
// the distributions of the random ones.
#include "data/transform.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "config/named_options.h"
#include "config/yaml_node.h"
#include "core/device.h"
#include "core/hash.h"
#include "data/reader_dataset.h"
#include "data/transform_list.h"
#include "data/transforms/color_math.h"
#include "data/transforms/tone_math.h"
#include "support/error_support.h"
#include "support/test_folders.h"
#include "unit/data/prepared_transforms.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using Json = nlohmann::json;

Shape shape_from(const Json& extents) {
  const auto sizes = extents.get<std::vector<std::int64_t>>();
  return Shape(std::span<const std::int64_t>(sizes));
}

/// A change of tone_math.h by itself.
Values tone(const std::string& name, float amount, Values x, const Shape& shape) {
  const ColorImage image{shape[0] * shape[1], shape[2], 1};
  Values scratch(x.size());
  if (name == "sharpness") change_sharpness(x.data(), image_of(shape), 1, amount, scratch.data());
  if (name == "solarize") solarize(x.data(), image, amount);
  if (name == "auto_contrast") auto_contrast(x.data(), image);
  if (name == "posterize") posterize(x.data(), image, static_cast<int>(amount));
  if (name == "equalize") equalize(x.data(), image);
  return x;
}

/// A change of color_math.h by itself: color_jitter draws its factor.
Values color(const std::string& yaml, const Values& x, const Shape& shape) {
  const Node node = parse_yaml("{" + yaml + "}", "test");
  const float factor = std::stof(node.entries[0].second.text);
  if (!std::set<std::string>{"brightness", "contrast", "saturation", "hue"}.contains(node.entries[0].first))
    return tone(node.entries[0].first, factor, x, shape);
  const ColorImage image{shape[0] * shape[1], shape[2], 1};
  Values out(x.size());
  const std::map<std::string, decltype(&change_hue)> changes{{"brightness", change_brightness},
                                                             {"contrast", change_contrast},
                                                             {"saturation", change_saturation},
                                                             {"hue", change_hue}};
  changes.at(node.entries[0].first)(x.data(), image, factor, out.data());
  return out;
}

TEST(Transform, EqualsItsReference) {
  std::ifstream file(test_reference("transforms.json"));
  const Json all = Json::parse(file);
  ASSERT_GE(all["cases"].size(), 30U);
  const std::set<std::string> colors{"brightness", "contrast",      "saturation", "hue",     "sharpness",
                                     "solarize",   "auto_contrast", "posterize",  "equalize"};
  for (const Json& entry : all["cases"]) {
    const std::string yaml = entry["yaml"];
    const Values x = entry["x"], expected = entry["y"];
    const Shape shape = shape_from(entry["shape"]);
    Values found;
    if (colors.contains(yaml.substr(0, yaml.find(':')))) {
      found = color(yaml, x, shape);
    } else {
      Prepared transform(yaml, shape);
      EXPECT_EQ(transform.shape(), shape_from(entry["result"])) << yaml;
      // Ranges of one value leave nothing to chance.
      const bool random = yaml.starts_with("random_affine") || yaml.starts_with("random_grayscale") ||
                          yaml.starts_with("random_blur");
      found = random ? transform(x, 3) : transform(x, nullptr);
    }
    ASSERT_EQ(found.size(), expected.size()) << yaml;
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_LE(std::abs(found[i] - expected[i]), entry["tolerance"].get<float>())
          << yaml << ", value " << i << ": " << found[i] << ", not " << expected[i];
  }
}

TEST(Transform, FixedFormOfRandomOnesIsTheSampleItself) {
  const Shape shape{6, 6, 3};
  for (const char* items :
       {"random_flip: {axes: [horizontal, vertical]}", "random_crop: {padding: 2}", "random_symmetry",
        "random_affine: {degrees: [-90, 90]}", "color_jitter: {brightness: 0.5, hue: 0.2, max: 200}",
        "random_grayscale: {probability: 1}", "random_erasing: {probability: 1}", "cutout: {size: 3}",
        "random_noise: {stddev: 1}", "rand_augment: {operations: 20, max: 200}",
        "random_blur: {probability: 1}", "trivial_augment: {translate: 3, max: 200}"}) {
    const Values x = counted(shape);
    EXPECT_EQ(Prepared(items, shape)(x, nullptr), x) << items;
    EXPECT_NE(Prepared(items, shape)(x, 3), x) << items;
  }
}

TEST(Transform, StepsBecomeChannels) {
  Prepared joined("steps_to_channels", {2, 2, 1, 3});
  EXPECT_EQ(joined.shape(), Shape({2, 1, 6}));
  EXPECT_EQ(joined(counted({2, 2, 1, 3}), nullptr), (Values{1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12}));
  Prepared apart("steps_to_channels: {new_axis: true}", {2, 2, 3});
  EXPECT_EQ(apart.shape(), Shape({2, 3, 2}));
  EXPECT_EQ(apart(counted({2, 2, 3}), nullptr), (Values{1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12}));
}

/// Of a constant image nothing changes but by rounding, however far the kernel reaches.
TEST(Transform, BlurKeepsTheMeanAndReachesOverSmallImages) {
  const Shape shape{1, 2, 3};
  for (const float v : Prepared("blur: {sigma: 20}", shape)(Values(6, 0.5F), nullptr))
    EXPECT_NEAR(v, 0.5, 1e-6);
}

TEST(Transform, TrivialAugmentDoesEachOfItsOperations) {
  const Shape shape{8, 8, 3};
  Values x = counted(shape);
  for (float& v : x) v /= 256;
  Prepared transform("trivial_augment: {translate: 4}", shape);
  std::set<Values> results;
  int same = 0;
  for (int sample = 0; sample < 400; ++sample) {
    const Values y = transform(x, sample);
    EXPECT_LE(*std::ranges::max_element(y), 1) << sample;
    EXPECT_GE(*std::ranges::min_element(y), 0) << sample;
    same += y == x ? 1 : 0;
    results.insert(y);
  }
  // Of 14 operations: identity, equalize (an image of 64 pixels has no flat histogram of 256 levels), a
  // quarter of the strengths of shifts (less than a pixel) and of solarize (above the brightest value), 1 of
  // 31 of 7 others.
  EXPECT_NEAR(same / 400.0, (2 + 3 * 8 / 31.0 + 7 / 31.0) / 14, 0.06);
  EXPECT_GT(results.size(), 150U);
}

TEST(Transform, DrawsDependOnSeedEpochAndPlaceAlone) {
  const Shape shape{6, 6, 1};
  const Values x = counted(shape);
  Prepared first("random_noise: {stddev: 1}", shape), second("random_noise: {stddev: 1}", shape);
  second(x, 99);
  EXPECT_EQ(first(x, 5, 2), second(x, 5, 2));
  EXPECT_NE(first(x, 5, 2), first(x, 6, 2));
  EXPECT_NE(first(x, 5, 2), first(x, 5, 3));
  EXPECT_NE(first(x, 5), first(x, 5 + (std::int64_t{1} << 32)));
  const SampleKey other_seed{.seed = 8, .epoch = 2, .place = 5};
  EXPECT_NE(first(x, 5, 2), first(x, &other_seed));
}

TEST(Transform, EachSampleOfABatchHasThePlaceAfterTheOneBeforeIt) {
  DatasetParts parts;
  parts.source = "one sample";
  parts.size = 1;
  parts.feature_shape = {4, 4, 1};
  parts.features = Buffer(cpu_device(), 16 * sizeof(float));
  std::ranges::fill(parts.features.as<float>(), 1.0F);
  const ReaderDataset data =
      ReaderDataset(std::move(parts)).with_transforms(list_of("random_noise: {stddev: 1}"), true);
  const auto gathered = [&](const std::vector<std::int64_t>& samples, std::int64_t place) {
    Values values(samples.size() * 16);
    data.gather_features(samples, {.seed = 1, .place = place}, values.data(), nullptr);
    return values;
  };
  const Values both = gathered({0, 0}, 7), first = gathered({0}, 7), second = gathered({0}, 8);
  EXPECT_NE(first, second);
  EXPECT_EQ(Values(both.begin(), both.begin() + 16), first);
  EXPECT_EQ(Values(both.begin() + 16, both.end()), second);
}

TEST(Transform, TwoOfAKindDrawDifferentNumbers) {
  const Shape shape{1, 2, 1};
  Prepared twice("random_flip, random_flip", shape);
  int flipped = 0;
  for (int sample = 0; sample < 1000; ++sample) flipped += twice({1, 2}, sample) == Values{2, 1} ? 1 : 0;
  EXPECT_NEAR(flipped, 500, 80);
}

TEST(Transform, RandomCropTakesEveryPlaceEquallyOften) {
  const Shape shape{4, 4, 1};
  Prepared crop("random_crop: {padding: 1}", shape);
  std::map<Values, int> seen;
  constexpr int kDraws = 9000;
  for (int sample = 0; sample < kDraws; ++sample) ++seen[crop(counted(shape), sample)];
  ASSERT_EQ(seen.size(), 9U);
  for (const auto& [window, times] : seen) EXPECT_NEAR(times, kDraws / 9, 5 * std::sqrt(kDraws / 9));
}

TEST(Transform, RandomFlipHasItsProbabilityPerAxis) {
  const Shape shape{2, 2, 2, 1};
  Prepared flip("random_flip: {axes: [depth, vertical, horizontal], probability: 0.25}", shape);
  std::map<Values, int> seen;
  for (int sample = 0; sample < 6400; ++sample) ++seen[flip({1, 2, 3, 4, 5, 6, 7, 8}, sample)];
  ASSERT_EQ(seen.size(), 8U);
  EXPECT_NEAR((seen[{1, 2, 3, 4, 5, 6, 7, 8}]), 2700, 200);  // 0.75^3
  EXPECT_NEAR((seen[{2, 1, 4, 3, 6, 5, 8, 7}]), 900, 120);
  EXPECT_NEAR((seen[{8, 7, 6, 5, 4, 3, 2, 1}]), 100, 40);
}

TEST(Transform, RandomSymmetryDrawsAll48OfACubeAndAll8OfASquare) {
  const auto seen = [](const std::string& items, const Shape& shape) {
    Prepared symmetry(items, shape);
    std::map<Values, int> all;
    for (int sample = 0; sample < 4800; ++sample) ++all[symmetry(counted(shape), sample)];
    for (const auto& [picture, times] : all)
      EXPECT_NEAR(times, 4800.0 / static_cast<double>(all.size()), 6 * std::sqrt(4800.0 / all.size()));
    return all;
  };
  EXPECT_EQ(seen("random_symmetry", {2, 2, 2, 1}).size(), 48U);
  EXPECT_EQ(seen("random_symmetry: {rotations_only: true}", {2, 2, 2, 1}).size(), 24U);
  EXPECT_EQ(seen("random_symmetry", {2, 2, 1}).size(), 8U);
  const auto turned = seen("random_symmetry: {rotations_only: true}", {2, 2, 1});
  EXPECT_EQ(turned.size(), 4U);
  EXPECT_TRUE(turned.contains({2, 4, 1, 3})) << "a quarter turn";
  EXPECT_FALSE(turned.contains({2, 1, 4, 3})) << "a mirror image";
}

TEST(Transform, ErasedAreasLieInTheirRange) {
  const Shape shape{40, 40, 1};
  Prepared erase("random_erasing: {probability: 1, area: [0.1, 0.2], fill: 0}", shape);
  double mean = 0;
  for (int sample = 0; sample < 500; ++sample) {
    const Values y = erase(counted(shape), sample);
    const double share = static_cast<double>(std::count(y.begin(), y.end(), 0.0F)) / 1600;
    EXPECT_GT(share, 0.08);
    EXPECT_LT(share, 0.22);
    mean += share / 500;
  }
  EXPECT_NEAR(mean, 0.15, 0.01);
}

TEST(Transform, NoiseIsNormal) {
  const Shape shape{100, 101, 1};
  const Values y = Prepared("random_noise: {stddev: 2}", shape)(Values(10100, 0.0F), 1);
  double mean = 0, squares = 0;
  for (const float v : y) mean += v / 10100.0, squares += v * v / 10100.0;
  EXPECT_NEAR(mean, 0, 0.1);
  EXPECT_NEAR(std::sqrt(squares), 2, 0.1);
}

/// The random numbers are part of what a run's bits depend on.
TEST(Transform, BitsOfRandomOnesArePinned) {
  const Shape shape{6, 6, 3};
  Values x = counted(shape);
  for (float& v : x) v /= 128;
  const std::map<std::string, std::string> pinned{
      {"random_crop: {padding: 2}", "aaad48925cf9467e"},
      {"random_flip: {axes: [horizontal, vertical]}", "72ba0c3cef11ca50"},
      {"random_symmetry", "f05c9025f930d41f"},
      {"random_resized_crop: {size: 5}", "82bd518d86e4d79a"},
      {"random_affine: {degrees: [-30, 30], scale: [0.8, 1.2], translate: 0.2, shear: [-10, 10]}",
       "d09b1da89c71ced3"},
      {"color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}", "f210fe46fb178343"},
      {"random_grayscale: {probability: 0.5}", "6373f4862d6683ef"},
      {"random_erasing: {noise: true}", "96a63a6b3d1c56cd"},
      {"cutout: {size: 3}", "ff40ca074b78d794"},
      {"rand_augment: {operations: 3}", "b847a9c2faf4dfea"},
      {"trivial_augment: {translate: 3}", "c1c2268fef8db4ed"},
      {"random_blur", "666d4d52d211c0dc"},
      {"random_noise: {stddev: 0.1}", "a504063567e29076"}};
  for (const auto& [items, expected] : pinned) {
    Prepared transform(items, shape);
    Digest digest;
    for (int sample = 0; sample < 20; ++sample) {
      const Values y = transform(x, sample, 3);
      digest.add(y.data(), y.size() * sizeof(float));
    }
    EXPECT_EQ(digest.hex().substr(0, 16), expected) << items;
  }
  for (const TransformEntry& entry : transform_table()) {
    const bool random = entry.help.find("fixed form") != std::string_view::npos;
    EXPECT_EQ(random, std::any_of(pinned.begin(), pinned.end(),
                                  [&](const auto& known) { return known.first.starts_with(entry.name); }))
        << entry.name;
  }
}

}  // namespace
}  // namespace lockstep
