// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizers with variables on a GPU: initial values of slots, and rules that work on host memory only.
#include <gtest/gtest.h>

#include <algorithm>

#include "driver/config/yaml_node.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "optim/optimizer.h"
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
  optimizer->device_changed();  // so that slot_tensor() copies from the GPU
  for (const auto& [slot, expected] : {std::pair{0U, 1.0F}, std::pair{1U, 0.0F}}) {
    const Tensor values = optimizer->slot_tensor(slot, variables_[id_]);
    EXPECT_TRUE(std::all_of(values.f32(), values.f32() + 20, [&](float v) { return v == expected; })) << slot;
  }
}

class OnHost final : public Optimizer {
 public:
  explicit OnHost(const Params& p) : Optimizer(p) {}
  const char* kind() const override { return "on_host"; }
  void update(const KernelTable&, const Lane&, const VariableStore&, const float*, Range) const override {}
};

TEST_F(CudaOptimizer, ARuleForHostMemoryIsRefused) {
  static constexpr ParamSpec kOptions[] = {{"learning_rate", ParamType::node, "1", "", ""}};
  OnHost rule(Params(Node{}, kOptions, "optimizer on_host"));
  EXPECT_NO_THROW(rule.create_slots(cpu_device(), VariableStore()));
  const std::string message = testing::message_of(
      [&] { OnHost(Params(Node{}, kOptions, "optimizer on_host")).create_slots(*device_, variables_); });
  EXPECT_NE(message.find("the optimizer on_host updates variables in host memory only"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace lockstep
