// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every loss is compared with its formula in double, and its gradient with central differences of the
// formula.
#include "loss_cases.h"

#include "model/class_balance.h"
#include "model/gradient_check.h"

namespace lockstep {
namespace {

constexpr float kScale = 0.125F;

struct Found {
  LossSums sums;
  std::vector<float> gradient;
};

Found run(const LossCase& test, std::int64_t n, const std::vector<float>& x, const Labels& labels,
          bool gradient = true) {
  const std::unique_ptr<Loss> loss = make_loss(parse_yaml(test.yaml, "test"));
  loss->prepare(cpu_device(), test.output);
  Found found{{}, std::vector<float>(x.size(), 77.0F)};
  loss->run(cpu_kernels(), Lane{}, n, test.output, x.data(), labels, kScale,
            gradient ? found.gradient.data() : nullptr, &found.sums);
  return found;
}

std::vector<float> outputs_of(const LossCase& test, std::int64_t n) {
  return random_floats(static_cast<std::size_t>(n * test.output.num_elements()), 3, -3, 3);
}

TEST(Losses, ValuesAndGradientsFollowTheFormula) {
  for (const LossCase& test : loss_cases())
    for (const std::int64_t n : {1, 3, 17}) {
      SCOPED_TRACE(fmt::format("{} of {}, {} samples", test.yaml, test.output.to_string(), n));
      const CaseLabels labels(test, n);
      const std::vector<float> x = outputs_of(test, n);
      const Found found = run(test, n, x, labels.labels());
      const Values point = doubles(x);
      const double expected = test.formula(point, labels.indices, labels.rows);
      EXPECT_NEAR(found.sums.loss, expected, 2e-6 * (std::abs(expected) + 0.1));
      const auto function = [&](std::span<const double> at) {
        return static_cast<double>(kScale) *
               test.formula(Values(at.begin(), at.end()), labels.indices, labels.rows);
      };
      const GradientCheck check = check_gradient(function, point, found.gradient, {.tolerance = 1e-5});
      EXPECT_TRUE(check.passed()) << check.to_string();
      const Found without = run(test, n, x, labels.labels(), false);
      EXPECT_EQ(without.sums.loss, found.sums.loss) << "the same without a gradient";
    }
}

TEST(Losses, CheckLossPassesEveryLoss) {
  for (const LossCase& test : loss_cases()) {
    SCOPED_TRACE(fmt::format("{} of {}", test.yaml, test.output.to_string()));
    const CaseLabels labels(test, 4);
    const GradientCheck check =
        check_loss(*make_loss(parse_yaml(test.yaml, "test")), test.output, labels.labels(), {.samples = 4});
    EXPECT_TRUE(check.passed()) << check.to_string();
    EXPECT_GT(check.checked, 0);
  }
}

/// A mean of squares whose gradient has a factor that it should not have.
class WrongLoss final : public Loss {
 public:
  explicit WrongLoss(float factor) : factor_(factor) {}
  LabelForm form(const Shape&, std::int64_t) const override { return LabelForm::rows; }
  LabelRule rule(const Shape&, LabelForm) const override { return LabelRule::finite({}); }
  bool has_classes() const override { return false; }
  std::int64_t terms(const Shape& output) const override { return output.num_elements(); }
  std::int64_t positions(const Shape& output) const override { return output.num_elements(); }
  void run(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
           ConstData outputs, const Labels& labels, float gradient_scale, Data d_outputs,
           LossSums* sums) const override {
    kernels.loss_terms.element(lane, {}, n * output.num_elements(), outputs, labels.rows,
                               factor_ * gradient_scale, d_outputs, &sums->loss);
  }

