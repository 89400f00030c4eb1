// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every layer that takes 16-bit activations is compared with itself in float32, on inputs and weights that 16
// bits represent exactly. The results differ by the rounding of outputs and of kept values only.
#include <algorithm>

#include "layer_cases/layer_cases.h"
#include "model/layer_runner.h"

namespace lockstep {
namespace {

struct HalfCase {
  LayerCase layer;
  DType type;
};

bool takes(const LayerCase& test, DType type) {
  return layer_from(test.yaml)->traits().output_type(type, type) == type;
}

std::vector<HalfCase> half_cases() {
  std::vector<HalfCase> cases;
  for (const LayerCase& test : layer_cases())
    for (const DType type : {DType::bf16, DType::f16})
      if (takes(test, type)) cases.push_back({test, type});
  return cases;
}

void round_to(DType type, std::span<float> values) {
  with_type(type, [&]<typename T>(T) {
    for (float& value : values) value = to_float(from_float<T>(value));
  });
}

struct LayerRun {
  std::unique_ptr<Layer> layer;
  std::unique_ptr<LayerRunner> runner;
};

LayerRun run_in(const LayerCase& test, DType type, DType rounded_to) {
  LayerRun run{layer_from(test.yaml), nullptr};
  EXPECT_TRUE(!test.residual || run.layer->fuse(Fusible::addition));
  EXPECT_TRUE(!test.relu || run.layer->fuse(Fusible::relu));
  LayerRunnerOptions options = runner_options(test);
  options.type = type;
  run.runner = std::make_unique<LayerRunner>(*run.layer, test.inputs, options);
  LayerRunner& r = *run.runner;
  fill_inputs(test, r);
  for (int i = 0; i < r.num_inputs(); ++i)
    if (!test.fixed_inputs.contains(i)) round_to(rounded_to, r.input(i));
  for (std::size_t v = 0; v < r.variables().variables().size(); ++v) {
    const Tensor tensor = r.variables().tensor(static_cast<VariableId>(v));
    if (!r.variables().variables()[v].trainable) continue;
    auto values = random_floats(static_cast<std::size_t>(tensor.num_elements()),
                                static_cast<std::uint32_t>(100 + v), -0.5, 1.5);
    round_to(rounded_to, values);
    std::copy(values.begin(), values.end(), tensor.f32());
  }
  r.forward();
  for (int o = 0; o < r.num_outputs(); ++o) {
    r.output_gradient(o) = random_floats(r.output(o).size(), static_cast<std::uint32_t>(50 + o), -1, 1);
    round_to(rounded_to, r.output_gradient(o));
  }
  r.backward();
  return run;
}

/// Eight roundings, each half of the distance between neighbours at the largest number of the tensor:
/// attention rounds q, k, v, the heads' outputs, what it keeps, and the gradients of these before that of its
/// input.
void expect_near(std::span<const float> half, std::span<const float> full, DType type,
                 const std::string& what) {
  ASSERT_EQ(half.size(), full.size()) << what;
  double largest = 1e-3;
  for (float value : full) largest = std::max(largest, static_cast<double>(std::abs(value)));
  const double tolerance = 8 * (type == DType::bf16 ? 0x1p-8 : 0x1p-11) * largest;
  for (std::size_t i = 0; i < full.size(); ++i)
    ASSERT_NEAR(static_cast<double>(half[i]), static_cast<double>(full[i]), tolerance) << what << " " << i;
}

class LayerHalf : public testing::TestWithParam<HalfCase> {};

TEST_P(LayerHalf, MatchesFloat32WithinRounding) {
  const auto& [test, type] = GetParam();
  const LayerRun full = run_in(test, DType::f32, type), half = run_in(test, type, type);
  const LayerRunner &f = *full.runner, &h = *half.runner;
  for (int o = 0; o < f.num_outputs(); ++o) expect_near(h.output(o), f.output(o), type, "output");
  for (int i = 0; i < f.num_inputs(); ++i)
    expect_near(h.input_gradient(i), f.input_gradient(i), type, "input gradient");
  expect_near(h.gradients(), f.gradients(), type, "gradients of variables");
}

/// Were it computed in float32 by mistake, nothing would be rounded.
TEST_P(LayerHalf, OutputsHaveTheType) {
  const auto& [test, type] = GetParam();
  const LayerRun half = run_in(test, type, type);
  for (int o = 0; o < half.runner->num_outputs(); ++o) {
    std::vector<float> rounded = half.runner->output(o);
    round_to(type, rounded);
    EXPECT_EQ(rounded, half.runner->output(o));
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LayerHalf);
INSTANTIATE_TEST_SUITE_P(AllLayers, LayerHalf, testing::ValuesIn(half_cases()), [](const auto& one) {
  return one.param.layer.name + "_" + std::string(name_of(one.param.type));
});

}  // namespace
}  // namespace lockstep
