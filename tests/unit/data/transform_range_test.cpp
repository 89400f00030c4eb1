// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Transforms that take values from 0 to max refuse others, and say which step to move.
#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "config/yaml_node.h"
#include "data/transform_list.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;

constexpr std::int64_t kSide = 8;
const std::string kNormalize = "normalize: {mean: 0.5, std: 0.25}";

/// Values from 0 to `most`.
std::vector<float> picture(float most = 1) {
  std::vector<float> values(kSide * kSide * 3);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = most * static_cast<float>(i * 37 % values.size()) / static_cast<float>(values.size() - 1);
  return values;
}

/// Applies the transforms to a training sample, or in their fixed form.
void use(const std::string& items, std::vector<float> values = picture(), bool training = true,
         const CentringStage& before = {}) {
  TransformList list(Params(parse_yaml("{transforms: [" + items + "]}", "test"), transforms_table(), "data"));
  list.come_after(before);
  list.prepare(Shape{kSide, kSide, 3});
  std::vector<float> scratch(static_cast<std::size_t>(list.scratch_values()) + values.size());
  std::vector<float> out(static_cast<std::size_t>(list.shape().num_elements()) + values.size());
  float* const at = list.in_place() ? out.data() : scratch.data();
  std::copy(values.begin(), values.end(), at);
  const SampleKey key{.seed = 7};
  list.apply(at, out.data(), training ? &key : nullptr, scratch.data());
}

std::string error_of(const std::string& items, std::vector<float> values = picture(), bool training = true,
                     const CentringStage& before = {}) {
  return message_of([&] { use(items, std::move(values), training, before); });
}

TEST(TransformRange, ColoursAfterANormalizationAreRefused) {
  for (const std::string colours : {"color_jitter: {brightness: 0.2}", "rand_augment"})
    EXPECT_THAT(error_of(kNormalize + ", random_flip, " + colours),
                AllOf(HasSubstr("from 0 to 1"), HasSubstr("from -2 to 2"),
                      HasSubstr("move normalize to a place"), HasSubstr("test:1:")));
  EXPECT_THAT(error_of("standardize, color_jitter: {hue: 0.1}"), HasSubstr("move standardize"));
}

TEST(TransformRange, TheAdviceWorks) {
  use("color_jitter: {brightness: 0.2}, random_flip, " + kNormalize);
  use("rand_augment, standardize");
}

TEST(TransformRange, TheFixedFormChangesNothingAndTakesAll) {
  use(kNormalize + ", color_jitter: {brightness: 0.2}, rand_augment", picture(), false);
}

TEST(TransformRange, ANormalizationBeforeAllTransformsIsNamed) {
  EXPECT_THAT(error_of("color_jitter: {contrast: 0.1}", picture(-1), true,
                       {"data.normalize", "leave it out there, and end the list with `- normalize`."}),
              HasSubstr("data.normalize acts before all transforms: leave it out there"));
}

TEST(TransformRange, ValuesThatAreNotScaledAreRefused) {
  EXPECT_THAT(error_of("color_jitter: {brightness: 0.2}", picture(255)), HasSubstr("max: 255"));
  use("color_jitter: {brightness: 0.2, max: 255}", picture(255));
  EXPECT_THAT(error_of("color_jitter: {brightness: 0.2}", picture(-1)), HasSubstr("clip: {min: 0, max: 1}"));
  use("clip: {min: 0, max: 1}, color_jitter: {brightness: 0.2}", picture(-1));
}

TEST(TransformRange, RoundingInterpolationAndNoiseAreNoMistakes) {
  use("color_jitter: {brightness: 0.2}", picture(1.02F));
  use("resize: {size: 16, method: bicubic}, color_jitter: {brightness: 0.2}");
  use("random_noise: {stddev: 0.1}, color_jitter: {brightness: 0.2}");
  use("random_crop: {padding: 2}, random_affine: {degrees: [-9, 9]}, cutout: {size: 2}, rand_augment");
}

TEST(TransformRange, AFillOutsideTheRangeIsNamed) {
  EXPECT_THAT(error_of("pad: {amount: 2, fill: -3}, rand_augment"), HasSubstr("move pad"));
}

TEST(TransformRange, ALogarithmOfCentredValuesIsRefused) {
  EXPECT_THAT(error_of(kNormalize + ", log"), AllOf(HasSubstr("from 0 on"), HasSubstr("move normalize")));
  EXPECT_THAT(error_of(kNormalize + ", log", picture(), false), HasSubstr("move normalize"));
  use("log, " + kNormalize);
  use("log", picture(-1));  // max(x, 0), by its definition
}

}  // namespace
}  // namespace lockstep
