// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Dense layers, convolutions, pooling and embeddings as operators of ONNX.
#include <algorithm>
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

/// The table of an embedding, transposed.
bool write_tied_dense(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string hint = layer.name + "/out";
  const std::string kernel =
      to.graph.add("Transpose", layer.name + "/kernel", std::vector{to.variable(layer, "embeddings")},
                   std::vector<OnnxAttribute>{{"perm", Integers{1, 0}}});
  to.set_last(layer.name, layer.out[0],
              to.graph.add("MatMul", hint, std::vector{to.last(layer.inputs[0]), kernel}));
  return true;
}

WindowOptions window_options(const OnnxLayer& layer, int axes) {
  return {.window = axes_option(layer.options, "kernel", axes),
          .stride = axes_option(layer.options, "stride", axes),
          .dilation = axes_option(layer.options, "dilation", axes),
          .padding = layer.options.node("padding")};
}

/// The input of a layer with windows, channels first, with its circular margins, which leave `all`.
std::string input_with_margins(OnnxWriter& to, const OnnxLayer& layer, WindowAxes& all, int axes) {
  std::string x = to.first(layer.inputs[0]);
  const std::array<bool, 3> circular = circular_axes(layer.options.strings("circular"), axes, layer.name);
  for (std::size_t i = all.size() - static_cast<std::size_t>(axes); i < all.size(); ++i) {
    WindowAxis& axis = all[i];
    if (!circular[i] || (axis.before == 0 && axis.after == 0)) continue;
    const std::int64_t in_batch = static_cast<std::int64_t>(i) - 3 + axes + 2;
    x = to.circular(layer.name + "/margins", x, in_batch, axis.in, axis.before, axis.after);
    axis.before = axis.after = 0;
  }
  return x;
}

/// The input and the variables of a convolution, or of a transposed one. Both kernels are window x a x b here
/// and b x a x window there.
std::vector<std::string> convolution_inputs(OnnxWriter& to, const OnnxLayer& layer, std::string x, int axes) {
  std::vector<int> order = {axes + 1, axes};
  for (int axis = 0; axis < axes; ++axis) order.push_back(axis);
  const ForeignTensor kernel = with_axes(to.net.variables.at(layer.owner + "/kernel"), order);
  const auto* const values = reinterpret_cast<const float*>(kernel.bytes.data());
  std::vector<std::string> inputs = {
      std::move(x), to.graph.constant(layer.owner + "/kernel", {values, kernel.bytes.size() / sizeof(float)},
                                      kernel.extents)};
  if (to.has(layer, "bias")) inputs.push_back(to.variable(layer, "bias"));
  return inputs;
}

bool write_convolution(OnnxWriter& to, const OnnxLayer& layer) {
  const int axes = layer.in[0].rank() - 1;
  WindowAxes all = window_axes(layer.in[0], window_options(layer, axes), layer.name);
  std::string x = input_with_margins(to, layer, all, axes);
  const WindowAttributes window(all, axes);
  to.set_first(layer.name, layer.out[0],
               to.graph.add("Conv", layer.name + "/out", convolution_inputs(to, layer, std::move(x), axes),
                            std::vector<OnnxAttribute>{{"kernel_shape", window.window},
                                                       {"strides", window.stride},
                                                       {"dilations", window.dilation},
                                                       {"pads", window.pads},
                                                       {"group", layer.options.integer("groups")}}));
  return true;
}

bool write_transposed_convolution(OnnxWriter& to, const OnnxLayer& layer) {
  const int axes = layer.in[0].rank() - 1;
  const WindowAxes all =
      transposed_window_axes(layer.in[0], window_options(layer, axes),
                             axes_option(layer.options, "output_padding", axes, 0), layer.name);
  const WindowAttributes window(all, axes);
  Integers more;  // elements at the end that no window reaches
  for (std::size_t i = all.size() - static_cast<std::size_t>(axes); i < all.size(); ++i)
    more.push_back(all[i].in + all[i].before + all[i].after - all[i].stride * (all[i].out - 1) -
                   all[i].dilation * (all[i].window - 1) - 1);
  to.set_first(layer.name, layer.out[0],
               to.graph.add("ConvTranspose", layer.name + "/out",
                            convolution_inputs(to, layer, to.first(layer.inputs[0]), axes),
                            std::vector<OnnxAttribute>{{"kernel_shape", window.window},
                                                       {"strides", window.stride},
                                                       {"dilations", window.dilation},
                                                       {"pads", window.pads},
                                                       {"output_padding", more},
                                                       {"group", layer.options.integer("groups")}}));
  return true;
}

bool write_pool(OnnxWriter& to, const OnnxLayer& layer, const char* operation) {
  const int axes = layer.in[0].rank() - 1;
  WindowOptions options{.window = axes_option(layer.options, "window", axes),
                        .padding = layer.options.node("padding")};
  options.stride = layer.options.has("stride") ? axes_option(layer.options, "stride", axes) : options.window;
  WindowAxes all = window_axes(layer.in[0], options, layer.name);
  const std::string x = input_with_margins(to, layer, all, axes);
  const WindowAttributes window(all, axes);
  to.set_first(
      layer.name, layer.out[0],
      to.graph.add(operation, layer.name + "/out", std::vector{x},
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

bool write_embedding(OnnxWriter& to, const OnnxLayer& layer) {
  constexpr std::int64_t kInt64 = 7;  // TensorProto.DataType
  const std::string hint = layer.name + "/out";
  const std::string ids = to.graph.add("Cast", layer.name + "/ids", std::vector{to.last(layer.inputs[0])},
                                       std::vector<OnnxAttribute>{{"to", kInt64}});
  std::vector<float> table = to.values_of(layer, "embeddings");
  const std::vector<std::int64_t>& extents = to.net.variables.at(layer.owner + "/embeddings").extents;
  if (layer.options.has("padding_index"))  // its output is zero, whatever the row has
    std::fill_n(table.begin() + layer.options.integer("padding_index") * extents[1], extents[1], 0.0F);
  const std::string rows = to.graph.add(
      "Gather", hint, std::vector{to.graph.constant(layer.owner + "/embeddings", table, extents), ids});
  to.set_last(layer.name, layer.out[0], to.reshaped(hint, rows, layer.out[0]));
  return true;
}

}  // namespace

bool write_linear(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string& kind = layer.kind;
  if (kind == "dense") return write_dense(to, layer);
  if (kind == "tied_dense") return write_tied_dense(to, layer);
  if (kind == "conv1d" || kind == "conv2d" || kind == "conv3d") return write_convolution(to, layer);
  if (kind == "conv2d_transpose" || kind == "conv3d_transpose")
    return write_transposed_convolution(to, layer);
  if (kind == "max_pool") return write_pool(to, layer, "MaxPool");
  if (kind == "avg_pool") return write_pool(to, layer, "AveragePool");
  if (kind == "global_avg_pool") return write_global_pool(to, layer, "ReduceMean");
  if (kind == "global_max_pool") return write_global_pool(to, layer, "ReduceMax");
  if (kind == "embedding") return write_embedding(to, layer);
  return false;
}

}  // namespace lockstep
