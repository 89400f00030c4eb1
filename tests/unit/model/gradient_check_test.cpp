// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The gradient checker: right gradients pass, wrong ones are found and named even if they are small; kinks
// are skipped; NaN never passes.
#include "model/gradient_check.h"

#include <limits>

#include "model_testing.h"

namespace lockstep {
namespace {

const auto cubes = [](std::span<const double> x) {
  double sum = 0;
  for (double value : x) sum += value * value * value;
  return sum;
};
std::vector<float> gradient_of_cubes(const Values& x) {
  std::vector<float> gradient;
  for (double value : x) gradient.push_back(static_cast<float>(3 * value * value));
  return gradient;
}

TEST(GradientCheck, RightGradientPasses) {
  const Values x = doubles(random_floats(50, 1, -2, 2));
  const GradientCheck check = check_gradient(cubes, x, gradient_of_cubes(x));
  EXPECT_TRUE(check.passed()) << check.to_string();
  EXPECT_EQ(check.checked, 50);
  EXPECT_EQ(check.kinks, 0);
}

TEST(GradientCheck, WrongElementIsNamed) {
  const Values x = doubles(random_floats(50, 1, 1, 2));
  for (std::size_t wrong : {0U, 17U, 49U}) {
    auto gradient = gradient_of_cubes(x);
    gradient[wrong] *= 1.001F;
    const GradientCheck check = check_gradient(cubes, x, gradient);
    EXPECT_FALSE(check.passed());
    EXPECT_EQ(check.index, static_cast<std::int64_t>(wrong));
    EXPECT_NEAR(check.error, 1e-3, 2e-4);
    EXPECT_NE(check.to_string().find("element " + std::to_string(wrong) + " is"), std::string::npos)
        << check.to_string();
  }
}

TEST(GradientCheck, SmallGradientsAreChecked) {
  const auto tiny = [](std::span<const double> x) { return 1e-6 * (x[0] + 2 * x[1]); };
  const Values x = {0.5, 0.25};
  EXPECT_TRUE(check_gradient(tiny, x, std::vector<float>{1e-6F, 2e-6F}).passed());
  EXPECT_FALSE(check_gradient(tiny, x, std::vector<float>{1e-6F, 2.01e-6F}).passed());
}

TEST(GradientCheck, NaNNeverPasses) {
  const Values x = {1.0, 2.0};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(check_gradient(cubes, x, std::vector<float>{3.0F, nan}).passed());
  const auto undefined = [](std::span<const double>) { return std::numeric_limits<double>::quiet_NaN(); };
  EXPECT_FALSE(check_gradient(undefined, x, std::vector<float>{3.0F, 12.0F}).passed());
}

TEST(GradientCheck, KinksAreSkippedAndCounted) {
  const auto relu = [](std::span<const double> x) {
    double sum = 0;
    for (double value : x) sum += std::max(value, 0.0);
    return sum;
  };
  const Values x = {1.0, 2e-6, -1.0, 2.0, -3.0, 0.5};  // the second one's kink lies inside the step
  const std::vector<float> right = {1, 1, 0, 1, 0, 1};
  const GradientCheck check = check_gradient(relu, x, right);
  EXPECT_TRUE(check.passed()) << check.to_string();
  EXPECT_EQ(check.kinks, 1);
  EXPECT_EQ(check.checked, 5);
  EXPECT_FALSE(check_gradient(relu, x, std::vector<float>{1, 1, 1, 1, 0, 1}).passed());
  // A check that compares almost nothing does not pass.
  EXPECT_FALSE(check_gradient(relu, Values{2e-6, 1.0}, std::vector<float>{1, 1}).passed());
}

TEST(GradientCheck, SubsetIsChosenByTheSeed) {
  const Values x = doubles(random_floats(1000, 1, 1, 2));
  auto gradient = gradient_of_cubes(x);
  for (std::size_t i = 0; i < gradient.size(); i += 2) gradient[i] += 1.0F;
  const GradientCheckOptions options{.max_elements = 20, .seed = 3};
  const GradientCheck check = check_gradient(cubes, x, gradient, options);
  EXPECT_EQ(check.checked, 20);
  EXPECT_FALSE(check.passed());
  EXPECT_EQ(check.index, check_gradient(cubes, x, gradient, options).index);
}

TEST(GradientCheck, ScalesTheStepWithTheCoordinate) {
  const auto square = [](std::span<const double> x) { return x[0] * x[0]; };
  for (double at : {1e-3, 1.0, 1e4, 1e8})
    EXPECT_TRUE(check_gradient(square, Values{at}, std::vector<float>{static_cast<float>(2 * at)}).passed())
        << at;
}

/// y = 3 x k + c, with a backward pass that can be wrong in a chosen way.
class Suspect final : public Layer {
 public:
  enum class Mistake { none, input, variable, sample };
  explicit Suspect(Mistake mistake) : Layer("suspect"), mistake_(mistake) {}
  LayerTraits traits() const override { return {.kind = "suspect"}; }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    elements_ = inputs[0].num_elements();
    return {inputs[0]};
  }
  void declare(VariableStore& variables) override {
    k_ = variables.declare("suspect/k", Shape{elements_}, make_initializer("normal"));
  }
  void forward(const Pass& pass) override {
    for (std::int64_t i = 0; i < pass.n * elements_; ++i)
      pass.outputs[0][i] = 3 * pass.inputs[0][i] * pass.value(k_)[i % elements_];
  }
  void backward(const Pass& pass) override {
    std::fill_n(pass.gradient(k_), elements_, 0.0F);
    for (std::int64_t i = 0; i < pass.n * elements_; ++i) {
      pass.dx[0][i] =
          3 * pass.dy[0][i] * pass.value(k_)[i % elements_] * (mistake_ == Mistake::input ? 1.05F : 1.0F);
      if (mistake_ == Mistake::sample && i >= elements_) continue;
      pass.gradient(k_)[i % elements_] +=
          (mistake_ == Mistake::variable ? -3.0F : 3.0F) * pass.dy[0][i] * pass.inputs[0][i];
    }
  }

 private:
  Mistake mistake_;
  std::int64_t elements_ = 0;
  VariableId k_ = VariableId::none;
};

TEST(CheckLayer, FindsErrorsInALayer) {
  using Mistake = Suspect::Mistake;
  for (const Mistake mistake : {Mistake::none, Mistake::input, Mistake::variable, Mistake::sample}) {
    Suspect layer(mistake);
    const auto checks = check_layer(layer, {Shape{6}});
    ASSERT_EQ(checks.size(), 2U);
    EXPECT_EQ(checks[0].name, "input 0");
    EXPECT_EQ(checks[1].name, "suspect/k");
    EXPECT_EQ(checks[0].passed(), mistake != Mistake::input) << checks[0].to_string();
    EXPECT_EQ(checks[1].passed(), mistake != Mistake::variable && mistake != Mistake::sample)
        << checks[1].to_string();
  }
}

}  // namespace
}  // namespace lockstep
