// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Fusion does not change results: a net is compared with the same net in which a layer in between prevents
// every fusion. And gradients of values with several readers are compared with central differences of the
// whole net's loss.
#include <gtest/gtest.h>

#include <cstring>

#include "comm/self_communicator.h"
#include "model/gradient_check.h"
#include "model_testing.h"
#include "support/one_step.h"

namespace lockstep {
namespace {

/// y = x, as a layer that nothing fuses with.
class Through final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override { return {.kind = "through", .backward_reads_input = false}; }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    elements_ = inputs[0].num_elements();
    return {inputs[0]};
  }
  void forward(const Pass& pass) override { copy(pass, pass.inputs[0], pass.outputs[0]); }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr) copy(pass, pass.dy[0], pass.dx[0]);
  }

 private:
  void copy(const Pass& pass, const float* from, float* to) const {
    std::memcpy(to, from, static_cast<std::size_t>(pass.n * elements_) * sizeof(float));
  }
  std::int64_t elements_ = 0;
};

/// Two outputs: x and x squared.
class Powers final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override { return {.kind = "powers"}; }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    elements_ = inputs[0].num_elements();
    return {inputs[0], inputs[0]};
  }
  void forward(const Pass& pass) override {
    for (std::int64_t i = 0; i < pass.n * elements_; ++i) {
      pass.outputs[0][i] = pass.inputs[0][i];
      pass.outputs[1][i] = pass.inputs[0][i] * pass.inputs[0][i];
    }
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] == nullptr) return;
    for (std::int64_t i = 0; i < pass.n * elements_; ++i)
      pass.dx[0][i] = pass.dy[0][i] + 2 * pass.inputs[0][i] * pass.dy[1][i];
  }

 private:
  std::int64_t elements_ = 0;
};

/// When a test needs them, so that other tests of the program see the layers of Lockstep alone.
void register_once() {
  if (layer_table().find("powers") != nullptr) return;
  layer_table().add(
      {"powers", "x and x squared", {}, [](std::string name, const Params&) -> std::unique_ptr<Layer> {
         return std::make_unique<Powers>(std::move(name));
       }});
  layer_table().add(
      {"through", "the input", {}, [](std::string name, const Params&) -> std::unique_ptr<Layer> {
         return std::make_unique<Through>(std::move(name));
       }});
}

/// "@name" stands for a `through` of that name (unfused) or for nothing; "a|b" is a without it, b with it.
std::string variant(const std::string& text, bool fused) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at) + 1;
    std::string line = text.substr(at, end - at);
    at = end;
    if (line.starts_with("@")) {
      if (!fused) result += "- through: {name: " + line.substr(1, line.size() - 2) + "}\n";
      continue;
    }
    for (std::size_t bar = line.find('|'); bar != std::string::npos; bar = line.find('|')) {
      const std::size_t first = line.find_last_of(" [", bar) + 1, last = line.find_first_of(",]}", bar);
      const std::string chosen =
          fused ? line.substr(first, bar - first) : line.substr(bar + 1, last - bar - 1);
      line.replace(first, last - first, chosen);
    }
    result += line;
  }
  return result;
}