 private:
  float factor_;
};

TEST(Losses, CheckLossFindsAWrongGradient) {
  const auto labels = random_floats(15, 4, -1, 1);
  WrongLoss right(1), wrong(1.05F);
  EXPECT_TRUE(check_loss(right, Shape{5}, {.rows = labels.data()}).passed());
  const GradientCheck check = check_loss(wrong, Shape{5}, {.rows = labels.data()});
  EXPECT_FALSE(check.passed());
  EXPECT_THAT(check.to_string(), testing::StartsWith("outputs: element "));
}

TEST(Losses, WeightsMultiplyEachSampleAndItsGradient) {
  const std::vector<float> weights = {0.5F, 0.0F, 2.0F, 1.0F, 0.25F};
  const auto n = std::ssize(weights);
  int tried = 0;
  for (const LossCase& test : loss_cases()) {
    if (!make_loss(parse_yaml(test.yaml, "test"))->takes_weights()) continue;
    ++tried;
    SCOPED_TRACE(test.yaml + " of " + test.output.to_string());
    const CaseLabels all(test, n);
    std::vector<float> x = outputs_of(test, n);
    const std::int64_t values = test.output.num_elements();
    // What is not finite in a sample of weight 0 has no effect.
    std::fill_n(x.begin() + values, values, std::numeric_limits<float>::quiet_NaN());
    Labels labels = all.labels();
    labels.weights = weights.data();
    const Found together = run(test, n, x, labels);
    double loss = 0;
    std::int64_t correct = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto weight = static_cast<double>(weights[static_cast<std::size_t>(i)]);
      Labels own = all.labels();
      if (own.indices != nullptr) own.indices += i * (std::ssize(all.indices) / n);
      if (own.rows != nullptr) own.rows += i * (std::ssize(all.rows) / n);
      const std::vector<float> outputs(x.begin() + i * values, x.begin() + (i + 1) * values);
      const Found alone = run(test, 1, outputs, own);
      if (weight != 0) {
        loss += weight * alone.sums.loss;
        correct += alone.sums.correct;
      }
      for (std::int64_t j = 0; j < values; ++j) {
        const double expected =
            weight == 0 ? 0 : weight * static_cast<double>(alone.gradient[static_cast<std::size_t>(j)]);
        ASSERT_NEAR(static_cast<double>(together.gradient[static_cast<std::size_t>(i * values + j)]),
                    expected, 1e-6 * (1 + std::abs(expected)))
            << "sample " << i;
      }
    }
    EXPECT_NEAR(together.sums.loss, loss, 2e-6 * (1 + std::abs(loss)));
    EXPECT_EQ(together.sums.correct, correct);
  }
  EXPECT_GE(tried, 10);
}

TEST(Losses, NoSamplesGiveZero) {
  for (const LossCase& test : loss_cases()) {
    const CaseLabels labels(test, 0);
    EXPECT_EQ(run(test, 0, {}, labels.labels()).sums.loss, 0) << test.yaml;
  }
}

TEST(Losses, NaNStaysNaNUnlessItsLabelIsIgnored) {
  for (const LossCase& test : loss_cases()) {
    SCOPED_TRACE(test.yaml + " of " + test.output.to_string());
    CaseLabels labels(test, 2);
    std::vector<float> x = outputs_of(test, 2);
    x[0] = std::numeric_limits<float>::quiet_NaN();
    const Found found = run(test, 2, x, labels.labels());
    EXPECT_TRUE(std::isnan(found.sums.loss));
    EXPECT_TRUE(test.labels == LabelSort::none || std::isnan(found.gradient[0]));
    if (!test.some_ignored) continue;
    if (!labels.indices.empty()) labels.indices[0] = Loss::kIgnoredIndex;
    if (!labels.rows.empty()) labels.rows[0] = std::numeric_limits<float>::quiet_NaN();
    const Found ignored = run(test, 2, x, labels.labels());
    EXPECT_TRUE(std::isfinite(ignored.sums.loss));
    EXPECT_EQ(ignored.gradient[0], 0);
  }
}

TEST(Losses, LargeOutputsGiveFiniteResults) {
  for (const LossCase& test : loss_cases())
    for (const float size : {90.0F, 1e4F, 1e6F}) {
      SCOPED_TRACE(fmt::format("{} of {}, outputs of {}", test.yaml, test.output.to_string(), size));
      const CaseLabels labels(test, 3);
      std::vector<float> x = outputs_of(test, 3);
      for (float& value : x) value *= size;
      const Found found = run(test, 3, x, labels.labels());
      EXPECT_TRUE(std::isfinite(found.sums.loss));
      for (const float value : found.gradient) EXPECT_TRUE(std::isfinite(value));
    }
}

TEST(Losses, DivisorCountsLabelsThatAreNotIgnored) {
  const auto counts = [](const char* yaml, const Shape& output, std::int64_t n, const Labels& labels) {
    const std::unique_ptr<Loss> loss = make_loss(parse_yaml(yaml, "test"));
    loss->prepare(cpu_device(), output);
    const LossCounts found = loss->count(n, output, labels);
    return std::pair(found.divisor, found.positions);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::int32_t> indices = {-1, 0, 2, -1, 1, 0};
  const std::vector<float> rows = {nan, nan, 1, nan, 0, 1};
  using Pair = std::pair<double, double>;
  EXPECT_EQ(counts("softmax_cross_entropy", Shape{2, 3}, 3, {.indices = indices.data()}), Pair(6, 6));
  EXPECT_EQ(counts("{softmax_cross_entropy: {ignore_index: 7}}", Shape{2, 3}, 3, {.indices = indices.data()}),
            Pair(4, 4));
  EXPECT_EQ(counts("{softmax_cross_entropy: {ignore_index: 7, class_weights: [0, 2, 1]}}", Shape{2, 3}, 3,
                   {.indices = indices.data()}),
            Pair(2, 4))
      << "a class without weight does not count in the mean, but in accuracy";
  EXPECT_EQ(counts("{focal: {activation: softmax, ignore_index: 7, alpha: [0, 2, 1]}}", Shape{2, 3}, 3,
                   {.indices = indices.data()}),
            Pair(4, 4))
      << "alpha does not change the divisor";
  EXPECT_FALSE(
      make_loss(parse_yaml("{focal: {activation: softmax, alpha: [0, 1]}}", "test"))->counts_labels());
  EXPECT_EQ(counts("{mean_squared_error: {ignore_index: 7}}", Shape{3}, 2, {.rows = rows.data()}).first, 3);
  EXPECT_EQ(counts("{sigmoid_cross_entropy: {ignore_index: 7}}", Shape{2}, 3, {.rows = rows.data()}).first,
            3);
  EXPECT_EQ(
      counts("{sigmoid_cross_entropy: {ignore_index: 7, classes: sum}}", Shape{2}, 3, {.rows = rows.data()})
          .first,
      2);
  EXPECT_EQ(counts("sigmoid_cross_entropy", Shape{2}, 3, {.rows = rows.data()}).first, 6);
  const std::vector<std::int32_t> two = {-1, -1, 0, -1};
  EXPECT_EQ(counts("{dice: {ignore_index: 7}}", Shape{2, 3}, 2, {.indices = two.data()}).first, 1);
}

/// labels / (classes x labels of the class); the third class has no label.
TEST(Losses, BalancedClassWeightsAreThoseOfTheCounts) {
  const std::vector<std::int32_t> labels = {0, 1, 1, 0, 2, 1};
  const std::vector<float> x = random_floats(18, 3, -3, 3);
  const auto sums_of = [&](const char* yaml, bool announce) {
    const std::unique_ptr<Loss> loss = make_loss(parse_yaml(yaml, "test"));
    loss->prepare(cpu_device(), Shape{3});
    auto& balance = dynamic_cast<ClassBalance&>(*loss);
    EXPECT_EQ(balance.balances_classes(), announce);
    if (announce) balance.balance(cpu_device(), {6, 3, 0});
    EXPECT_FALSE(loss->takes_16_bits());
    LossSums sums;
    std::vector<float> gradient(x.size());
    loss->run(cpu_kernels(), Lane{}, 6, Shape{3}, x.data(), {.indices = labels.data()}, kScale,
              gradient.data(), &sums);
    return std::pair(sums.loss, gradient);
  };
  const auto balanced = sums_of("{softmax_cross_entropy: {class_weights: balanced}}", true),
             given = sums_of("{softmax_cross_entropy: {class_weights: [0.75, 1.5, 1]}}", false);
  EXPECT_EQ(balanced, given);
  const std::unique_ptr<Loss> uncounted =
      make_loss(parse_yaml("{softmax_cross_entropy: {class_weights: balanced}}", "test"));
  LossSums sums;
  EXPECT_THROW(uncounted->run(cpu_kernels(), Lane{}, 6, Shape{3}, x.data(), {.indices = labels.data()},
                              kScale, nullptr, &sums),
               Error);
  for (const char* const wrong : {"equal", "[1, -1]", "[]", "{a: 1}", "1.0e31"})
    EXPECT_THROW(
        make_loss(parse_yaml(fmt::format("{{softmax_cross_entropy: {{class_weights: {}}}}}", wrong), "test")),
        Error)
        << wrong;
}

TEST(Losses, InvalidInputsAreErrors) {
  const auto loss = [](const char* yaml) { return make_loss(parse_yaml(yaml, "test")); };
  EXPECT_THROW(loss("mean_squared_error")->form(Shape{3}, 1), Error);
  EXPECT_THROW(loss("dice")->form(Shape{5, 1}, 5), Error) << "a softmax of one class";
  EXPECT_THROW(loss("dice")->form(Shape{5, 2000}, 5), Error);
  EXPECT_THROW(loss("{softmax_cross_entropy: {ignore_index: 0}}")->form(Shape{3}, 3), Error);
  EXPECT_THROW(loss("{focal: {alpha: [0.5, 0.5]}}"), Error);
  EXPECT_THROW(loss("{focal: {alpha: 2}}"), Error);
  EXPECT_THROW(loss("{huber: {delta: 0}}"), Error);
  EXPECT_THROW(loss("{softmax_cross_entropy: {label_smoothing: 1}}"), Error);
  EXPECT_THROW(loss("{softmax_cross_entropy: {class_weights: [1, 2]}}")->prepare(cpu_device(), Shape{3}),
               Error);
  EXPECT_EQ(loss("mean")->form(Shape{3}, 5), LabelForm::none);
  EXPECT_FALSE(loss("hinge")->rule(Shape{1}, LabelForm::rows).allows(0.5));
  EXPECT_FALSE(loss("sigmoid_cross_entropy")->rule(Shape{1}, LabelForm::rows).allows(1.5));
  EXPECT_TRUE(loss("{hinge: {ignore_index: -1}}")->rule(Shape{1}, LabelForm::rows).allows(-1));
}

TEST(Losses, EachSaysWhichLabelsItTakes) {
  const auto rule = [](const char* yaml, const Shape& output, LabelForm form) {
    return make_loss(parse_yaml(yaml, "test"))->rule(output, form);
  };
  for (const char* const softmax : {"softmax_cross_entropy", "kl_divergence"}) {
    const LabelRule rows = rule(softmax, Shape{7, 3}, LabelForm::rows);
    EXPECT_EQ(rows.distribution, 3) << softmax;
    EXPECT_FALSE(rows.allows(-0.1)) << "a standardised number";
    EXPECT_FALSE(rows.allows(1.5));
    EXPECT_TRUE(rows.allows(0.25));
  }
  const LabelRule indices = rule("softmax_cross_entropy", Shape{3}, LabelForm::indices);
  EXPECT_EQ(indices.distribution, 0);
  EXPECT_FALSE(indices.allows(1.5));
  EXPECT_FALSE(indices.allows(3));
  EXPECT_EQ(rule("sigmoid_cross_entropy", Shape{3}, LabelForm::rows).distribution, 0);
  EXPECT_TRUE(rule("mean_squared_error", Shape{3}, LabelForm::rows).allows(-6834));
  EXPECT_THROW(make_loss(Node::scalar("softmax_cross_entropy"))->form(Shape{1}, 1), Error) << "of one class";
}

}  // namespace
}  // namespace lockstep
