// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Means over what counts in the whole batch: the gradient of a bias under outputs that are 0, by hand, for
// microshards of which unequal parts are ignored.
#include "train/loss_stage.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/self_communicator.h"
#include "config/yaml_node.h"
#include "model/heads_options.h"
#include "support/one_step.h"

namespace lockstep {
namespace {

constexpr std::int32_t kIgnored = 9;

OneStep::Result step(const char* loss, std::vector<std::int64_t> sizes,
                     const std::vector<std::int32_t>& labels, int threads) {
  SelfCommunicator self;
  OneStep one(self, threads,
              std::make_unique<Graph>(graph_from_config(
                  parse_yaml("[dense: {units: 3, kernel_initializer: zeros}]", "test"), Shape{2})),
              make_loss(parse_yaml(loss, "test")), std::move(sizes));
  return one.run(std::vector<float>(labels.size() * 2, 1.0F), labels);
}

/// Of the bias {3}, which lies after or before the kernel {2, 3}, all of whose inputs are 1: in each of the
/// three rows the gradient is the same.
void expect_gradient(const OneStep::Result& result, const std::vector<double>& expected) {
  std::vector<float> found;
  for (const float value : result.gradient)
    if (value != 0) found.push_back(value);
  ASSERT_EQ(found.size(), 9U);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(static_cast<double>(found[i]), expected[i % 3], 1e-7) << i;
}

TEST(LossStage, UnequalMicroshardsAreWeighedByWhatCountsInAll) {
  // 5 of 8 count: two 0, two 1, one 2. The third microshard is empty, all of the second is ignored.
  const std::vector<std::int32_t> labels = {0, 1, kIgnored, kIgnored, kIgnored, 1, 2, 0};
  for (const int threads : {1, 2})
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{8}, {3, 2, 0, 3}, {1, 1, 1, 1, 1, 1, 1, 1}, {2, 6}}) {
      const OneStep::Result result =
          step("{softmax_cross_entropy: {ignore_index: 9}}", sizes, labels, threads);
      EXPECT_NEAR(result.loss, std::log(3.0), 1e-6);
      EXPECT_EQ(result.accuracy, 2.0 / 5) << "the first of equal outputs: class 0";
      expect_gradient(result, {1.0 / 3 - 2.0 / 5, 1.0 / 3 - 2.0 / 5, 1.0 / 3 - 1.0 / 5});
    }
}

TEST(LossStage, ClassesWithoutWeightAreNotInTheMean) {
  const std::vector<std::int32_t> labels = {0, 1, 2, 1, 0, 0};
  const OneStep::Result result =
      step("{softmax_cross_entropy: {class_weights: [2, 1, 0]}}", {1, 2, 3}, labels, 2);
  const double sum = 2 * 3 + 1 * 2, count = 5;  // weights of what counts, and how many that are
  EXPECT_NEAR(result.loss, std::log(3.0) * sum / count, 1e-6);
  EXPECT_EQ(result.accuracy, 3.0 / 6);
  expect_gradient(result, {(sum / 3 - 6) / count, (sum / 3 - 2) / count, (sum / 3) / count});
}

TEST(LossStage, NothingThatCountsGivesNothing) {
  const OneStep::Result result =
      step("{softmax_cross_entropy: {ignore_index: 9}}", {2, 1}, {kIgnored, kIgnored, kIgnored}, 1);
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.accuracy, 0);
  for (const float value : result.gradient) EXPECT_EQ(value, 0);
}

/// A net of two heads on one output, in a 16-bit type; random numbers, classes 0 to 4.
OneStep::Result half_step(DType type, const std::string& heads, std::vector<std::int64_t> sizes,
                          int threads) {
  SelfCommunicator self;
  std::int64_t n = 0;
  for (const std::int64_t size : sizes) n += size;
  auto graph = std::make_unique<Graph>(graph_from_config(
      parse_yaml("[dense: {name: a, units: 5}, relu, dense: {name: logits, units: 5}]", "test"), Shape{4}));
  graph->hold_activations_as(type);
  const Node section = parse_yaml(heads, "test");
  OneStep one(self, threads, std::move(graph),
              heads_from_config(Params(section, kHeadsOptions, "section model")), std::move(sizes));
  std::vector<float> features;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < n; ++i) {
    labels.push_back(static_cast<std::int32_t>(i * 3 % 5));
    for (int j = 0; j < 4; ++j) features.push_back(static_cast<float>((i * 7 + j * 5) % 11) / 5.0F - 1.0F);
  }
  return one.run(features, labels);
}

void expect_near_float32(const OneStep::Result& half, const OneStep::Result& full, double error) {
  EXPECT_NEAR(half.loss, full.loss, error * full.loss);
  ASSERT_EQ(half.gradient.size(), full.gradient.size());
  double square = 0, distance = 0;
  for (std::size_t i = 0; i < full.gradient.size(); ++i) {
    square += std::pow(static_cast<double>(full.gradient[i]), 2);
    distance += std::pow(static_cast<double>(half.gradient[i]) - static_cast<double>(full.gradient[i]), 2);
  }
  EXPECT_GT(square, 0);
  EXPECT_LE(std::sqrt(distance), 4 * error * std::sqrt(square));
}

TEST(LossStage, SixteenBitLogitsGiveFloat32sGradientRounded) {
  // A loss that reads them, one that gets a float32 copy, and both on one output, whose gradients are added.
  for (const char* heads :
       {"{loss: softmax_cross_entropy}", "{loss: {softmax_cross_entropy: {label_smoothing: 0.1}}}",
        "{heads: [{name: x, output: logits, loss: softmax_cross_entropy}, "
        "{name: y, output: logits, loss: {softmax_cross_entropy: {label_smoothing: 0.1}}, weight: 0.5}]}",
        "{heads: [{name: x, output: logits, loss: softmax_cross_entropy}, "
        "{name: y, output: logits, loss: softmax_cross_entropy, weight: 0.5}]}"})
    for (const DType type : {DType::bf16, DType::f16}) {
      SCOPED_TRACE(heads);
      const OneStep::Result full = half_step(DType::f32, heads, {3, 2, 0, 3}, 1),
                            half = half_step(type, heads, {3, 2, 0, 3}, 1),
                            threads = half_step(type, heads, {3, 2, 0, 3}, 2);
      expect_near_float32(half, full, type == DType::bf16 ? 0x1p-7 : 0x1p-10);
      EXPECT_NE(half.gradient, full.gradient);
      EXPECT_EQ(half.gradient, threads.gradient);
      EXPECT_EQ(half.loss, threads.loss);
    }
}

}  // namespace
}  // namespace lockstep
