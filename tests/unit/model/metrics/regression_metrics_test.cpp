// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Metrics of numbers are compared with their formulas in double.
#include <limits>

#include "metric_testing.h"

namespace lockstep {
namespace {

struct Pair {
  double p, y;
};

/// The pairs of output c (of the last axis); -1: all.
std::vector<Pair> pairs_of(const Samples& samples, std::int64_t c = -1) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < samples.rows.size(); ++i) {
    if (samples.input.ignore_index &&
        static_cast<double>(samples.rows[i]) == static_cast<double>(*samples.input.ignore_index))
      continue;
    if (c < 0 || static_cast<std::int64_t>(i) % samples.input.output.last() == c)
      pairs.push_back({static_cast<double>(samples.predictions[i]), static_cast<double>(samples.rows[i])});
  }
  return pairs;
}

double mean_of(const std::vector<Pair>& pairs, double (*f)(Pair)) {
  double sum = 0;
  for (const Pair& pair : pairs) sum += f(pair);
  return pairs.empty() ? 0 : sum / static_cast<double>(pairs.size());
}
double absolute(Pair a) { return std::abs(a.p - a.y); }
double square(Pair a) { return (a.p - a.y) * (a.p - a.y); }
double relative(Pair a) { return a.y == 0 ? 0 : std::abs((a.p - a.y) / a.y); }

double r2_of(const std::vector<Pair>& pairs) {
  const double mean = mean_of(pairs, [](Pair a) { return a.y; });
  double wrong = 0, varied = 0;
  for (const Pair& a : pairs) {
    wrong += square(a);
    varied += (a.y - mean) * (a.y - mean);
  }
  return 1 - wrong / varied;
}

TEST(RegressionMetrics, FollowTheirFormulas) {
  for (const Shape& output : {Shape{1}, Shape{3}, Shape{3, 17}})
    for (const std::int64_t n : {1, 3, 17})
      for (const bool ignore : {false, true}) {
        Samples samples = random_samples(n, output, PredictionKind::values, 0.01);
        if (ignore) samples.input.ignore_index = 7;
        for (std::size_t i = 0; i < samples.rows.size(); i += 5)
          samples.rows[i] = i % 2 == 0 && ignore ? 7 : 0;
        SCOPED_TRACE(output.to_string() + " x " + std::to_string(n));
        const std::vector<Pair> all = pairs_of(samples);
        expect_near(value_of("mean_absolute_error", samples, false), mean_of(all, absolute), "mae");
        expect_near(value_of("mean_squared_error", samples, false), mean_of(all, square), "mse");
        expect_near(value_of("root_mean_squared_error", samples, false), std::sqrt(mean_of(all, square)),
                    "rmse");
        expect_near(value_of("mean_relative_error", samples, false), mean_of(all, relative), "relative");
        const std::vector<double> each =
            table_of("{mean_absolute_error: {per_output: true}}", samples, "per_output", false);
        ASSERT_EQ(each.size(), static_cast<std::size_t>(output.last()));
        for (std::int64_t c = 0; c < output.last(); ++c)
          expect_near(each[static_cast<std::size_t>(c)], mean_of(pairs_of(samples, c), absolute),
                      "per output");
        if (n < 3) continue;
        const std::vector<double> r2 = table_of("{r2: {per_output: true}}", samples, "per_output", false);
        double sum = 0;
        for (std::int64_t c = 0; c < output.last(); ++c) {
          const std::vector<Pair> own = pairs_of(samples, c);
          double varied = 0;
          for (const Pair& a : own) varied += std::abs(a.y - own[0].y);
          const double expected = varied == 0 ? 0 : r2_of(own);
          expect_near(r2.at(static_cast<std::size_t>(c)), expected, "r2", 1e-10);
          sum += r2[static_cast<std::size_t>(c)];
        }
        expect_near(value_of("r2", samples, false), sum / static_cast<double>(output.last()), "r2");
      }
}

TEST(R2, IsAccurateFarFromZero) {
  Samples samples = random_samples(101, Shape{1}, PredictionKind::values, 0.5);
  for (std::size_t i = 0; i < 101; ++i) {
    samples.rows[i] = 1e6F + static_cast<float>(i % 3);
    samples.predictions[i] = samples.rows[i] + (i % 2 == 0 ? 0.25F : -0.25F);
  }
  expect_near(value_of("r2", samples, false), r2_of(pairs_of(samples)), "r2", 1e-9);
}

TEST(R2, ConstantLabels) {
  Samples samples = random_samples(5, Shape{1}, PredictionKind::values);
  samples.rows.assign(5, 2.0F);
  EXPECT_EQ(value_of("r2", samples), 0);
  samples.predictions.assign(5, 2.0F);
  EXPECT_EQ(value_of("r2", samples), 1);
}

TEST(RegressionMetrics, NaNGivesNaN) {
  Samples samples = random_samples(5, Shape{2}, PredictionKind::values);
  samples.predictions[3] = std::numeric_limits<float>::quiet_NaN();
  for (const char* yaml :
       {"mean_absolute_error", "root_mean_squared_error", "r2", "mean", "mean_relative_error"})
    EXPECT_TRUE(std::isnan(value_of(yaml, samples, false))) << yaml;
  const std::vector<double> each = table_of("{mean: {per_output: true}}", samples, "per_output", false);
  EXPECT_FALSE(std::isnan(each.at(0)));
}

