// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Means over what counts in the whole batch: the gradient of a bias under outputs that are 0, by hand, for
// microshards of which unequal parts are ignored.
#include "train/loss_stage.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/self_communicator.h"
#include "driver/config/yaml_node.h"
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

}  // namespace
}  // namespace lockstep
