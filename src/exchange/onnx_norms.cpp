// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Norms as operators of ONNX.
#include <algorithm>

#include "exchange/onnx_writer.h"

namespace lockstep {

namespace {

float epsilon_of(const OnnxLayer& layer) { return static_cast<float>(layer.options.real("epsilon")); }

bool write_batch_norm(OnnxWriter& to, const OnnxLayer& layer) {
  const std::int64_t channels = layer.in[0].last();
  const std::vector<std::string> inputs = {
      to.first(layer.inputs[0]), to.variable_or(layer, "gamma", channels, 1),
      to.variable_or(layer, "beta", channels, 0), to.variable_or(layer, "moving_mean", channels, 0),
      to.variable_or(layer, "moving_variance", channels, 1)};
  to.set_first(layer.name, layer.out[0],
               to.graph.add("BatchNormalization", layer.name + "/out", inputs,
                            std::vector<OnnxAttribute>{{"epsilon", epsilon_of(layer)}}));
  return true;
}

bool write_layer_norm(OnnxWriter& to, const OnnxLayer& layer) {
  const std::int64_t option = layer.options.integer("axis");
  const std::int64_t axis = option < 0 ? option + layer.in[0].rank() : option;
  const auto normalised = layer.in[0].extents().subspan(static_cast<std::size_t>(axis));
  const std::vector<float> ones(static_cast<std::size_t>(Shape(normalised).num_elements()), 1);
  std::vector<std::string> inputs = {to.last(layer.inputs[0]),
                                     to.has(layer, "gamma")
                                         ? to.variable(layer, "gamma")
                                         : to.graph.constant(layer.name + "/gamma", ones, normalised)};
  if (to.has(layer, "beta")) inputs.push_back(to.variable(layer, "beta"));
  to.set_last(layer.name, layer.out[0],
              to.graph.add("LayerNormalization", layer.name + "/out", inputs,
                           std::vector<OnnxAttribute>{{"axis", axis + 1}, {"epsilon", epsilon_of(layer)}}));
  return true;
}

/// RMSNormalization is an operator of opset 23 only: x / sqrt(mean of x^2 + epsilon) by single operators.
bool write_rms_norm(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string hint = layer.name + "/out";
  const std::string& x = to.last(layer.inputs[0]);
  const std::int64_t option = layer.options.integer("axis"), rank = layer.in[0].rank();
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = option < 0 ? option + rank : option; axis < rank; ++axis) axes.push_back(axis + 1);
  const std::string mean =
      to.graph.add("ReduceMean", hint, std::vector{to.graph.add("Mul", hint, std::vector{x, x})},
                   std::vector<OnnxAttribute>{{"axes", axes}, {"keepdims", std::int64_t{1}}});
  const std::string sum =
      to.graph.add("Add", hint, std::vector{mean, to.number(layer.name + "/epsilon", epsilon_of(layer))});
  std::string y = to.graph.add("Div", hint, std::vector{x, to.graph.add("Sqrt", hint, std::vector{sum})});
  if (to.has(layer, "gamma")) y = to.graph.add("Mul", hint, std::vector{y, to.variable(layer, "gamma")});
  to.set_last(layer.name, layer.out[0], std::move(y));
  return true;
}

/// group_norm and instance_norm. ONNX normalises each channel of a sample: the numbers of a group are one
/// channel of a reshaped sample.
bool write_group_norm(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string hint = layer.name + "/out";
  const std::int64_t channels = layer.in[0].last();
  const std::int64_t groups = layer.kind == "group_norm" ? layer.options.integer("groups") : channels;
  const std::vector<float> ones(static_cast<std::size_t>(groups), 1),
      zeros(static_cast<std::size_t>(groups), 0);
  const std::string grouped =
      to.reshaped(hint, to.first(layer.inputs[0]), Shape{groups, layer.in[0].num_elements() / groups});
  const std::string normal =
      to.graph.add("InstanceNormalization", hint,
                   std::vector{grouped, to.graph.constant(layer.name + "/ones", ones, std::vector{groups}),
                               to.graph.constant(layer.name + "/zeros", zeros, std::vector{groups})},
                   std::vector<OnnxAttribute>{{"epsilon", epsilon_of(layer)}});
  std::vector<std::int64_t> extents = {channels};
  for (int axis = 0; axis + 1 < layer.in[0].rank(); ++axis) extents.push_back(layer.in[0][axis]);
  std::string y = to.reshaped(hint, normal, Shape(extents));
  std::fill(extents.begin() + 1, extents.end(), 1);
  const auto parameter = [&](const char* own) {
    return to.graph.constant(layer.owner + "/" + own, to.values_of(layer, own), extents);
  };
  if (to.has(layer, "gamma")) y = to.graph.add("Mul", hint, std::vector{y, parameter("gamma")});
  if (to.has(layer, "beta")) y = to.graph.add("Add", hint, std::vector{y, parameter("beta")});
  to.set_first(layer.name, layer.out[0], std::move(y));
  return true;
}

bool write_l2_normalize(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string hint = layer.name + "/out";
  const std::string& x = to.last(layer.inputs[0]);
  const std::string squares = to.graph.add(
      "ReduceSumSquare", hint, std::vector{x},
      std::vector<OnnxAttribute>{{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", std::int64_t{1}}});
  const std::string bounded =
      to.graph.add("Max", hint, std::vector{squares, to.number(layer.name + "/epsilon", epsilon_of(layer))});
  to.set_last(layer.name, layer.out[0],
              to.graph.add("Div", hint, std::vector{x, to.graph.add("Sqrt", hint, std::vector{bounded})}));
  return true;
}

}  // namespace

bool write_norms(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string& kind = layer.kind;
  if (kind == "batch_norm") return write_batch_norm(to, layer);
  if (kind == "layer_norm") return write_layer_norm(to, layer);
  if (kind == "rms_norm") return write_rms_norm(to, layer);
  if (kind == "group_norm" || kind == "instance_norm") return write_group_norm(to, layer);
  if (kind == "l2_normalize") return write_l2_normalize(to, layer);
  return false;
}

}  // namespace lockstep
