// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every layer: its output is the reference's, its gradients are the central differences of the reference in
// double, and the checker for layers without a reference (float32) agrees.
#include <algorithm>

#include "core/named_options.h"
#include "layer_cases.h"
#include "model/gradient_check.h"
#include "model/layer_runner.h"

namespace lockstep {
namespace {

class LayerGradient : public testing::TestWithParam<LayerCase> {};

std::unique_ptr<Layer> made(const LayerCase& test) {
  auto layer = layer_from(test.yaml);
  EXPECT_TRUE(!test.residual || layer->fuse_residual());
  EXPECT_TRUE(!test.relu || layer->fuse_relu());
  return layer;
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

TEST_P(LayerGradient, AgreesWithReference) {
  const LayerCase& test = GetParam();
  const auto layer = made(test);
  LayerRunner run(*layer, test.inputs,
                  {.microshards = test.microshards,
                   .fused_inputs = test.residual ? 1 : 0,
                   .two_gradients = test.two_gradients});
  // The point: all inputs, then all trainable variables.
  Values point;
  for (int i = 0; i < run.num_inputs(); ++i) {
    run.input(i) = random_floats(run.input(i).size(), static_cast<std::uint32_t>(i), test.low, test.high);
    point.insert(point.end(), run.input(i).begin(), run.input(i).end());
  }
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
  // Sums of at most 60 terms, in any order: 60 roundings of 2^-24 of the largest sum, far less as a rule.
  expect_close(run.output(), reference(point), 60 * 0x1p-24, "output");

  const std::vector<float> weights = random_floats(run.output_gradient().size(), 999, -1, 1);
  run.output_gradient() = weights;
  run.backward();
  std::vector<float> gradient;
  for (int i = 0; i < run.num_inputs(); ++i)
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
  const GradientCheck check = check_gradient(scalar, point, gradient, {.tolerance = 2e-5});
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
                                   .high = test.high});
  EXPECT_GE(checks.size(), test.inputs.size());
  for (const GradientCheck& check : checks) EXPECT_TRUE(check.passed()) << check.to_string();
}

INSTANTIATE_TEST_SUITE_P(AllLayers, LayerGradient, testing::ValuesIn(layer_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(LayerTable, EveryLayerHasACheck) {
  std::vector<std::string> covered;
  for (const LayerCase& test : layer_cases())
    covered.push_back(named_options(parse_yaml(test.yaml, "test"), "layer").name);
  for (const LayerEntry& entry : layer_table())
    EXPECT_NE(std::find(covered.begin(), covered.end(), entry.name), covered.end())
        << "layer " << entry.name << " has no gradient check: add a case to layer_cases.cpp";
}

}  // namespace
}  // namespace lockstep