constexpr const char* kResNet = R"(- conv2d: {name: stem, filters: 4, kernel: 3, bias: false}
- batch_norm: {name: bn0}
@t0
- relu: {name: r0}
- conv2d: {name: c1, filters: 4, kernel: 3, bias: false}
- batch_norm: {name: bn1}
@t1
- relu: {name: r1}
- conv2d: {name: c2, filters: 4, kernel: 3, bias: false}
- batch_norm: {name: bn2}
@t2
- add: {name: sum, inputs: [bn2|t2, r0]}
@t3
- relu: {name: r2}
- conv2d: {name: c3, filters: 6, kernel: 3, stride: 2, bias: false}
- batch_norm: {name: bn3}
- conv2d: {name: shortcut, inputs: [r2], filters: 6, kernel: 1, stride: 2, bias: false}
- batch_norm: {name: bn4}
@t4
- add: {name: sum2, inputs: [bn3, bn4|t4]}
@t5
- relu: {name: r3}
- global_avg_pool
- dense: {name: logits, units: 3}
)";
constexpr const char* kPlain = R"(- conv2d: {name: c1, filters: 4, kernel: 3}
@t0
- relu: {name: r1}
- conv2d: {name: c2, filters: 4, kernel: 3, bias: false}
@t1
- relu: {name: r2}
- max_pool
- flatten
- dense: {name: d1, units: 8}
@t2
- relu: {name: r3}
- dense: {name: d2, units: 5}
- tanh: {name: a, inputs: [d2]}
- sigmoid: {name: b, inputs: [d2]}
- add: {name: sum, inputs: [a, b]}
@t3
- relu: {name: r4}
- dense: {name: logits, units: 3}
)";

struct Batch {
  std::vector<float> features;
  std::vector<std::int32_t> labels;
};
Batch batch_of(std::int64_t n, std::int64_t elements) {
  Batch batch{random_floats(static_cast<std::size_t>(n * elements), 5, -1, 2), {}};
  for (std::int64_t i = 0; i < n; ++i) batch.labels.push_back(static_cast<std::int32_t>(i % 3));
  return batch;
}

std::unique_ptr<OneStep> step_of(const std::string& yaml, const Shape& features,
                                 std::vector<std::int64_t> sizes) {
  static SelfCommunicator self;
  register_once();
  return std::make_unique<OneStep>(self, 1, std::make_unique<Graph>(graph_from(yaml, features)),
                                   make_loss(Node::scalar("softmax_cross_entropy")), std::move(sizes));
}

void expect_same_when_fused(const char* text, std::size_t fused_calls) {
  register_once();
  const Shape features{6, 6, 2};
  const std::vector<std::int64_t> sizes = {3, 0, 2, 4};
  const Batch batch = batch_of(9, features.num_elements());
  const auto fused = step_of(variant(text, true), features, sizes),
             plain = step_of(variant(text, false), features, sizes);
  EXPECT_EQ(fused->graph().calls(true).operations.size(), fused_calls);
  EXPECT_GT(plain->graph().calls(true).operations.size(), fused_calls + 5);
  ASSERT_EQ(fused->variables().hash(), plain->variables().hash());
  const auto left = fused->run(batch.features, batch.labels),
             right = plain->run(batch.features, batch.labels);
  EXPECT_NEAR(left.loss, right.loss, 1e-6 * right.loss);
  EXPECT_EQ(left.accuracy, right.accuracy);
  // Sums over 9 x 36 positions.
  for (const Variable& variable : fused->variables().variables()) {
    const auto elements = static_cast<std::size_t>(variable.shape.num_elements());
    const VariableId id = fused->variables().find(variable.name);
    const float* a =
        variable.trainable ? left.gradient.data() + variable.offset : fused->variables().value(id);
    const float* b =
        variable.trainable ? right.gradient.data() + variable.offset : plain->variables().value(id);
    expect_close(std::vector<float>(a, a + elements), Values(b, b + elements), 8 * 18 * 0x1p-24,
                 variable.name);
  }
}

TEST(Fusion, ResidualBlocks) { expect_same_when_fused(kResNet, 12); }
TEST(Fusion, PlainBlocks) { expect_same_when_fused(kPlain, 9); }

