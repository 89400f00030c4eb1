// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizers with variables on a GPU: initial values of slots, and rules that work on host memory only.
#include <gtest/gtest.h>

#include <algorithm>

#include "config/yaml_node.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "optim/optimizer.h"
#include "optim/optimizer_options.h"
#include "optim/update_context.h"
#include "optim/update_rule.h"
#include "support/error_support.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaOptimizer : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    device_ = &cuda_backend().open(0);
    id_ = variables_.declare("w", Shape{20}, make_initializer("ones"));
    variables_.commit(*device_);
    variables_.initialize(1);
  }
  Device* device_ = nullptr;
  VariableStore variables_;
  VariableId id_ = VariableId::none;
};

TEST_F(CudaOptimizer, SlotsBeginAtTheirValuesOnTheGpu) {
  const auto optimizer =
      optimizer_options(parse_yaml("rmsprop: {learning_rate: 0.1, momentum: 0.5}", "test")).make();
  optimizer->create_slots(*device_, variables_);
  optimizer->slots().device_changed();  // so that slot_tensor() copies from the GPU
  for (const auto& [slot, expected] : {std::pair{0U, 1.0F}, std::pair{1U, 0.0F}}) {
    const Tensor values = optimizer->slots().tensor(slot, variables_[id_]);
    EXPECT_TRUE(std::all_of(values.f32(), values.f32() + 20, [&](float v) { return v == expected; })) << slot;
  }
}

/// Norms, rates and directions stay on the GPU.
TEST_F(CudaOptimizer, LarsLambAndGroupsHaveTheBitsOfTheCpu) {
  for (const char* yaml :
       {"lars: {learning_rate: 2, weight_decay: 0.1, nesterov: true}", "lamb: {learning_rate: 0.1}",
        "lamb: {norm_limits: [1, 2], adapt_vectors: true}",
        "{adam: {weight_decay: 0.1}, groups: [{variables: vector, learning_rate_factor: 3, weight_decay: 0}, "
        "{variables: odd, rule: {rmsprop: {learning_rate: 0.1, momentum: 0.5}}}]}",
        "{adam: {}, groups: [{variables: matrix, rule: {lamb: {learning_rate: 0.1}}}]}"}) {
    std::uint64_t hashes[2];
    for (const bool on_gpu : {false, true}) {
      Device& device = on_gpu ? *device_ : cpu_device();
      VariableStore variables;
      variables.declare("vector", Shape{37}, make_initializer("ones"));
      variables.declare("matrix", Shape{97, 101}, make_initializer("he_normal"));
      variables.declare("odd", Shape{3, 3}, make_initializer("he_normal"));
      variables.commit(device);
      variables.initialize(1);
      const auto optimizer = optimizer_options(parse_yaml(yaml, "test")).make();
      optimizer->create_slots(device, variables);
      ThreadPool pool(1);
      const CudaLane gpu_lane;
      std::vector<Lane> lanes{on_gpu ? Lane(gpu_lane) : Lane{}};
      const KernelTable& kernels = on_gpu ? gpu() : cpu_kernels();
      const std::int64_t count = variables.trainable_elements();
      for (std::uint32_t step = 0; step < 3; ++step) {
        const Values values = random_values(count, 6 + step);
        const Floats on_cpu(values);
        const DeviceFloats copied(values);
        const float* const gradients = on_gpu ? copied.data() : on_cpu.data();
        optimizer->begin_step(step);
        optimizer->measure({variables, kernels, device, pool, lanes}, gradients);
        optimizer->update(kernels, lanes.front(), variables, gradients, {0, count});
        cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      }
      variables.device_changed();
      hashes[on_gpu ? 1 : 0] = variables.hash();
    }
    EXPECT_EQ(hashes[0], hashes[1]) << yaml;
  }
}

class OnHost final : public UpdateRule {
 public:
  OnHost() : UpdateRule(ScheduledNumber(Node::scalar("1"), "learning_rate", kRateRange)) {}
  const char* kind() const override { return "on_host"; }
  void update(const KernelTable&, const Lane&, const VariableStore&, const float*, Range) const override {}
};

TEST_F(CudaOptimizer, ARuleForHostMemoryIsRefused) {
  EXPECT_NO_THROW(Optimizer(std::make_unique<OnHost>()).create_slots(cpu_device(), VariableStore()));
  const std::string message =
      testing::message_of([&] { Optimizer(std::make_unique<OnHost>()).create_slots(*device_, variables_); });
  EXPECT_NE(message.find("the optimizer on_host updates variables in host memory only"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace lockstep
