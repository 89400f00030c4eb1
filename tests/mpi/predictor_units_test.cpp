// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A Predictor with several inputs and outputs takes and gives numbers in the units of the data, and has the
// bits of Estimator::predict(), whatever the layers and stages are.
#include <gmock/gmock.h>

#include "api/predictor.h"
#include "support/predictor_run.h"

namespace lockstep {
namespace {

using testing::ElementsAre;

float number(int sample, int k) {
  return philox_uniform(
      philox_words(11, 2, 0, static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(k))[0]);
}

constexpr std::int64_t kSamples = 64, kPixels = 36;

struct Samples {
  SampleArrays numbers{.shape = Shape{3}}, pictures{.shape = Shape{6, 6, 1}};
  SampleArrays prices{.shape = Shape{1}}, areas{.shape = Shape{2}};
};
Samples samples() {
  Samples all;
  for (int i = 0; i < kSamples; ++i) {
    for (int k = 0; k < 3; ++k) all.numbers.features.push_back(100 * number(i, k) + 20);
    for (int k = 0; k < kPixels; ++k) all.pictures.features.push_back(255 * number(i, 10 + k));
    all.prices.features.push_back(5000 + 900 * number(i, 60));
    for (int k = 0; k < 2; ++k) all.areas.features.push_back(1 + 40 * number(i, 70 + k));
  }
  return all;
}

Input houses() {
  const Samples all = samples();
  return Input::named(
      {{"numbers", Input::arrays("numbers", all.numbers).with("normalize", "channels")},
       {"picture", Input::arrays("picture", all.pictures).with("scale", 1.0 / 255).with("whiten", "zca")}},
      {{"price", Input::arrays("price", all.prices).with("normalize", "all")},
       {"areas", Input::arrays("areas", all.areas).with("whiten", "zca")}});
}

EstimatorSpec house_model(const Features& features, const LabelColumns& labels, Mode, const Params&) {
  LayerOutput picture = layers::conv2d(features["picture"], {.filters = 5, .kernel = 3});
  picture = layers::max_pool(layers::relu(layers::batch_norm(picture)));
  const LayerOutput both = layers::concat({layers::flatten(picture), features["numbers"]});
  const LayerOutput hidden = layers::tanh(layers::dense(both, {.units = 24}));
  const LayerOutput price = layers::dense(hidden, {.name = "price_out", .units = 1});
  const LayerOutput areas = layers::dense(hidden, {.name = "areas_out", .units = 2});
  return {.loss = losses::mean_squared_error(labels["price"], price, {}, {.name = "price"}) +
                  0.5 * losses::mean_absolute_error(labels["areas"], areas, {}, {.name = "areas"}),
          .train_op = {.optimizer = optimizers::adam({.learning_rate = 0.01})}};
}

TEST(PredictorUnits, SeveralInputsAndOutputsAreInTheUnitsOfTheData) {
  Estimator estimator(test_environment(), house_model, small_run(fresh_run_dir("predictor_units")));
  estimator.train(houses, {.max_steps = 5});
  const std::vector<float> prices = streamed(estimator, houses, "price"),
                           areas = streamed(estimator, houses, "areas");
  Predictor net = estimator.predictor();
  ASSERT_EQ(net.inputs().size(), 2U);
  EXPECT_EQ(net.inputs()[0].name, "numbers");
  EXPECT_EQ(net.input("picture").shape, (Shape{6, 6, 1}));
  EXPECT_EQ(net.output("price").quantity, "value");
  EXPECT_THAT(net.output("price").value_names, ElementsAre("price"));
  EXPECT_THAT(net.output("areas").value_names, ElementsAre("areas_0", "areas_1"));
  const Samples all = samples();
  std::vector<float> price(kSamples), area(2 * kSamples);
  for (const std::int64_t at_a_time : {std::int64_t{1}, std::int64_t{5}, kSamples}) {
    std::ranges::fill(price, 0.0F);
    std::ranges::fill(area, 0.0F);
    for (std::int64_t i = 0; i < kSamples; i += at_a_time) {
      const std::int64_t n = std::min(at_a_time, kSamples - i);
      const auto part = [&](auto& values, std::int64_t each) {
        return std::span(values).subspan(static_cast<std::size_t>(i * each),
                                         static_cast<std::size_t>(n * each));
      };
      net.predict(
          {{"picture", part(all.pictures.features, kPixels)}, {"numbers", part(all.numbers.features, 3)}},
          {{"price", part(price, 1)}}, n);
      const InputValues in[] = {part(all.numbers.features, 3), part(all.pictures.features, kPixels)};
      const OutputValues out[] = {part(price, 1), part(area, 2)};
      net.predict(in, out, n);
    }
    if (test_world().rank() != 0) continue;
    EXPECT_GT(prices[0], 3000);  // not of z-scores
    EXPECT_TRUE(same_bits(price, prices)) << at_a_time << " at a time";
    EXPECT_TRUE(same_bits(area, areas)) << at_a_time << " at a time";
  }
}

TEST(PredictorUnits, SixteenBitActivationsHaveTheBitsOfPredict) {
  for (const char* const compute : {"bfloat16", "float16"}) {
    RunConfig config = small_run(fresh_run_dir(fmt::format("predictor_{}", compute)));
    config.precision.compute = compute;
    Estimator estimator(test_environment(), house_model, config);
    estimator.train(houses, {.max_steps = 2});
    const std::vector<float> prices = streamed(estimator, houses, "price");
    Predictor net = estimator.predictor();
    const Samples all = samples();
    std::vector<float> price(kSamples);
    for (std::size_t i = 0; i < kSamples; ++i)
      net.predict({{"numbers", std::span(all.numbers.features).subspan(3 * i, 3)},
                   {"picture", std::span(all.pictures.features).subspan(kPixels * i, kPixels)}},
                  {{"price", std::span(price).subspan(i, 1)}});
    if (test_world().rank() == 0) {
      EXPECT_TRUE(same_bits(price, prices)) << compute;
    }
  }
}

}  // namespace
}  // namespace lockstep