TEST(RegressionMetrics, TakeClassIndicesAsNumbers) {
  Samples samples = random_samples(4, Shape{1}, PredictionKind::values);
  samples.rows.clear();
  samples.indices = {1, 2, 3, 4};
  samples.predictions = {1, 2, 3, 6};
  samples.input.dense_labels = false;
  EXPECT_EQ(value_of("mean_absolute_error", samples), 0.5);
}

TEST(MeanCosineDistance, WithAndWithoutLengths) {
  Samples samples = random_samples(9, Shape{2, 3}, PredictionKind::values, 0.1);
  samples.input.ignore_index = 9;
  samples.rows[4] = 9;  // its position does not count
  double plain = 0, normalized = 0;
  for (std::size_t position = 0; position < 18; ++position) {
    if (position == 1) continue;
    double product = 0, p = 0, y = 0;
    for (std::size_t i = 3 * position; i < 3 * position + 3; ++i) {
      const double a = static_cast<double>(samples.predictions[i]), b = static_cast<double>(samples.rows[i]);
      product += a * b;
      p += a * a;
      y += b * b;
    }
    plain += 1 - product;
    normalized += 1 - product / std::sqrt(p * y);
  }
  expect_near(value_of("mean_cosine_distance", samples, false), plain / 17, "plain");
  expect_near(value_of("{mean_cosine_distance: {normalize: true}}", samples, false), normalized / 17,
              "normalized");
}

TEST(Perplexity, IsTheExponentialOfTheMeanCrossEntropy) {
  for (const Shape& output : {Shape{2}, Shape{3, 17}}) {
    Samples samples = random_samples(13, output, PredictionKind::classes, 0.1);
    samples.input.ignore_index = 0;
    for (float& number : samples.outputs) number = number * 40 + 200;  // nothing may overflow
    double sum = 0, count = 0;
    const auto classes = static_cast<std::size_t>(output.last());
    for (std::size_t i = 0; i < samples.indices.size(); ++i) {
      if (samples.indices[i] == 0) continue;
      const float* row = samples.outputs.data() + i * classes;
      double total = 0;
      for (std::size_t c = 0; c < classes; ++c)
        total += std::exp(static_cast<double>(row[c]) - static_cast<double>(row[samples.indices[i]]));
      sum += std::log(total);
      count += 1;
    }
    expect_near(value_of("perplexity", samples, false), std::exp(sum / count), "perplexity", 1e-11);
  }
}

TEST(Perplexity, ReadsProbabilities) {
  Samples samples = random_samples(2, Shape{2}, PredictionKind::classes);
  samples.outputs = {0.25F, 0.75F, 0.5F, 0.5F};
  samples.indices = {0, 1};
  expect_near(value_of("{perplexity: {predictions: classes}}", samples, false), std::sqrt(8.0), "perplexity");
}

TEST(Mean, MeanAndPercentageBelow) {
  const Samples samples = random_samples(17, Shape{3, 5}, PredictionKind::labels, 0.01);
  double sum = 0, below = 0;
  std::vector<double> each(5);
  for (std::size_t i = 0; i < samples.predictions.size(); ++i) {
    const double p = static_cast<double>(samples.predictions[i]);
    sum += p;
    each[i % 5] += p / (17 * 3);
    below += p < 0.3 ? 1 : 0;
  }
  expect_near(value_of("mean", samples, false), sum / (17 * 15), "mean");
  expect_near(value_of("{percentage_below: {threshold: 0.3}}", samples), below / (17 * 15), "below");
  const std::vector<double> table = table_of("{mean: {per_output: true}}", samples, "per_output", false);
  for (std::size_t c = 0; c < 5; ++c) expect_near(table.at(c), each[c], "per output");
}

TEST(Mean, ReadsALayersOutputs) {
  const Samples samples = random_samples(3, Shape{2}, PredictionKind::labels);
  const auto metric = metric_from("{mean: {layer: hidden}}", samples.input);
  EXPECT_EQ(metric->layer(), "hidden");
  EXPECT_FALSE(metric->needs_predictions());
  double sum = 0;
  for (const float x : samples.outputs) sum += static_cast<double>(x);
  expect_near(*report_of(*metric, samples, {3}).value, sum / 6, "mean");
}

TEST(TransformOutputs, AreSoftmaxAndSigmoid) {
  const std::vector<float> x = {1, 2, 3, -500, 0, 500};
  std::vector<float> y(6);
  transform_outputs(MetricSpec::Transform::softmax, 2, Shape{3}, x.data(), y.data());
  const double sum = std::exp(-2.0) + std::exp(-1.0) + 1;
  for (std::size_t i = 0; i < 3; ++i)
    expect_near(static_cast<double>(y[i]), std::exp(static_cast<double>(i) - 2) / sum, "softmax", 1e-7);
  EXPECT_EQ(y[5], 1);
  transform_outputs(MetricSpec::Transform::sigmoid, 2, Shape{3}, x.data(), y.data());
  expect_near(static_cast<double>(y[0]), 1 / (1 + std::exp(-1.0)), "sigmoid", 1e-7);
  EXPECT_EQ(y[3], 0);
  EXPECT_EQ(y[4], 0.5F);
}

}  // namespace
}  // namespace lockstep
