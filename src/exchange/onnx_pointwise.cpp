// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations, sums and products as operators of ONNX.
#include <algorithm>

#include "exchange/onnx_writer.h"

namespace lockstep {

namespace {

struct Plain {
  std::string_view kind, operation;
};
constexpr Plain kPlain[] = {
    {"relu", "Relu"},          {"sigmoid", "Sigmoid"},         {"softplus", "Softplus"},
    {"dropout", "Identity"},   {"identity", "Identity"},       {"spatial_dropout", "Identity"},
    {"drop_path", "Identity"}, {"gaussian_noise", "Identity"}, {"stop_gradient", "Identity"}};

/// The operators of an activation after `x`; empty for another kind.
std::string activated(OnnxGraph& graph, OnnxWriter& to, const OnnxLayer& layer, const std::string& x) {
  const std::string& kind = layer.kind;
  const std::string hint = layer.name + "/out";
  const auto one = [&](std::string_view operation, std::vector<std::string> inputs,
                       std::vector<OnnxAttribute> attributes = {}) {
    return graph.add(operation, hint, inputs, attributes);
  };
  const auto number = [&](double value) {
    return to.number(layer.name + "/number", static_cast<float>(value));
  };
  const auto real = [&](const char* option) { return static_cast<float>(layer.options.real(option)); };
  for (const Plain& plain : kPlain)
    if (plain.kind == kind) return one(plain.operation, {x});
  if (kind == "leaky_relu") return one("LeakyRelu", {x}, {{"alpha", real("alpha")}});
  if (kind == "elu") return one("Elu", {x}, {{"alpha", real("alpha")}});
  if (kind == "selu") return one("Selu", {x});
  if (kind == "relu6") return one("Clip", {x, number(0), number(6)});
  if (kind == "silu") return one("Mul", {x, one("Sigmoid", {x})});
  if (kind == "tanh") {
    const std::string inner = real("slope") == 1 ? x : one("Mul", {x, number(real("slope"))});
    const std::string y = one("Tanh", {inner});
    return real("scale") == 1 ? y : one("Mul", {y, number(real("scale"))});
  }
  if (kind == "gelu" && !layer.options.boolean("approximate")) {
    const std::string erf = one("Erf", {one("Mul", {x, number(0.70710678118654752)})});
    return one("Mul", {one("Mul", {x, number(0.5)}), one("Add", {erf, number(1)})});
  }
  if (kind == "gelu") {  // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
    const std::string cube = one("Mul", {one("Mul", {x, x}), x});
    const std::string sum = one("Add", {x, one("Mul", {cube, number(0.044715)})});
    const std::string tanh = one("Tanh", {one("Mul", {sum, number(0.79788456080286536)})});
    return one("Mul", {one("Mul", {x, number(0.5)}), one("Add", {tanh, number(1)})});
  }
  return "";
}

bool write_sum(OnnxWriter& to, const OnnxLayer& layer) {
  const bool first = to.all_first(layer.inputs);
  std::vector<std::string> inputs;
  for (const std::string& input : layer.inputs) inputs.push_back(first ? to.first(input) : to.last(input));
  std::string sum = inputs.front();
  for (std::size_t i = 1; i < inputs.size(); ++i)
    sum = to.graph.add("Add", layer.name + "/out", std::vector{sum, inputs[i]});
  first ? to.set_first(layer.name, layer.out[0], sum) : to.set_last(layer.name, layer.out[0], sum);
  return true;
}

/// The second factor is repeated along axes that it does not have, or has with the extent 1.
bool write_product(OnnxWriter& to, const OnnxLayer& layer) {
  std::string factor = to.last(layer.inputs[1]);
  if (layer.in[1].rank() < layer.in[0].rank()) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(layer.in[0].rank() - layer.in[1].rank()), 1);
    extents.insert(extents.end(), layer.in[1].extents().begin(), layer.in[1].extents().end());
    factor = to.reshaped(layer.name + "/factor", factor, Shape(extents));
  }
  to.set_last(layer.name, layer.out[0],
              to.graph.add("Mul", layer.name + "/out", std::vector{to.last(layer.inputs[0]), factor}));
  return true;
}

}  // namespace

bool write_pointwise(OnnxWriter& to, const OnnxLayer& layer) {
  if (layer.kind == "add") return write_sum(to, layer);
  if (layer.kind == "multiply" && layer.inputs.size() == 2) return write_product(to, layer);
  if (layer.kind == "softmax" || layer.kind == "log_softmax") {
    to.set_last(layer.name, layer.out[0],
                to.graph.add(layer.kind == "softmax" ? "Softmax" : "LogSoftmax", layer.name + "/out",
                             std::vector{to.last(layer.inputs[0])},
                             std::vector<OnnxAttribute>{{"axis", std::int64_t{-1}}}));
    return true;
  }
  if (layer.inputs.size() != 1) return false;
  const bool first = to.all_first(layer.inputs);
  const std::string& x = first ? to.first(layer.inputs[0]) : to.last(layer.inputs[0]);
  std::string y = activated(to.graph, to, layer, x);
  if (y.empty()) return false;
  first ? to.set_first(layer.name, layer.out[0], std::move(y))
        : to.set_last(layer.name, layer.out[0], std::move(y));
  return true;
}

}  // namespace lockstep
