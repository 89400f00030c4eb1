// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every layer: its output equals the reference's, and its gradients equal central differences of the
// reference in double. check_layer(), which needs no reference, agrees.
#include <algorithm>

#include "config/named_options.h"
#include "layer_cases/layer_cases.h"
#include "model/gradient_check.h"
#include "model/layer_runner.h"

namespace lockstep {
namespace {

class LayerGradient : public testing::TestWithParam<LayerCase> {};

std::unique_ptr<Layer> made(const LayerCase& test) {
  auto layer = layer_from(test.yaml);
  EXPECT_TRUE(!test.residual || layer->fuse(Fusible::addition));
  EXPECT_TRUE(!test.relu || layer->fuse(Fusible::relu));
  return layer;
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

TEST_P(LayerGradient, AgreesWithReference) {
  const LayerCase& test = GetParam();
  const auto layer = made(test);
  LayerRunner run(*layer, test.inputs, runner_options(test));
  fill_inputs(test, run);
  // The point: all inputs with a gradient, then all trainable variables.
  Values point;
  for (int i = 0; i < run.num_inputs(); ++i)
    if (!test.fixed_inputs.contains(i)) point.insert(point.end(), run.input(i).begin(), run.input(i).end());
  struct Part {
    std::string name;
    VariableId id;
    std::size_t elements;
  };
  std::vector<Part> parts;
  for (std::size_t v = 0; v < run.variables().variables().size(); ++v) {
    const Variable& variable = run.variables().variables()[v];
    if (!variable.trainable) continue;
    const Part part{last_part(variable.name), static_cast<VariableId>(v),
                    static_cast<std::size_t>(variable.shape.num_elements())};
    const auto values = random_floats(part.elements, static_cast<std::uint32_t>(100 + v), -0.5, 1.5);
    std::copy(values.begin(), values.end(), run.variables().value(part.id));
    point.insert(point.end(), values.begin(), values.end());
    parts.push_back(part);
  }
  const auto reference = [&](std::span<const double> at) {
    std::vector<Values> inputs;
    auto next = at.begin();
    for (int i = 0; i < run.num_inputs(); ++i) {
      if (test.fixed_inputs.contains(i)) {
        inputs.push_back(doubles(run.input(i)));
        continue;
      }
      const auto end = next + static_cast<std::ptrdiff_t>(run.input(i).size());
      inputs.emplace_back(next, end);
      next = end;
    }
    std::map<std::string, Values> variables;
    for (const Part& part : parts) {
      const auto end = next + static_cast<std::ptrdiff_t>(part.elements);
      variables[part.name] = Values(next, end);
      next = end;
    }
    return test.reference(inputs, variables);
  };

  run.forward();
  // Sums of at most 60 terms in any order: at most 60 rounding errors of 2^-24 of the largest sum.
  const std::vector<float> outputs = outputs_of(run);
  expect_close(outputs, reference(point), 60 * 0x1p-24, "output");
  if (point.empty()) return;  // nothing to differentiate

  const std::vector<float> weights = random_floats(outputs.size(), 999, -1, 1);
  auto next_weight = weights.begin();
  for (int o = 0; o < run.num_outputs(); ++o) {
    const auto end = next_weight + static_cast<std::ptrdiff_t>(run.output(o).size());
    run.output_gradient(o).assign(next_weight, end);
    next_weight = end;
  }
  run.backward();
  std::vector<float> gradient;
  for (int i = 0; i < run.num_inputs(); ++i)
    if (!test.fixed_inputs.contains(i))
      gradient.insert(gradient.end(), run.input_gradient(i).begin(), run.input_gradient(i).end());
  for (const Part& part : parts) {
    const auto own = run.gradient(part.id);
    gradient.insert(gradient.end(), own.begin(), own.end());
  }
  const auto scalar = [&](std::span<const double> at) {
    const Values y = reference(at);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(weights[i]) * y[i];
    return sum;
  };
  if (point.empty()) return;  // a constant: nothing to differentiate
  const GradientCheck check = check_gradient(scalar, point, gradient, {.tolerance = test.tolerance});
  EXPECT_TRUE(check.passed()) << check.to_string();
  EXPECT_EQ(check.checked + check.kinks, static_cast<std::int64_t>(point.size()));
}

TEST_P(LayerGradient, AgreesWithItsOwnForward) {
  const LayerCase& test = GetParam();
  const auto layer = made(test);
  const auto checks = check_layer(*layer, test.inputs,
                                  {.microshards = test.microshards,
                                   .fused_inputs = test.residual ? 1 : 0,
                                   .two_gradients = test.two_gradients,
                                   .low = test.low,
                                   .high = test.high,
                                   .fixed_inputs = test.fixed_inputs});
  EXPECT_GE(checks.size(), test.inputs.size() - test.fixed_inputs.size());
  for (const GradientCheck& check : checks) EXPECT_TRUE(check.passed()) << check.to_string();
}

/// What does not depend on the batch gives the same in inference; primitives are made apart for it.
TEST_P(LayerGradient, InferenceGivesTheSameOutput) {
  const LayerCase& test = GetParam();
  if (!test.same_in_inference) return;
  const auto layer = made(test);
  LayerRunnerOptions options = runner_options(test);
  options.training = false;
  LayerRunner run(*layer, test.inputs, options);
  fill_inputs(test, run);
  std::vector<Values> inputs;
  for (int i = 0; i < run.num_inputs(); ++i) inputs.push_back(doubles(run.input(i)));
  std::map<std::string, Values> variables;
  for (std::size_t v = 0; v < run.variables().variables().size(); ++v) {
    const Variable& variable = run.variables().variables()[v];
    const float* values = run.variables().value(static_cast<VariableId>(v));
    variables[last_part(variable.name)] = Values(values, values + variable.shape.num_elements());
  }
  run.forward();
  expect_close(outputs_of(run), test.reference(inputs, variables), 60 * 0x1p-24, "output");
}

/// A frozen variable's gradient is left out or discarded; nothing else changes by a bit.
TEST_P(LayerGradient, FrozenVariablesChangeNothingElse) {
  const LayerCase& test = GetParam();
  std::vector<std::vector<float>> results[2];
  std::int64_t trained[2] = {};
  for (const bool freeze : {false, true}) {
    const auto layer = made(test);
    LayerRunnerOptions options = runner_options(test);
    if (freeze)
      options.frozen = [given = options.frozen](const std::string& name) {
        return !last_part(name).starts_with("moving_") || (given && given(name));
      };
    LayerRunner run(*layer, test.inputs, options);
    trained[freeze ? 1 : 0] = run.variables().num_parameters();
    fill_inputs(test, run);
    run.forward();
    for (int o = 0; o < run.num_outputs(); ++o)
      run.output_gradient(o) = random_floats(run.output(o).size(), static_cast<std::uint32_t>(998 + o));
    run.backward();
    results[freeze ? 1 : 0].push_back(outputs_of(run));
    for (int i = 0; i < run.num_inputs(); ++i) results[freeze ? 1 : 0].push_back(run.input_gradient(i));
  }
  if (trained[0] == 0) return;
  EXPECT_EQ(trained[1], 0);
  EXPECT_EQ(results[0], results[1]);
}

INSTANTIATE_TEST_SUITE_P(AllLayers, LayerGradient, testing::ValuesIn(layer_cases()),
                         [](const auto& test) { return test.param.name; });

/// Before other tests of the program add layers of their own.
const std::vector<std::string_view> own_layers = layer_table().names();

TEST(LayerTable, EveryLayerHasACase) {
  ASSERT_GT(own_layers.size(), 30U);
  std::vector<std::string> covered;
  for (const LayerCase& test : layer_cases())
    covered.push_back(named_options(parse_yaml(test.yaml, "test"), "layer").name);
  for (const std::string_view name : own_layers)
    EXPECT_NE(std::find(covered.begin(), covered.end(), name), covered.end())
        << "layer " << name << " has no gradient check: add a case to its family in layer_cases/";
}

TEST(Inference, DropoutIsTheIdentity) {
  const auto layer = layer_from("dropout: {rate: 0.5}");
  LayerRunner run(*layer, {Shape{7}}, {.training = false});
  run.input(0) = random_floats(14, 1);
  run.forward();
  EXPECT_EQ(run.output(), run.input(0));
}

/// y = (x - moving_mean) / sqrt(moving_variance + epsilon) * gamma + beta, then the fused residual and relu.
TEST(Inference, BatchNormUsesMovingStatistics) {
  for (const bool fused : {false, true}) {
    const auto layer = layer_from("batch_norm: {name: bn, epsilon: 0.01}");
    ASSERT_TRUE(!fused || (layer->fuse(Fusible::addition) && layer->fuse(Fusible::relu)));
    LayerRunner run(*layer, {Shape{5, 3}},
                    {.microshards = {2, 1}, .training = false, .fused_inputs = fused ? 1 : 0});
    for (int i = 0; i < run.num_inputs(); ++i)
      run.input(i) = random_floats(45, static_cast<std::uint32_t>(i), -2, 2);
    std::map<std::string, float*> at;
    std::uint32_t stream = 10;
    for (const char* name : {"gamma", "beta", "moving_mean", "moving_variance"}) {
      at[name] = run.variables().value(run.variables().find(std::string("bn/") + name));
      const auto values = random_floats(3, ++stream, 0.5, 2);
      std::copy(values.begin(), values.end(), at[name]);
    }
    run.forward();
    Values expected;
    for (std::size_t i = 0; i < 45; ++i) {
      const std::size_t c = i % 3;
      const auto number = [&](const char* name) { return static_cast<double>(at[name][c]); };
      double y = (static_cast<double>(run.input(0)[i]) - number("moving_mean")) /
                     std::sqrt(number("moving_variance") + 0.01) * number("gamma") +
                 number("beta");
      if (fused) y = std::max(0.0, y + static_cast<double>(run.input(1)[i]));
      expected.push_back(y);
    }
    expect_close(run.output(), expected, 8 * 0x1p-24, "output");
  }
}

/// Mean 1000 and deviation 0.6: E[x^2] - E[x]^2 in float32 would keep no digit of the variance.
TEST(BatchNorm, StatisticsAreAccurateForALargeMean) {
  const auto layer = layer_from("batch_norm: {name: bn, momentum: 0}");
  LayerRunner run(*layer, {Shape{6, 6, 2}}, {.microshards = {3, 0, 1, 5}});
  for (float& x : run.input(0)) x = 1e3F;
  const auto noise = random_floats(run.input(0).size(), 1);
  for (std::size_t i = 0; i < noise.size(); ++i) run.input(0)[i] += noise[i];
  run.forward();
  const std::int64_t rows = 9 * 36;
  for (std::size_t c = 0; c < 2; ++c) {
    double mean = 0, m2 = 0;
    for (std::size_t i = c; i < noise.size(); i += 2)
      mean += static_cast<double>(run.input(0)[i]) / static_cast<double>(rows);
    for (std::size_t i = c; i < noise.size(); i += 2)
      m2 += std::pow(static_cast<double>(run.input(0)[i]) - mean, 2);
    const auto moving = [&](const char* name) {
      return static_cast<double>(run.variables().value(run.variables().find(name))[c]);
    };
    EXPECT_NEAR(moving("bn/moving_mean"), mean, 1e3 * 0x1p-23);
    EXPECT_NEAR(moving("bn/moving_variance"), m2 / static_cast<double>(rows - 1), 2e-6);
  }
}

}  // namespace
}  // namespace lockstep