/// Central differences of the float32 net's loss, in the variables: noise 1e-7 over a step of 1e-2.
void expect_gradient_of_loss(const std::string& yaml) {
  const Shape features{3, 3, 2};
  const auto step = step_of(yaml, features, {3, 2});
  const Batch batch = batch_of(5, features.num_elements());
  VariableStore& variables = step->variables();
  const auto values = variables.trainable_values();
  std::vector<std::size_t> places;
  for (const Variable& variable : variables.variables())
    for (std::int64_t i = 0; variable.trainable && i < variable.shape.num_elements(); ++i)
      places.push_back(static_cast<std::size_t>(variable.offset + i));
  const auto start = random_floats(places.size(), 8, -0.7, 0.9);
  for (std::size_t i = 0; i < places.size(); ++i) values[places[i]] = start[i];
  const auto gradient = step->run(batch.features, batch.labels).gradient;
  std::vector<float> own;
  for (std::size_t place : places) own.push_back(gradient[place]);
  const auto loss = [&](std::span<const double> at) {
    for (std::size_t i = 0; i < places.size(); ++i) values[places[i]] = static_cast<float>(at[i]);
    return step->run(batch.features, batch.labels).loss;
  };
  const GradientCheck check =
      check_gradient(loss, doubles(start), own, {.tolerance = 5e-3, .step = 1e-2, .gradient_noise = 1e-3});
  EXPECT_TRUE(check.passed()) << check.to_string() << "\n" << yaml;
  EXPECT_EQ(check.checked, static_cast<std::int64_t>(places.size()));
}

TEST(SeveralReaders, PlainValue) {
  for (const char* readers :
       {"- add: {name: sum, inputs: [t, t]}\n",
        "- dense: {name: a, inputs: [t], units: 4}\n- add: {name: sum, inputs: [a, t]}\n",
        "- dense: {name: a, inputs: [t], units: 4}\n- sigmoid: {name: b, inputs: [t]}\n"
        "- add: {name: ab, inputs: [a, b]}\n- add: {name: sum, inputs: [ab, t]}\n"})
    expect_gradient_of_loss(std::string("- flatten\n- dense: {units: 4}\n- tanh: {name: t}\n") + readers +
                            "- dense: {units: 3}\n");
}

TEST(SeveralReaders, BatchNorm) {
  for (const char* readers : {"- tanh: {name: a, inputs: [t]}\n- add: {name: sum, inputs: [a, t]}\n",
                              "- add: {name: sum, inputs: [t, t]}\n",
                              "- tanh: {name: a, inputs: [t]}\n- sigmoid: {name: b, inputs: [t]}\n"
                              "- add: {name: ab, inputs: [a, b]}\n- add: {name: sum, inputs: [ab, t]}\n"})
    expect_gradient_of_loss(
        std::string("- conv2d: {filters: 3, kernel: 2, bias: false}\n- batch_norm: {name: t}\n") + readers +
        "- flatten\n- dense: {units: 3}\n");
}

/// A fused residual whose other operand has a second reader, and one that is the batch norm's own input.
TEST(SeveralReaders, Residual) {
  expect_gradient_of_loss(R"(
- conv2d: {name: stem, filters: 3, kernel: 2}
- tanh: {name: t}
- conv2d: {name: c, filters: 3, kernel: 2, bias: false}
- batch_norm: {name: bn}
- add: {name: sum, inputs: [bn, t]}
- tanh: {name: u}
- add: {name: again, inputs: [u, t]}
- flatten
- dense: {units: 3}
)");
  expect_gradient_of_loss(R"(
- conv2d: {name: stem, filters: 3, kernel: 2}
- batch_norm: {name: bn}
- add: {name: sum, inputs: [bn, stem]}
- flatten
- dense: {units: 3}
)");
}

TEST(SeveralOutputs, EachHasItsOwnGradient) {
  Powers powers("powers");
  const auto checks = check_layer(powers, {Shape{5}});
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_TRUE(checks[0].passed()) << checks[0].to_string();
  expect_gradient_of_loss(R"(
- flatten
- dense: {units: 4}
- powers: {name: p}
- tanh: {name: a, inputs: [p]}
- sigmoid: {name: b, inputs: ["p:1"]}
- add: {name: ab, inputs: [a, b]}
- add: {name: sum, inputs: [ab, "p:1"]}
- dense: {units: 3}
)");
}

}  // namespace
}  // namespace lockstep
