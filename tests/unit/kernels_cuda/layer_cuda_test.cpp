// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every layer on a GPU compared with the same layer on the CPU: outputs, gradients of inputs and variables,
// and running statistics. layer_cases provides every entry of the layer table.
#include "model/layer_runner.h"

#include <cmath>

#include "config/named_options.h"
#include "cuda_testing.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "unit/model/layer_cases/layer_cases.h"

namespace lockstep {
namespace {

struct GpuCase {
  LayerCase layer;
  DType type;
};

/// In float32, and in the 16-bit types that the layer supports.
std::vector<GpuCase> gpu_cases() {
  std::vector<GpuCase> cases;
  for (const LayerCase& test : layer_cases())
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
      if (layer_from(test.yaml)->traits().output_type(type, type) == type) cases.push_back({test, type});
  return cases;
}

class LayerOnGpu : public GpuTest, public testing::WithParamInterface<GpuCase> {};

struct LayerRun {
  std::unique_ptr<Layer> layer;
  std::unique_ptr<LayerRunner> runner;
};

LayerRun made(const GpuCase& one, Device* device, const KernelTable* kernels) {
  const LayerCase& test = one.layer;
  LayerRun run{layer_from(test.yaml), nullptr};
  EXPECT_TRUE(!test.residual || run.layer->fuse(Fusible::addition));
  EXPECT_TRUE(!test.relu || run.layer->fuse(Fusible::relu));
  LayerRunnerOptions options = runner_options(test);
  options.device = device;
  options.kernels = kernels;
  options.type = one.type;
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

/// The bound for sums of up to some thousand products of numbers around one, each rounded once: the square
/// root of their number times half a unit, times a margin of eight, relative to the largest number of the
/// tensor. In a 16-bit type, such a difference can change a rounding of the results or of intermediate
/// values, up to eight of them in attention.
void expect_near(std::span<const float> gpu, std::span<const float> cpu, DType type,
                 const std::string& what) {
  ASSERT_EQ(gpu.size(), cpu.size()) << what;
  double largest = 1e-3;
  for (float value : cpu) largest = std::max(largest, static_cast<double>(std::abs(value)));
  const double rounding = type == DType::f32 ? 0.0 : type == DType::bf16 ? 0x1p-8 : 0x1p-11;
  const double tolerance = (8 * std::sqrt(4096.0) * 6e-8 + 8 * rounding) * largest;
  for (std::size_t i = 0; i < cpu.size(); ++i)
    ASSERT_NEAR(static_cast<double>(gpu[i]), static_cast<double>(cpu[i]), tolerance) << what << " " << i;
}

TEST_P(LayerOnGpu, MatchesTheCpuAndRepeatsItsBits) {
  const auto& [test, type] = GetParam();
  Device& device = cuda_backend().open(0);
  const KernelTable& kernels = cuda_backend().kernels({});
  const LayerRun cpu = made(GetParam(), nullptr, nullptr), gpu = made(GetParam(), &device, &kernels);
  const LayerRun again = made(GetParam(), &device, &kernels);
  LayerRunner &c = *cpu.runner, &g = *gpu.runner, &a = *again.runner;
  for (int o = 0; o < c.num_outputs(); ++o) {
    expect_near(g.output(o), c.output(o), type, test.name + " output");
    expect_same(a.output(o), g.output(o), test.name + " output, again");
  }
  for (int i = 0; i < c.num_inputs(); ++i) {
    expect_near(g.input_gradient(i), c.input_gradient(i), type, test.name + " input gradient");
    expect_same(a.input_gradient(i), g.input_gradient(i), test.name + " input gradient, again");
  }
  expect_near(g.gradients(), c.gradients(), type, test.name + " gradients of variables");
  expect_same(a.gradients(), g.gradients(), test.name + " gradients of variables, again");
  expect_near(g.variables().other_values(), c.variables().other_values(), type,
              test.name + " running statistics");
}

INSTANTIATE_TEST_SUITE_P(AllLayers, LayerOnGpu, testing::ValuesIn(gpu_cases()), [](const auto& one) {
  const GpuCase& test = one.param;
  return test.type == DType::f32 ? test.layer.name
                                 : fmt::format("{}_{}", test.layer.name, name_of(test.type));
});

}  // namespace
}  // namespace lockstep
