// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations other than relu: element-wise, through the device's primitives.
#include "model/layers/entries.h"

namespace lockstep {

namespace {

class Activation final : public Layer {
 public:
  Activation(std::string name, const char* kind, ActivationKind activation, float alpha)
      : Layer(std::move(name)), kind_(kind), activation_(activation), alpha_(alpha) {}
  const char* kind() const override { return kind_; }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1, ErrorKind::config, "layer {}: {} takes one input, not {}", name(),
                     kind_, inputs.size());
    elements_ = inputs[0].num_elements();
    return {inputs[0]};
  }
  void prepare(const PrepareContext& context) override {
    for (std::int64_t n : context.sample_counts)
      sized_.push_back({n, context.training,
                        context.kernels.make.activation(activation_, alpha_, n * elements_, context.training,
                                                        context.lanes)});
  }
  void forward(const Pass& pass) override {
    primitive(pass).forward(pass.lane, pass.inputs[0], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr) primitive(pass).backward(pass.lane, pass.dy[0], pass.inputs[0], pass.dx[0]);
  }

 private:
  struct Sized {
    std::int64_t n;
    bool training;
    std::unique_ptr<ActivationPrimitive> primitive;
  };
  const ActivationPrimitive& primitive(const Pass& pass) const {
    for (const Sized& sized : sized_)
      if (sized.n == pass.n && sized.training == pass.training) return *sized.primitive;
    LOCKSTEP_CHECK(false, "layer {} was not prepared for {} samples", name(), pass.n);
    return *sized_.front().primitive;
  }
  const char* kind_;
  ActivationKind activation_;
  float alpha_;
  std::int64_t elements_ = 0;
  std::vector<Sized> sized_;
};

constexpr ParamSpec kLeakyTable[] = {{"alpha", ParamType::real, "0.2", "[0, 1)", "slope for x < 0"}};
constexpr ParamSpec kEluTable[] = {{"alpha", ParamType::real, "1.0", "> 0", "factor for x < 0"}};
constexpr ParamSpec kGeluTable[] = {
    {"approximate", ParamType::boolean, "false", "", "the tanh form instead of erf"}};

std::unique_ptr<Layer> made(std::string name, const char* kind, ActivationKind activation, double alpha = 0) {
  return std::make_unique<Activation>(std::move(name), kind, activation, static_cast<float>(alpha));
}
using Made = std::unique_ptr<Layer>;

}  // namespace

const LayerEntry kLeakyReluLayer = {
    "leaky_relu", "x, or alpha x for x < 0", kLeakyTable, [](std::string name, const Params& p) -> Made {
      return made(std::move(name), "leaky_relu", ActivationKind::leaky_relu, p.real("alpha"));
    }};
const LayerEntry kRelu6Layer = {
    "relu6", "min(max(x, 0), 6)", {}, [](std::string name, const Params&) -> Made {
      return made(std::move(name), "relu6", ActivationKind::relu6);
    }};
const LayerEntry kEluLayer = {"elu", "x, or alpha (exp(x) - 1) for x < 0", kEluTable,
                              [](std::string name, const Params& p) -> Made {
                                return made(std::move(name), "elu", ActivationKind::elu, p.real("alpha"));
                              }};
const LayerEntry kGeluLayer = {
    "gelu", "x times the normal distribution function of x", kGeluTable,
    [](std::string name, const Params& p) -> Made {
      return made(std::move(name), "gelu",
                  p.boolean("approximate") ? ActivationKind::gelu_tanh : ActivationKind::gelu_erf);
    }};
const LayerEntry kSiluLayer = {"silu", "x sigmoid(x)", {}, [](std::string name, const Params&) -> Made {
                                 return made(std::move(name), "silu", ActivationKind::silu);
                               }};
const LayerEntry kTanhLayer = {"tanh", "hyperbolic tangent", {}, [](std::string name, const Params&) -> Made {
                                 return made(std::move(name), "tanh", ActivationKind::tanh);
                               }};
const LayerEntry kSigmoidLayer = {
    "sigmoid", "1 / (1 + exp(-x))", {}, [](std::string name, const Params&) -> Made {
      return made(std::move(name), "sigmoid", ActivationKind::sigmoid);
    }};
const LayerEntry kSoftplusLayer = {
    "softplus", "log(1 + exp(x))", {}, [](std::string name, const Params&) -> Made {
      return made(std::move(name), "softplus", ActivationKind::softplus);
    }};

}  // namespace lockstep
