// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/function_layer.h"

#include <algorithm>
#include <deque>

namespace lockstep {

namespace {

class FunctionLayer final : public Layer {
 public:
  FunctionLayer(std::string name, const LayerFunction& function)
      : Layer(std::move(name)), function_(function) {}

  LayerTraits traits() const override {
    return {.kind = function_.name.c_str(), .backward_reads_input = false};
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    inputs_.assign(inputs.begin(), inputs.end());
    outputs_ = function_.infer(inputs);
    LOCKSTEP_REQUIRE(!outputs_.empty(), ErrorKind::config, "layer {}: the function {} returns no output",
                     name(), function_.name);
    return outputs_;
  }

  LayerMemory prepare(const PrepareContext& context) override {
    if (!context.device.is_host())
      throw Error(ErrorKind::config, fmt::format("{} is a function for the CPU", function_.name),
                  "layer " + name(), "Train with device: cpu, or write a layer with a kernel for GPUs.");
    const auto& wants = context.wants_input_gradient;
    if (context.training && std::any_of(wants.begin(), wants.end(), [](bool wanted) { return wanted; }))
      throw Error(
          ErrorKind::config,
          fmt::format("{} is a function without a backward pass, but layers before it learn", function_.name),
          "layer " + name(),
          "Put it before the first layer with variables, put a stop_gradient before it, or write a "
          "layer (docs/adding_a_layer.md).");
    return {};
  }

  void forward(const Pass& pass) override {
    function_.forward({pass.n, inputs_, outputs_, pass.inputs, pass.outputs});
  }

  /// prepare() has made sure that no gradient is wanted.
  void backward(const Pass& pass) override {
    for (std::size_t i = 0; i < inputs_.size(); ++i) LOCKSTEP_CHECK(pass.dx[i] == nullptr);
  }

 private:
  const LayerFunction& function_;
  std::vector<Shape> inputs_, outputs_;
};

}  // namespace

void register_function(std::string name, InferFunction infer, ForwardFunction forward, std::string help) {
  static std::deque<LayerFunction> functions;  // a deque, because table entries keep pointers to them
  functions.push_back({std::move(name), std::move(help), std::move(infer), std::move(forward)});
  const LayerFunction& function = functions.back();
  layer_table().add({function.name, function.help, {}, nullptr, &function});
}

std::unique_ptr<Layer> make_function_layer(std::string name, const LayerFunction& function) {
  return std::make_unique<FunctionLayer>(std::move(name), function);
}

}  // namespace lockstep
