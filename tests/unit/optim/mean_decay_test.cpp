// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/mean_decay.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/yaml_node.h"

namespace lockstep {
namespace {

struct Decay {
  explicit Decay(const std::string& yaml)
      : number(parse_yaml(yaml, "test"), "kept", kShareRange), decay(number, BiasCorrection::by_product) {
    number.begin({.steps = 100, .steps_per_epoch = 10, .samples_per_epoch = 80, .batch_size = 8, .seed = 7});
  }
  ScheduledNumber number;
  MeanDecay decay;
};

TEST(MeanDecay, ANumberIsAPower) {
  Decay number("0.9"), schedule("{constant: {value: 0.9}}");
  const auto kept = static_cast<double>(0.9F);
  for (const std::int64_t step : {0, 1, 99, 12, 100000}) {
    EXPECT_EQ(number.decay.at(step), 0.9F);
    EXPECT_EQ(number.decay.product(step), std::pow(kept, static_cast<double>(step + 1)));
    EXPECT_EQ(schedule.decay.product(step), number.decay.product(step)) << step;
  }
}

/// The sum of the weights of the mean m = d m + (1 - d) g is 1 minus the product.
TEST(MeanDecay, TheProductCompletesTheWeights) {
  for (const char* yaml : {"{polynomial_decay: {initial: 0.95, last: 0.6, decay_steps: 30}}",
                           "{piecewise_constant: {boundaries: [5, 9], values: [0.9, 0, 0.99]}}",
                           "{one_cycle: {peak: 0.85, initial: 0.95, last: 0.95, total_steps: 50}}",
                           "{noisy_linear_cosine_decay: {initial: 0.5, decay_steps: 20, beta: 0.1, "
                           "initial_variance: 0.01}}"}) {
    Decay decay(yaml);
    double sum = 0;  // a mean of ones
    for (std::int64_t step = 0; step < 60; ++step) {
      const auto kept = static_cast<double>(decay.decay.at(step));
      sum = kept * sum + (1 - kept);
      EXPECT_NEAR(1 - decay.decay.product(step), sum, 1e-14) << yaml << " " << step;
    }
  }
}

/// A resumed run begins in the middle, and one that was rolled back goes back.
TEST(MeanDecay, TheProductDependsOnTheStepAlone) {
  const char* const yaml = "{polynomial_decay: {initial: 0.95, last: 0.6, decay_steps: 30}}";
  Decay whole(yaml), resumed(yaml);
  double at_20 = 0;
  for (std::int64_t step = 0; step < 50; ++step) {
    const double product = whole.decay.product(step);
    if (step == 20) at_20 = product;
    if (step == 40) {
      EXPECT_EQ(resumed.decay.product(40), product);
    }
  }
  EXPECT_EQ(whole.decay.product(20), at_20);
  EXPECT_EQ(whole.decay.product(20), at_20) << "the same step again";
  EXPECT_GT(at_20, 0);
}

TEST(MeanDecay, StaysBelowOneWhenRounded) {
  Decay decay("{polynomial_decay: {initial: 0.9, last: 0.99999999, decay_steps: 5}}");
  EXPECT_EQ(decay.decay.at(9), 0x1.fffffep-1F);
  EXPECT_THROW(Decay("0.99999999"), Error);
  EXPECT_THROW(Decay("{reduce_on_plateau: {initial: 0.9}}"), Error);
}

}  // namespace
}  // namespace lockstep
