// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Losses that are given as formulas: each function of dual numbers against central differences in double, and
// the sums, gradients, options and weights of such a loss.
#include "model/losses/formula_loss.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "config/option.h"
#include "error_text.h"
#include "model/gradient_check.h"
#include "model_testing.h"

namespace lockstep {
namespace {

using formula::Constant;
using formula::Dual;
using ::testing::HasSubstr;

struct Case {
  const char* name;
  std::function<Dual(Dual, Constant)> formula;
  double low = -2, high = 2;
};

std::vector<Case> cases() {
  return {
      {"sums and products",
       [](auto y, auto t) { return 2 * y * y - y * t / 3 + (1 - y) * 4 - (y - 1) / (t + 4); }},
      {"quotients", [](auto y, auto t) { return (t + 1) / (y * y + 2) + y / (3 + t * t) + 1 / (y + 5); }},
      {"assignments",
       [](auto y, auto t) {
         auto sum = y;
         sum += t;
         sum *= y;
         sum -= 0.5;
         sum /= 2 + y * y;
         return +sum - -y;
       }},
      {"exp", [](auto y, auto t) { return exp(y * t); }},
      {"expm1", [](auto y, auto t) { return expm1(t * y); }},
      {"log", [](auto y, auto t) { return log(y + t * t); }, 0.5, 3},
      {"log1p", [](auto y, auto) { return log1p(y); }, -0.5, 3},
      {"sqrt", [](auto y, auto t) { return sqrt(y * y + t * t + 1); }},
      {"abs", [](auto y, auto t) { return abs(y - t) + abs(t); }},
      {"tanh", [](auto y, auto t) { return tanh(2 * y) * t; }},
      {"sin and cos", [](auto y, auto t) { return sin(y) * cos(y + t); }},
      {"sigmoid", [](auto y, auto t) { return sigmoid(y) * sigmoid(t); }, -8, 8},
      {"softplus", [](auto y, auto t) { return softplus(3 * y) - t * y; }, -8, 8},
      {"a power that is a number", [](auto y, auto) { return pow(y, 3) + pow(y, 2.5); }, 0.2, 2},
      {"a power of a number", [](auto y, auto t) { return pow(2, y) + pow(t * t + 1, y); }},
      {"a power of both", [](auto y, auto) { return pow(y, y); }, 0.2, 2},
      {"min and max", [](auto y, auto t) { return max(y, t) * 3 + min(y, 0.25) - max(0, y) + min(t, y); }},
      {"a condition",
       [](auto y, auto t) {
         const auto d = y - t;
         return abs(d) <= 1 ? d * d / 2 : abs(d) - 0.5;
       }},
      {"a condition with a number",
       [](auto y, auto t) { return y > t && y != 0 && !(y == t) ? y * y : 0.0; }},
  };
}

TEST(Dual, SlopesAreThoseOfCentralDifferences) {
  for (const Case& test : cases()) {
    SCOPED_TRACE(test.name);
    const std::vector<float> at = random_floats(40, 5, test.low, test.high),
                             labels = random_floats(40, 6, -1, 1);
    std::vector<double> point(at.begin(), at.end());
    std::vector<float> slopes;
    for (std::size_t i = 0; i < at.size(); ++i)
      slopes.push_back(static_cast<float>(test.formula(Dual(point[i], 1), Constant(labels[i])).slope));
    const GradientCheck check = check_gradient(
        [&](std::span<const double> x) {
          double sum = 0;
          for (std::size_t i = 0; i < x.size(); ++i)
            sum += test.formula(Dual(x[i], 1), Constant(labels[i])).value;
          return sum;
        },
        point, slopes, {.tolerance = 1e-5});
    EXPECT_TRUE(check.passed()) << check.to_string();
  }
}

TEST(Dual, WhereThereIsNoDerivative) {
  EXPECT_EQ(abs(Dual(0, 1)).slope, 0);
  EXPECT_EQ(max(Dual(0, 1), 0).slope, 1) << "that of the first argument";
  EXPECT_EQ(max(0, Dual(0, 1)).slope, 0);
  EXPECT_EQ(max(0, sqrt(Dual(0, 1))).slope, 0) << "the slope of what is not taken does not matter";
  EXPECT_EQ(pow(Dual(0, 1), 0).slope, 0);
  EXPECT_EQ(pow(Dual(0, 1), 2).slope, 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(max(Dual(nan, 1), 0).value) && std::isnan(max(0, Dual(nan, 1)).value));
  EXPECT_TRUE(std::isnan(min(Dual(nan, 1), 0).value) && std::isnan(min(0, Dual(nan, 1)).value));
  EXPECT_TRUE(std::isnan(abs(Dual(nan, 1)).slope));
  EXPECT_EQ(sigmoid(Dual(-1000, 1)).value, 0);
  EXPECT_EQ(sigmoid(Dual(1000, 1)).slope, 0);
  EXPECT_EQ(softplus(Dual(1000, 1)).value, 1000);
  EXPECT_EQ(softplus(Dual(1000, 1)).slope, 1);
}

struct Pinball {
  double quantile = 0;
};
constexpr ParamSpec kPinballTable[] = {
    option<&Pinball::quantile>("quantile", "0.5", between(0, 1), "The quantile that is estimated.")};
const LossEntry kPinball = loss_formula<Pinball>(
    "pinball", "for this test", kPinballTable, [](auto output, auto label, const Pinball& options) {
      const auto d = label - output;
      return max(options.quantile * d, (options.quantile - 1) * d);
    });
const LossEntry kSquare = loss_formula(
    "square", "for this test", [](auto output, auto label) { return (output - label) * (output - label); });

std::unique_ptr<Loss> made(const LossEntry& entry, const Node& options = {}) {
  return entry.make(Params(options, entry.table, "test"));
}

struct Result {
  double sum;
  std::vector<float> gradient;
};
Result run(const Loss& loss, std::int64_t n, const Shape& shape, const std::vector<float>& x,
           const Labels& labels) {
  LossSums sums;
  std::vector<float> gradient(x.size(), 77.0F);
  loss.run(cpu_kernels(), Lane{}, n, shape, x.data(), labels, 0.25F, gradient.data(), &sums);
  LossSums without;
  loss.run(cpu_kernels(), Lane{}, n, shape, x.data(), labels, 0.25F, nullptr, &without);
  EXPECT_EQ(sums.loss, without.loss) << "the same without a gradient";
  return {sums.loss, gradient};
}

TEST(FormulaLoss, ASquareIsTheBuiltInSquare) {
  // Blocks of 256 numbers, and a rest.
  for (const std::int64_t n : {1, 3, 85, 86, 300}) {
    const auto count = static_cast<std::size_t>(3 * n);
    const std::vector<float> x = random_floats(count, 3, -3, 3), t = random_floats(count, 4, -3, 3);
    const Result own = run(*made(kSquare), n, Shape{3}, x, {.rows = t.data(), .columns = 3}),
                 built_in = run(*make_loss(Node::scalar("mean_squared_error")), n, Shape{3}, x,
                                {.rows = t.data(), .columns = 3});
    EXPECT_NEAR(own.sum, built_in.sum, 1e-13 * built_in.sum);
    EXPECT_EQ(own.gradient, built_in.gradient);
  }
}

TEST(FormulaLoss, WeightsMultiplyAndAWeightOfZeroLeavesASampleOut) {
  const std::vector<float> weights = {0.5F, 0.0F, 2.0F};
  std::vector<float> x = random_floats(6, 3, -3, 3);
  const std::vector<float> t = random_floats(6, 4, -3, 3);
  x[2] = std::numeric_limits<float>::quiet_NaN();
  const Labels labels{.rows = t.data(), .columns = 2, .weights = weights.data()};
  const Result own = run(*made(kSquare), 3, Shape{2}, x, labels),
               built_in = run(*make_loss(Node::scalar("mean_squared_error")), 3, Shape{2}, x, labels);
  EXPECT_TRUE(made(kSquare)->takes_weights());
  EXPECT_NEAR(own.sum, built_in.sum, 1e-13 * built_in.sum);
  EXPECT_EQ(own.gradient, built_in.gradient);
}

TEST(FormulaLoss, OptionsAreThoseOfItsTable) {
  const std::vector<float> x = {0, 0}, t = {1, -2};
  EXPECT_NEAR(run(*made(kPinball), 2, Shape{1}, x, {.rows = t.data()}).sum, 1.5, 1e-15);
  const auto high = made(kPinball, parse_yaml("{quantile: 0.9}", "test"));
  const Result result = run(*high, 2, Shape{1}, x, {.rows = t.data()});
  EXPECT_NEAR(result.sum, 0.9 + 0.2, 1e-15);
  EXPECT_FLOAT_EQ(result.gradient[0], -0.25F * 0.9F);
  EXPECT_FLOAT_EQ(result.gradient[1], 0.25F * 0.1F);
  EXPECT_THAT(error_text([] { made(kPinball, parse_yaml("{quantile: 2}", "test")); }), HasSubstr("quantile"));
}

TEST(FormulaLoss, TakesOneLabelForEachOutput) {
  EXPECT_EQ(made(kSquare)->form(Shape{4}, 4), LabelForm::rows);
  EXPECT_THAT(error_text([] { static_cast<void>(made(kSquare)->form(Shape{4}, 3)); }),
              HasSubstr("square of outputs 4 takes 4 label values per sample, but gets 3"));
}

TEST(FormulaLoss, PassesTheCheckOfDoubles) {
  const std::vector<float> t = random_floats(15, 4, -1, 1);
  for (const LossEntry* entry : {&kSquare, &kPinball}) {
    const GradientCheck check =
        check_loss(*made(*entry), Shape{5}, {.rows = t.data()}, {.computes_in_double = true});
    EXPECT_TRUE(check.passed()) << check.to_string();
    EXPECT_EQ(check.tolerance, 1e-5);
  }
}

/// The square with a slope of which every number is off by one in a thousand, but one element by more.
class OffBy final : public Loss {
 public:
  explicit OffBy(float factor) : factor_(factor) {}
  LabelForm form(const Shape&, std::int64_t) const override { return LabelForm::rows; }
  LabelRule rule(const Shape&, LabelForm) const override { return LabelRule::finite({}); }
  bool has_classes() const override { return false; }
  std::int64_t terms(const Shape& output) const override { return output.num_elements(); }
  std::int64_t positions(const Shape& output) const override { return output.num_elements(); }
  void run(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
           ConstData outputs, const Labels& labels, float gradient_scale, Data d_outputs,
           LossSums* sums) const override {
    kernels.loss_terms.element(lane, {}, n * output.num_elements(), outputs, labels.rows, gradient_scale,
                               d_outputs, &sums->loss);
    if (d_outputs) d_outputs.f32()[7] *= factor_;
  }

 private:
  float factor_;
};

TEST(CheckLoss, NamesTheElementWithItsValueAndWhatIsExpected) {
  const std::vector<float> t(15, 0.5F);
  OffBy wrong(1.001F), right(1);
  const auto in_double = [&](Loss& loss) {
    return check_loss(loss, Shape{5}, {.rows = t.data(), .columns = 5}, {.computes_in_double = true});
  };
  EXPECT_TRUE(in_double(right).passed()) << in_double(right).to_string();
  const GradientCheck check = in_double(wrong);
  EXPECT_FALSE(check.passed());
  EXPECT_EQ(check.index, 7);
  EXPECT_NEAR(check.analytic, check.numeric * 1.001, 1e-5);
  EXPECT_THAT(check.to_string(), HasSubstr("outputs: element 7 (sample 1, output 2, where it is "));
  EXPECT_THAT(check.to_string(), HasSubstr("and its label 0.5) is "));
  EXPECT_THAT(check.to_string(), HasSubstr("central differences give "));
  // Floats cannot see an error of one in a thousand.
  EXPECT_TRUE(check_loss(wrong, Shape{5}, {.rows = t.data()}).passed());
}

}  // namespace
}  // namespace lockstep
