// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A prediction of a Predictor makes no allocations of Lockstep's own after the first one.
#include <gtest/gtest.h>

#include "api/predictor.h"
#include "support/counted_allocations.h"
#include "support/estimator_run.h"

namespace lockstep {
namespace {

using PredictorAllocation = Warm;

TEST_F(PredictorAllocation, CallsAfterTheFirstAllocateOnlyInOneDnn) {
  // Targets whose way back is no line, and values in double: every part of a call.
  const auto samples = [] {
    SampleArrays numbers{.shape = Shape{3}}, targets{.shape = Shape{2}};
    for (int i = 0; i < 40; ++i) {
      for (int k = 0; k < 3; ++k) numbers.features.push_back(static_cast<float>((i * (k + 3)) % 17));
      for (int k = 0; k < 2; ++k) targets.features.push_back(1 + static_cast<float>((i * (k + 5)) % 11));
    }
    return Input::named({{"numbers", Input::arrays("numbers", numbers).with("normalize", "channels")}},
                        {{"both", Input::arrays("both", targets).with("whiten", "zca")}});
  };
  const auto model = [](const Features& features, const LabelColumns& labels, Mode, const Params&) {
    const LayerOutput hidden = layers::relu(layers::dense(features["numbers"], {.units = 8}));
    return EstimatorSpec{
        .loss = losses::mean_squared_error(labels["both"], layers::dense(hidden, {.units = 2})),
        .train_op = {.optimizer = optimizers::adam({.learning_rate = 0.05})}};
  };
  Estimator estimator(test_environment(), model, small_run(fresh_run_dir("predictor_allocation")));
  estimator.train(samples, {.max_steps = 3});
  Predictor net = estimator.predictor();
  constexpr std::int64_t kMany = 70;
  const std::vector<float> one(3, 2), many(3 * kMany, 3);
  const std::vector<double> wide(3 * kMany, 3);
  std::vector<float> first(2), all(2 * kMany);
  std::vector<double> all_wide(2 * kMany);
  const auto calls = [&] {
    net.predict(one, first);
    net.predict(many, all, kMany);
    net.predict(wide, all_wide, kMany);
    net.predict({{"numbers", one}}, {{net.outputs()[0].name, first}});
  };
  calls();
  const Counts counts = counted(calls);
  EXPECT_EQ(counts.own, 0) << first_own();
  EXPECT_GT(counts.library, 0);  // they are counted
}

}  // namespace
}  // namespace lockstep
