// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/mean_decay.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/yaml_node.h"

namespace lockstep {
namespace {

/// A decay, and a class of variables that counts its updates.
struct Decay {
  explicit Decay(const std::string& yaml)
      : number(ScheduledNumber(parse_yaml(yaml, "test"), "kept", kShareRange)), decay(number, of.numbers) {
    number.begin({.steps = 100, .clock = RunClock({.steps = 10, .samples = 80, .batch = 8}), .seed = 7});
  }
  /// The product after an update in step `step`.
  double after(std::int64_t step) {
    ++of.updates;
    decay.count(step, of);
    return decay.product(of);
  }
  UpdateClass of;
  CorrectedDecayNumber number;
  MeanDecay decay;
};

constexpr const char* kFalling = "{polynomial_decay: {initial: 0.95, last: 0.6, decay_steps: 30}}";

TEST(MeanDecay, ANumberIsAPower) {
  Decay number("0.9"), schedule("{constant: {value: 0.9}}");
  EXPECT_TRUE(number.of.numbers.empty());
  EXPECT_FALSE(schedule.of.numbers.empty());
  for (std::int64_t step = 0; step < 500; ++step) {
    EXPECT_EQ(number.decay.at(step), 0.9F);
    const double product = number.after(step);
    EXPECT_EQ(product, std::pow(static_cast<double>(0.9F), static_cast<double>(step + 1)));
    EXPECT_EQ(schedule.after(step), product) << step;
  }
}

/// The sum of the weights of the mean m = d m + (1 - d) g is 1 minus the product: of the updates, which are
/// in some of the steps, from any step on.
TEST(MeanDecay, TheProductCompletesTheWeights) {
  for (const char* yaml :
       {"0.93", kFalling, "{piecewise_constant: {boundaries: [5, 9], values: [0.9, 0, 0.99]}}",
        "{one_cycle: {peak: 0.85, initial: 0.95, last: 0.95, total_steps: 50}}",
        "{noisy_linear_cosine_decay: {initial: 0.5, decay_steps: 20, beta: 0.1, initial_variance: 0.01}}"})
    for (const std::int64_t first : {0, 7})
      for (const std::int64_t left_out : {1000, 3}) {
        Decay decay(yaml);
        double sum = 0;  // a mean of ones
        for (std::int64_t step = first; step < 60; ++step) {
          if (step % left_out == left_out - 1) continue;
          const auto kept = static_cast<double>(decay.decay.at(step));
          sum = kept * sum + (1 - kept);
          EXPECT_NEAR(1 - decay.after(step), sum, 1e-14) << yaml << " " << step;
        }
      }
}

/// What a checkpoint keeps is all there is.
TEST(MeanDecay, TheProductGoesOnFromItsNumbers) {
  Decay whole(kFalling), resumed(kFalling);
  for (std::int64_t step = 0; step < 20; ++step)
    if (step % 4 != 2) whole.after(step);
  resumed.of = whole.of;
  for (std::int64_t step = 20; step < 40; ++step) EXPECT_EQ(whole.after(step), resumed.after(step));
}

TEST(MeanDecay, StaysBelowOneWhenRounded) {
  Decay decay("{polynomial_decay: {initial: 0.9, last: 0.99999999, decay_steps: 5}}");
  EXPECT_EQ(decay.decay.at(9), 0x1.fffffep-1F);
  EXPECT_THROW(Decay("0.99999999"), Error);
  EXPECT_THROW(Decay("{reduce_on_plateau: {initial: 0.9}}"), Error);
}

}  // namespace
}  // namespace lockstep
