// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Predictions and metrics of an estimator whose targets are normalised, on any number of ranks.
#include <gmock/gmock.h>

#include <cmath>

#include "support/estimator_run.h"

namespace lockstep {
namespace {

/// 64 samples of two numbers, with a price of some thousands that they give.
float price_of(int sample) {
  return 5000.0F + 1000.0F * static_cast<float>(sample * 7 % 20) / 20 -
         400.0F * static_cast<float>(sample * 3 % 11) / 11;
}
Input prices() {
  SampleArrays numbers{.shape = Shape{2}}, targets{.shape = Shape{1}};
  for (int i = 0; i < 64; ++i) {
    numbers.features.push_back(static_cast<float>(i * 7 % 20) / 20);
    numbers.features.push_back(static_cast<float>(i * 3 % 11) / 11);
    targets.features.push_back(price_of(i));
  }
  return Input::named({{"numbers", Input::arrays("numbers", numbers)}},
                      {{"price", Input::arrays("price", targets).with("normalize", "all")}});
}

TEST(Estimator, PredictsInTheUnitsOfTheTargets) {
  const auto model = [](const Features& features, const LabelColumns& labels, Mode, const Params&) {
    const LayerOutput price = layers::dense(features["numbers"], {.units = 1});
    return EstimatorSpec{.loss = losses::mean_squared_error(labels["price"], price),
                         .train_op = {.optimizer = optimizers::adam({.learning_rate = 0.05})},
                         .eval_metrics = {metrics::root_mean_squared_error()}};
  };
  Estimator estimator(test_environment(), model, small_run(fresh_run_dir("units")));
  estimator.train(prices, {.max_steps = 40});
  const double root = estimator.evaluate(prices).value("root_mean_squared_error");
  EXPECT_GT(root, 5);  // not of z-scores
  const auto stream = estimator.predict(prices);
  double squares = 0;
  int sample = 0;
  while (stream->next())
    for (const float value : stream->values())
      squares += std::pow(static_cast<double>(value) - static_cast<double>(price_of(sample++)), 2);
  if (test_world().rank() != 0) return;
  EXPECT_EQ(sample, 64);
  EXPECT_NEAR(std::sqrt(squares / 64), root, 1e-3 * root);
}

}  // namespace
}  // namespace lockstep
