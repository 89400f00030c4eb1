// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every layer on a GPU beside the same layer on the CPU: outputs, gradients of inputs and variables, and what
// it moves. That a layer is here at all is the doing of layer_cases, which have every entry of the layer
// table.
#include "model/layer_runner.h"

#include <cmath>

#include "core/named_options.h"
#include "cuda_testing.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "unit/model/layer_cases/layer_cases.h"

namespace lockstep {
namespace {

class LayerOnGpu : public GpuTest, public testing::WithParamInterface<LayerCase> {};

struct LayerRun {
  std::unique_ptr<Layer> layer;
  std::unique_ptr<LayerRunner> runner;
};

LayerRun made(const LayerCase& test, Device* device, const KernelTable* kernels) {
  LayerRun run{layer_from(test.yaml), nullptr};
  EXPECT_TRUE(!test.residual || run.layer->fuse_residual());
  EXPECT_TRUE(!test.relu || run.layer->fuse_relu());
  LayerRunnerOptions options = runner_options(test);
  options.device = device;
  options.kernels = kernels;
  run.runner = std::make_unique<LayerRunner>(*run.layer, test.inputs, options);
  LayerRunner& r = *run.runner;
  fill_inputs(test, r);
  for (std::size_t v = 0; v < r.variables().variables().size(); ++v) {
    const Tensor tensor = r.variables().tensor(static_cast<VariableId>(v));
    if (!r.variables().variables()[v].trainable) continue;
    const auto values = random_floats(static_cast<std::size_t>(tensor.num_elements()),
                                      static_cast<std::uint32_t>(100 + v), -0.5, 1.5);
    std::copy(values.begin(), values.end(), tensor.f32());
  }
  r.variables().to_device();
  r.forward();
  for (int o = 0; o < r.num_outputs(); ++o)
    r.output_gradient(o) = random_floats(r.output(o).size(), static_cast<std::uint32_t>(50 + o), -1, 1);
  r.backward();
  return run;
}

/// Sums of up to some thousand products of numbers around one, each rounded once: the square root of their
/// number times half a unit, with room for a factor of eight, relative to the largest number of the tensor.
void expect_near(std::span<const float> gpu, std::span<const float> cpu, const std::string& what) {
  ASSERT_EQ(gpu.size(), cpu.size()) << what;
  double largest = 1e-3;
  for (float value : cpu) largest = std::max(largest, static_cast<double>(std::abs(value)));
  const double tolerance = 8 * std::sqrt(4096.0) * 6e-8 * largest;
  for (std::size_t i = 0; i < cpu.size(); ++i)
    ASSERT_NEAR(static_cast<double>(gpu[i]), static_cast<double>(cpu[i]), tolerance) << what << " " << i;
}

TEST_P(LayerOnGpu, IsTheCpusWithinRoundingAndHasTheSameBitsTwice) {
  const LayerCase& test = GetParam();
  Device& device = cuda_backend().open(0);
  const KernelTable& kernels = cuda_backend().kernels({});
  const LayerRun cpu = made(test, nullptr, nullptr), gpu = made(test, &device, &kernels);
  const LayerRun again = made(test, &device, &kernels);
  LayerRunner &c = *cpu.runner, &g = *gpu.runner, &a = *again.runner;
  for (int o = 0; o < c.num_outputs(); ++o) {
    expect_near(g.output(o), c.output(o), test.name + " output");
    expect_same(a.output(o), g.output(o), test.name + " output, again");
  }
  for (int i = 0; i < c.num_inputs(); ++i) {
    expect_near(g.input_gradient(i), c.input_gradient(i), test.name + " input gradient");
    expect_same(a.input_gradient(i), g.input_gradient(i), test.name + " input gradient, again");
  }
  expect_near(g.gradients(), c.gradients(), test.name + " gradients of variables");
  expect_same(a.gradients(), g.gradients(), test.name + " gradients of variables, again");
  expect_near(g.variables().other_values(), c.variables().other_values(), test.name + " running statistics");
}

INSTANTIATE_TEST_SUITE_P(AllLayers, LayerOnGpu, testing::ValuesIn(layer_cases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace lockstep
