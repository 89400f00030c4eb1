// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax_cross_entropy with index and dense labels: values and gradients are compared with the formula in
// double.
#include "model/loss.h"

#include <limits>

#include "model/gradient_check.h"
#include "model_testing.h"

namespace lockstep {
namespace {

constexpr std::int64_t kRows = 6, kClasses = 5;
constexpr float kScale = 0.125F;

std::unique_ptr<Loss> loss() { return make_loss(Node::scalar("softmax_cross_entropy")); }

/// -sum_ij t_ij log softmax(x_i)_j
double cross_entropy(std::span<const double> x, std::span<const double> t) {
  double sum = 0;
  for (std::size_t first = 0; first < x.size(); first += kClasses) {
    double total = 0;
    for (std::size_t j = 0; j < kClasses; ++j) total += std::exp(x[first + j]);
    for (std::size_t j = 0; j < kClasses; ++j) sum -= t[first + j] * (x[first + j] - std::log(total));
  }
  return sum;
}

void expect_loss_and_gradient(const Labels& labels, const Values& targets, std::int64_t correct) {
  const auto outputs = random_floats(kRows * kClasses, 1, -3, 3);
  std::vector<float> gradient(outputs.size());
  LossSums sums;
  loss()->run(cpu_kernels(), Lane{}, kRows, Shape{kClasses}, outputs.data(), labels, kScale, gradient.data(),
              &sums);
  const Values point = doubles(outputs);
  const double expected = cross_entropy(point, targets);
  EXPECT_NEAR(sums.loss, expected, 1e-6 * expected);
  EXPECT_EQ(sums.correct, correct);
  const auto function = [&](std::span<const double> x) {
    return static_cast<double>(kScale) * cross_entropy(x, targets);
  };
  const GradientCheck check = check_gradient(function, point, gradient, {.tolerance = 2e-6});
  EXPECT_TRUE(check.passed()) << check.to_string();
  EXPECT_EQ(check.checked, kRows * kClasses);
}

std::int64_t argmax(const auto& values, std::int64_t row) {
  const auto first = values.begin() + row * kClasses;
  return std::max_element(first, first + kClasses) - first;
}

TEST(Loss, IndexLabels) {
  const std::vector<std::int32_t> labels = {0, 4, 2, 2, 1, 3};
  const auto outputs = random_floats(kRows * kClasses, 1, -3, 3);
  Values targets(kRows * kClasses);
  std::int64_t correct = 0;
  for (std::int64_t i = 0; i < kRows; ++i) {
    targets[static_cast<std::size_t>(i * kClasses + labels[static_cast<std::size_t>(i)])] = 1;
    correct += argmax(outputs, i) == labels[static_cast<std::size_t>(i)];
  }
  expect_loss_and_gradient({.indices = labels.data()}, targets, correct);
}

TEST(Loss, DenseLabels) {
  const auto labels = random_floats(kRows * kClasses, 2, 0, 1);  // rows need not sum to one
  const auto outputs = random_floats(kRows * kClasses, 1, -3, 3);
  std::int64_t correct = 0;
  for (std::int64_t i = 0; i < kRows; ++i) correct += argmax(outputs, i) == argmax(labels, i);
  expect_loss_and_gradient({.rows = labels.data()}, doubles(labels), correct);
}

TEST(Loss, LargeOutputsStayFiniteAndNaNStaysNaN) {
  std::vector<float> outputs = {1e4F, -1e4F, 0, 0, 0}, gradient(5);
  const std::int32_t label = 1;
  LossSums sums;
  loss()->run(cpu_kernels(), Lane{}, 1, Shape{kClasses}, outputs.data(), {.indices = &label}, 1.0F,
              gradient.data(), &sums);
  EXPECT_NEAR(sums.loss, 2e4, 1e-2);
  expect_close(gradient, {1, -1, 0, 0, 0}, 1e-6, "gradient");
  outputs[2] = std::numeric_limits<float>::quiet_NaN();
  loss()->run(cpu_kernels(), Lane{}, 1, Shape{kClasses}, outputs.data(), {.indices = &label}, 1.0F,
              gradient.data(), &sums);
  EXPECT_TRUE(std::isnan(sums.loss));
}

TEST(Loss, PredictionsAreProbabilities) {
  const auto outputs = random_floats(kRows * kClasses, 1, -3, 3);
  std::vector<float> predictions(outputs.size());
  loss()->predict(cpu_kernels(), cpu_device(), Lane{}, kRows, Shape{kClasses}, outputs.data(),
                  predictions.data());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::size_t first = i / kClasses * kClasses;
    double total = 0;
    for (std::size_t j = 0; j < kClasses; ++j) total += std::exp(static_cast<double>(outputs[first + j]));
    EXPECT_NEAR(static_cast<double>(predictions[i]), std::exp(static_cast<double>(outputs[i])) / total, 1e-6);
  }
}

TEST(Loss, ShapeMismatchIsExplained) {
  EXPECT_EQ(loss()->form(Shape{5}, 1), LabelForm::indices);
  EXPECT_EQ(loss()->form(Shape{5}, 5), LabelForm::rows);
  EXPECT_EQ(loss()->form(Shape{4, 4, 5}, 16), LabelForm::indices) << "one per position";
  EXPECT_EQ(loss()->form(Shape{4, 4, 5}, 80), LabelForm::rows);
  EXPECT_THROW(loss()->form(Shape{5}, 4), Error);
  EXPECT_THROW(loss()->form(Shape{5}, 2), Error);
  EXPECT_THROW(loss()->form(Shape{4, 4, 5}, 1), Error);
  EXPECT_THROW(make_loss(Node::scalar("softmax_crossentropy")), Error);
}

}  // namespace
}  // namespace lockstep
