// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Dense layers, convolutions, pooling, norms and embeddings as operators of ONNX.
#include <numeric>

#include "exchange/onnx_writer.h"
#include "model/layers/window.h"

namespace lockstep {

namespace {

using Integers = std::vector<std::int64_t>;

/// What an operator with a window has as attributes, of the last `axes` axes.
struct WindowAttributes {
  Integers window, stride, dilation, pads;

  WindowAttributes(const WindowAxes& all, int axes) {
    for (std::size_t i = all.size() - static_cast<std::size_t>(axes); i < all.size(); ++i) {
      window.push_back(all[i].window);
      stride.push_back(all[i].stride);
      dilation.push_back(all[i].dilation);
      pads.push_back(all[i].before);
    }
    for (std::size_t i = all.size() - static_cast<std::size_t>(axes); i < all.size(); ++i)
      pads.push_back(all[i].after);
  }
};

bool write_dense(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string hint = layer.name + "/out";
  std::string y =
      to.graph.add("MatMul", hint, std::vector{to.last(layer.inputs[0]), to.variable(layer, "kernel")});
  if (to.has(layer, "bias")) y = to.graph.add("Add", hint, std::vector{y, to.variable(layer, "bias")});
  to.set_last(layer.name, layer.out[0], std::move(y));
  return true;
}

bool write_convolution(OnnxWriter& to, const OnnxLayer& layer) {
  const int axes = layer.in[0].rank() - 1;
  const WindowOptions options{.window = axes_option(layer.options, "kernel", axes),
                              .stride = axes_option(layer.options, "stride", axes),
                              .dilation = axes_option(layer.options, "dilation", axes),
                              .padding = layer.options.node("padding")};
  const WindowAttributes window(window_axes(layer.in[0], options, layer.name), axes);
  std::vector<int> order = {axes + 1, axes};  // window x in x out to out x in x window
  for (int axis = 0; axis < axes; ++axis) order.push_back(axis);
  const ForeignTensor kernel = with_axes(to.net.variables.at(layer.owner + "/kernel"), order);
  const auto* const values = reinterpret_cast<const float*>(kernel.bytes.data());
  std::vector<std::string> inputs = {
      to.first(layer.inputs[0]),
      to.graph.constant(layer.owner + "/kernel", {values, kernel.bytes.size() / sizeof(float)},
                        kernel.extents)};
  if (to.has(layer, "bias")) inputs.push_back(to.variable(layer, "bias"));
  to.set_first(layer.name, layer.out[0],
               to.graph.add("Conv", layer.name + "/out", inputs,
                            std::vector<OnnxAttribute>{{"kernel_shape", window.window},
                                                       {"strides", window.stride},
                                                       {"dilations", window.dilation},
                                                       {"pads", window.pads},
                                                       {"group", layer.options.integer("groups")}}));
  return true;
}

bool write_pool(OnnxWriter& to, const OnnxLayer& layer, const char* operation) {
  const int axes = layer.in[0].rank() - 1;
  WindowOptions options{.window = axes_option(layer.options, "window", axes),
                        .padding = layer.options.node("padding")};
  options.stride = layer.options.has("stride") ? axes_option(layer.options, "stride", axes) : options.window;
  const WindowAttributes window(window_axes(layer.in[0], options, layer.name), axes);
  to.set_first(
      layer.name, layer.out[0],
      to.graph.add(operation, layer.name + "/out", std::vector{to.first(layer.inputs[0])},
                   std::vector<OnnxAttribute>{
                       {"kernel_shape", window.window}, {"strides", window.stride}, {"pads", window.pads}}));
  return true;
}

bool write_global_pool(OnnxWriter& to, const OnnxLayer& layer, const char* operation) {
  const bool first = to.all_first(layer.inputs);
  Integers axes(static_cast<std::size_t>(layer.in[0].rank() - 1));
  std::iota(axes.begin(), axes.end(), first ? 2 : 1);
  to.set_last(layer.name, layer.out[0],
              to.graph.add(operation, layer.name + "/out",
                           std::vector{first ? to.first(layer.inputs[0]) : to.last(layer.inputs[0])},
                           std::vector<OnnxAttribute>{{"axes", axes}, {"keepdims", std::int64_t{0}}}));
  return true;
}

bool write_batch_norm(OnnxWriter& to, const OnnxLayer& layer) {
  const std::int64_t channels = layer.in[0].last();
  const std::vector<std::string> inputs = {
      to.first(layer.inputs[0]), to.variable_or(layer, "gamma", channels, 1),
      to.variable_or(layer, "beta", channels, 0), to.variable_or(layer, "moving_mean", channels, 0),
      to.variable_or(layer, "moving_variance", channels, 1)};
  to.set_first(layer.name, layer.out[0],
               to.graph.add("BatchNormalization", layer.name + "/out", inputs,
                            std::vector<OnnxAttribute>{
                                {"epsilon", static_cast<float>(layer.options.real("epsilon"))}}));
  return true;
}

bool write_layer_norm(OnnxWriter& to, const OnnxLayer& layer) {
  const std::int64_t axis = layer.options.integer("axis");
  std::vector<std::string> inputs = {to.last(layer.inputs[0]),
                                     to.variable_or(layer, "gamma", layer.in[0].last(), 1)};
  if (to.has(layer, "beta")) inputs.push_back(to.variable(layer, "beta"));
  to.set_last(layer.name, layer.out[0],
              to.graph.add("LayerNormalization", layer.name + "/out", inputs,
                           std::vector<OnnxAttribute>{
                               {"axis", axis < 0 ? axis : axis + 1},
                               {"epsilon", static_cast<float>(layer.options.real("epsilon"))}}));
  return true;
}

bool write_embedding(OnnxWriter& to, const OnnxLayer& layer) {
  if (layer.options.has("padding_index")) return false;
  constexpr std::int64_t kInt64 = 7;  // TensorProto.DataType
  const std::string hint = layer.name + "/out";
  const std::string ids = to.graph.add("Cast", layer.name + "/ids", std::vector{to.last(layer.inputs[0])},
                                       std::vector<OnnxAttribute>{{"to", kInt64}});
  const std::string rows = to.graph.add("Gather", hint, std::vector{to.variable(layer, "embeddings"), ids});
  to.set_last(layer.name, layer.out[0], to.reshaped(hint, rows, layer.out[0]));
  return true;
}

}  // namespace

bool write_linear(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string& kind = layer.kind;
  if (kind == "dense") return write_dense(to, layer);
  if (kind == "conv1d" || kind == "conv2d" || kind == "conv3d") return write_convolution(to, layer);
  if (kind == "max_pool") return write_pool(to, layer, "MaxPool");
  if (kind == "avg_pool") return write_pool(to, layer, "AveragePool");
  if (kind == "global_avg_pool") return write_global_pool(to, layer, "ReduceMean");
  if (kind == "global_max_pool") return write_global_pool(to, layer, "ReduceMax");
  if (kind == "batch_norm") return write_batch_norm(to, layer);
  if (kind == "layer_norm") return write_layer_norm(to, layer);
  if (kind == "embedding") return write_embedding(to, layer);
  return false;
}

}  // namespace lockstep
