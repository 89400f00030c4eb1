// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Graphs whose gradients take unusual paths: variables that several layers use, a branch that stops the
// gradient, an unused output. The gradients must equal central differences of the loss, and the bits those of
// one rank with one thread.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/self_communicator.h"
#include "config/yaml_node.h"
#include "core/philox.h"
#include "support/mpi_world.h"
#include "support/one_step.h"

namespace lockstep {
namespace {

/// y = x, z = 2 x. Optionally stops the gradient.
class Doubled final : public Layer {
 public:
  Doubled(std::string name, bool stops) : Layer(std::move(name)), stops_(stops) {}
  LayerTraits traits() const override { return {.kind = "doubled", .stops_gradient = stops_}; }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    elements_ = inputs[0].num_elements();
    return {inputs[0], inputs[0]};
  }
  void forward(const Pass& pass) override {
    for (int o = 0; o < 2; ++o)
      pass.kernels.elementwise.scale(pass.lane, pass.n * elements_, static_cast<float>(o + 1), pass.inputs[0],
                                     pass.outputs[o]);
  }
  void backward(const Pass& pass) override {
    ASSERT_FALSE(stops_) << "no gradient may arrive here";
    ASSERT_EQ(pass.dy[0], nullptr) << "the first output is unused";
    ASSERT_NE(pass.dy[1], nullptr);
    if (pass.dx[0] != nullptr)
      pass.kernels.elementwise.scale(pass.lane, pass.n * elements_, 2.0F, pass.dy[1], pass.dx[0]);
  }

 private:
  bool stops_;
  std::int64_t elements_ = 0;
};

constexpr std::int64_t kWidth = 5;

void add(Graph& graph, const std::string& yaml) {
  for (LayerDraft& draft : layers_from_config(parse_yaml("[" + yaml + "]", "test")))
    graph.add(std::move(draft.layer), draft.inputs, draft.where, draft.shared_with);
}

/// The tower is used three times: once on its own output and once on the doubled features.
std::unique_ptr<Graph> siamese() {
  auto graph = std::make_unique<Graph>(Shape{kWidth});
  add(*graph, "dense: {name: tower, units: 5}");
  add(*graph, "tanh: {name: t1}");
  add(*graph, "dense: {name: again, units: 5, shared_with: tower}");
  add(*graph, "tanh: {name: t2}");
  graph->add(std::make_unique<Doubled>("twice", false), {"t1"});
  add(*graph, "dense: {name: other, units: 5, shared_with: again, inputs: ['twice:1']}");
  add(*graph, "tanh: {name: t3}");
  add(*graph, "add: {name: sum, inputs: [t2, t3]}");
  add(*graph, "dense: {name: logits, units: 3}");
  return graph;
}

/// `frozen` has variables, but its branch is stopped. `passed` is before the stop and also on another path.
std::unique_ptr<Graph> stopped() {
  auto graph = std::make_unique<Graph>(Shape{kWidth});
  add(*graph, "dense: {name: passed, units: 5}");
  add(*graph, "dense: {name: frozen, units: 5}");
  add(*graph, "tanh: {name: t}");
  graph->add(std::make_unique<Doubled>("stop", true), {"t"});
  add(*graph, "add: {name: sum, inputs: [passed, 'stop:1']}");
  add(*graph, "dense: {name: logits, units: 3}");
  return graph;
}

const std::vector<std::int64_t> kSizes = {3, 0, 1, 4};

struct Batch {
  OneStep step;
  std::vector<float> features;
  std::vector<std::int32_t> labels;

  Batch(Communicator& world, int threads, std::unique_ptr<Graph> graph)
      : step(world, threads, std::move(graph), make_loss(Node::scalar("softmax_cross_entropy")), kSizes) {
    for (std::int64_t i = 0; i < 8 * kWidth; ++i)
      features.push_back(philox_uniform(philox_words(1, 2, 3, 4, static_cast<std::uint32_t>(i))[0]) - 0.5F);
    for (std::int32_t i = 0; i < 8; ++i) labels.push_back(i % 3);
  }
  OneStep::Result operator()() { return step.run(features, labels); }
};

void expect_central_differences(std::unique_ptr<Graph> graph) {
  SelfCommunicator self;
  Batch run(self, 1, std::move(graph));
  const std::vector<float> gradient = run().gradient;
  for (const Variable& variable : run.step.variables().variables()) {
    for (std::int64_t i = 0; i < variable.shape.num_elements(); ++i) {
      float& w = run.step.variables().trainable_values()[static_cast<std::size_t>(variable.offset + i)];
      const auto analytic = static_cast<double>(gradient[static_cast<std::size_t>(variable.offset + i)]);
      const float before = w;
      constexpr float kStep = 0x1p-6F;
      w = before + kStep;
      const double above = run().loss;
      w = before - kStep;
      const double below = run().loss;
      w = before;
      EXPECT_NEAR(analytic, (above - below) / (2 * static_cast<double>(kStep)), 2e-4)
          << variable.name << " " << i;
    }
  }
}

void expect_same_bits(std::unique_ptr<Graph> (*graph)()) {
  SelfCommunicator self;
  const OneStep::Result alone = Batch(self, 1, graph())();
  for (const int threads : {1, 2}) {
    const OneStep::Result here = Batch(test_world(), threads, graph())();
    EXPECT_EQ(here.loss, alone.loss);
    EXPECT_EQ(here.gradient, alone.gradient);
  }
}

TEST(SharedVariables, GradientSumsAllUses) { expect_central_differences(siamese()); }
TEST(SharedVariables, SameBitsAsOneRank) { expect_same_bits(siamese); }
TEST(SharedVariables, AreDeclaredOnce) {
  SelfCommunicator self;
  Batch run(self, 1, siamese());
  EXPECT_EQ(run.step.variables().variables().size(), 4U);
  EXPECT_EQ(run.step.variables().num_parameters(), 5 * 5 + 5 + 5 * 3 + 3);
}

/// No gradient comes to `frozen`, but the loss depends on it. Central differences therefore do not apply.
TEST(StoppedGradient, GradientBeforeTheStopIsNone) {
  SelfCommunicator self;
  Batch run(self, 1, stopped());
  const OneStep::Result result = run();
  double moved = 0;
  for (const Variable& variable : run.step.variables().variables()) {
    EXPECT_EQ(variable.frozen, variable.name.starts_with("frozen/")) << variable.name;
    EXPECT_EQ(variable.trainable, !variable.frozen) << variable.name;
    for (std::int64_t i = 0; variable.trainable && i < variable.shape.num_elements(); ++i)
      moved += std::abs(static_cast<double>(result.gradient[static_cast<std::size_t>(variable.offset + i)]));
  }
  EXPECT_EQ(result.gradient.size(), static_cast<std::size_t>(run.step.variables().trainable_elements()))
      << "a frozen variable takes no part in the sum over ranks";
  EXPECT_GT(moved, 0.1);
}
TEST(StoppedGradient, SameBitsAsOneRank) { expect_same_bits(stopped); }

}  // namespace
}  // namespace lockstep
