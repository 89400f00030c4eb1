// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations that are a function of each element: relu, which other layers can fuse, and the others.
#include "config/option.h"
#include "model/axes.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

class Relu final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override {
    return {.kind = "relu",
            .inputs = TypeRule::model,
            .outputs = TypeRule::model,
            .fusible = Fusible::relu,
            .backward_reads_input = false,
            .backward_reads_output = true};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    elements_ = inputs[0].num_elements();
    return {inputs[0]};
  }
  void forward(const Pass& pass) override {
    pass.kernels.elementwise.relu(pass.lane, pass.n * elements_, pass.inputs[0], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr)
      pass.kernels.elementwise.relu_backward(pass.lane, pass.n * elements_, pass.dy[0], pass.outputs[0],
                                             pass.dx[0]);
  }

 private:
  std::int64_t elements_ = 0;
};

class ActivationLayer final : public Layer {
 public:
  ActivationLayer(std::string name, const char* kind, Activation activation)
      : Layer(std::move(name)), kind_(kind), activation_(activation) {}
  LayerTraits traits() const override {
    return {.kind = kind_, .inputs = TypeRule::model, .outputs = TypeRule::model};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    elements_ = inputs[0].num_elements();
    return {inputs[0]};
  }
  void forward(const Pass& pass) override {
    pass.kernels.activation.forward(pass.lane, activation_, pass.n * elements_, pass.inputs[0],
                                    pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr)
      pass.kernels.activation.backward(pass.lane, activation_, pass.n * elements_, pass.dy[0], pass.inputs[0],
                                       pass.dx[0]);
  }

 private:
  const char* kind_;
  Activation activation_;
  std::int64_t elements_ = 0;
};

struct LeakyReluOptions {
  double alpha = 0;
};
constexpr ParamSpec kLeakyTable[] = {
    option<&LeakyReluOptions::alpha>("alpha", "0.2", at_least(0).below(1), "slope for x < 0")};
struct EluOptions {
  double alpha = 0;
};
constexpr ParamSpec kEluTable[] = {
    option<&EluOptions::alpha>("alpha", "1.0", above(0).up_to(1e6), "factor for x < 0")};
struct GeluOptions {
  bool approximate = false;
};
constexpr ParamSpec kGeluTable[] = {
    option<&GeluOptions::approximate>("approximate", "false", {}, "the tanh form instead of erf")};
struct TanhOptions {
  double scale = 0;
  double slope = 0;
};
constexpr ParamSpec kTanhTable[] = {
    option<&TanhOptions::scale>("scale", "1.0", above(0).up_to(1e6), "what the output is multiplied by"),
    option<&TanhOptions::slope>("slope", "1.0", above(0).up_to(1e6), "what x is multiplied by")};
// Klambauer et al. 2017, arXiv:1706.02515, section 2: these values keep mean 0 and variance 1.
constexpr double kSeluAlpha = 1.6732632423543772848, kSeluScale = 1.0507009873554804934;

using Made = std::unique_ptr<Layer>;
Made made(std::string name, const char* kind, ActivationKind activation, double alpha = 1, double beta = 1) {
  return std::make_unique<ActivationLayer>(
      std::move(name), kind, Activation{activation, static_cast<float>(alpha), static_cast<float>(beta)});
}

}  // namespace

extern const LayerEntry kReluLayer = {"relu", "max(x, 0)", {}, make_layer<Relu>};
extern const LayerEntry kLeakyReluLayer = {
    "leaky_relu", "x, or alpha x for x < 0", kLeakyTable, [](std::string name, const Params& p) -> Made {
      return made(std::move(name), "leaky_relu", ActivationKind::leaky_relu, p.as<LeakyReluOptions>().alpha);
    }};
extern const LayerEntry kRelu6Layer = {
    "relu6", "min(max(x, 0), 6)", {}, [](std::string name, const Params&) -> Made {
      return made(std::move(name), "relu6", ActivationKind::relu6);
    }};
extern const LayerEntry kEluLayer = {
    "elu", "x, or alpha (exp(x) - 1) for x < 0", kEluTable, [](std::string name, const Params& p) -> Made {
      return made(std::move(name), "elu", ActivationKind::elu, p.as<EluOptions>().alpha);
    }};
extern const LayerEntry kSeluLayer = {
    "selu", "1.0507 elu(x) with alpha 1.6733", {}, [](std::string name, const Params&) -> Made {
      return made(std::move(name), "selu", ActivationKind::elu, kSeluAlpha, kSeluScale);
    }};
extern const LayerEntry kGeluLayer = {
    "gelu", "x times the normal distribution function of x", kGeluTable,
    [](std::string name, const Params& p) -> Made {
      return made(std::move(name), "gelu",
                  p.as<GeluOptions>().approximate ? ActivationKind::gelu_tanh : ActivationKind::gelu_erf);
    }};
extern const LayerEntry kSiluLayer = {
    "silu", "x sigmoid(x)", {}, [](std::string name, const Params&) -> Made {
      return made(std::move(name), "silu", ActivationKind::silu);
    }};
extern const LayerEntry kTanhLayer = {
    "tanh", "scale tanh(slope x)", kTanhTable, [](std::string name, const Params& p) -> Made {
      const auto [scale, slope] = p.as<TanhOptions>();
      return made(std::move(name), "tanh", ActivationKind::tanh, scale, slope);
    }};
extern const LayerEntry kSigmoidLayer = {
    "sigmoid", "1 / (1 + exp(-x))", {}, [](std::string name, const Params&) -> Made {
      return made(std::move(name), "sigmoid", ActivationKind::sigmoid);
    }};
extern const LayerEntry kSoftplusLayer = {
    "softplus", "log(1 + exp(x))", {}, [](std::string name, const Params&) -> Made {
      return made(std::move(name), "softplus", ActivationKind::softplus);
    }};

}  // namespace lockstep
