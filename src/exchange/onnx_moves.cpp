// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers that only move values, as operators of ONNX.
#include <algorithm>

#include "exchange/onnx_writer.h"
#include "model/layers/window.h"

namespace lockstep {

namespace {

using Integers = std::vector<std::int64_t>;

constexpr std::int64_t kMostPadding = std::int64_t{1} << 40;  // the graph has checked it

/// The axis of a sample as that of a batch.
std::int64_t batch_axis(std::int64_t axis) { return axis < 0 ? axis : axis + 1; }

bool write_concat(OnnxWriter& to, const OnnxLayer& layer) {
  std::vector<std::string> inputs;
  for (const std::string& input : layer.inputs) inputs.push_back(to.last(input));
  to.set_last(layer.name, layer.out[0],
              to.graph.add("Concat", layer.name + "/out", inputs,
                           std::vector<OnnxAttribute>{{"axis", batch_axis(layer.options.integer("axis"))}}));
  return true;
}

bool write_split(OnnxWriter& to, const OnnxLayer& layer) {
  const std::int64_t axis = layer.options.integer("axis");
  const int own = static_cast<int>(axis < 0 ? axis + layer.in[0].rank() : axis);
  Integers sizes;
  for (const Shape& part : layer.out) sizes.push_back(part[own]);
  const std::vector<std::string> parts = to.graph.add_many(
      "Split", layer.name + "/out",
      std::vector{to.last(layer.inputs[0]), to.graph.integers(layer.name + "/sizes", sizes)},
      std::vector<OnnxAttribute>{{"axis", batch_axis(axis)}}, layer.out.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    to.set_last(OnnxNet::value_of(layer.name, static_cast<int>(i)), layer.out[i], parts[i]);
  return true;
}

std::string sliced(OnnxWriter& to, const OnnxLayer& layer, const Integers& begin, const Integers& end) {
  Integers axes;
  for (std::size_t i = 0; i < begin.size(); ++i) axes.push_back(static_cast<std::int64_t>(i) + 1);
  return to.graph.add("Slice", layer.name + "/out",
                      std::vector{to.last(layer.inputs[0]), to.graph.integers(layer.name + "/begin", begin),
                                  to.graph.integers(layer.name + "/end", end),
                                  to.graph.integers(layer.name + "/axes", axes)});
}

bool write_slice(OnnxWriter& to, const OnnxLayer& layer) {
  const Integers& begin = layer.options.integers("begin");
  Integers end;
  for (int axis = 0; axis < layer.out[0].rank(); ++axis)
    end.push_back(begin[static_cast<std::size_t>(axis)] + layer.out[0][axis]);
  to.set_last(layer.name, layer.out[0], sliced(to, layer, begin, end));
  return true;
}

/// pad and crop: elements before and after each spatial axis.
bool write_margins(OnnxWriter& to, const OnnxLayer& layer) {
  const bool pads = layer.kind == "pad";
  const int axes = layer.in[0].rank() - 1;
  const char* const option = pads ? "padding" : "cropping";
  const Margins all = margins(layer.options.node(option), axes, layer.name, option, kMostPadding);
  const auto first = static_cast<std::ptrdiff_t>(all.before.size()) - axes;
  Integers before(all.before.begin() + first, all.before.end()),
      after(all.after.begin() + first, all.after.end());
  if (!pads) {
    Integers end;
    for (int axis = 0; axis < axes; ++axis)
      end.push_back(layer.in[0][axis] - after[static_cast<std::size_t>(axis)]);
    to.set_last(layer.name, layer.out[0], sliced(to, layer, before, end));
    return true;
  }
  std::string x = to.last(layer.inputs[0]);
  const std::array<bool, 3> circular = circular_axes(layer.options.strings("circular"), axes, layer.name);
  for (int axis = 0; axis < axes; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (!circular[static_cast<std::size_t>(3 - axes + axis)] || (before[i] == 0 && after[i] == 0)) continue;
    x = to.circular(layer.name + "/margins", x, batch_axis(axis), layer.in[0][axis], before[i], after[i]);
    before[i] = after[i] = 0;
  }
  Integers extents = {0};
  extents.insert(extents.end(), before.begin(), before.end());
  extents.insert(extents.end(), {0, 0});
  extents.insert(extents.end(), after.begin(), after.end());
  extents.push_back(0);
  to.set_last(layer.name, layer.out[0],
              to.graph.add("Pad", layer.name + "/out",
                           std::vector{x, to.graph.integers(layer.name + "/pads", extents),
                                       to.number(layer.name + "/value",
                                                 static_cast<float>(layer.options.real("value")))}));
  return true;
}

bool write_transpose(OnnxWriter& to, const OnnxLayer& layer) {
  Integers order = {0};
  for (const std::int64_t axis : layer.options.integers("permutation")) order.push_back(axis + 1);
  to.set_last(layer.name, layer.out[0],
              to.graph.add("Transpose", layer.name + "/out", std::vector{to.last(layer.inputs[0])},
                           std::vector<OnnxAttribute>{{"perm", order}}));
  return true;
}

bool write_reduce(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string operation = layer.options.string("operation");
  Integers axes = layer.options.integers("axes");
  for (std::int64_t& axis : axes) axis = batch_axis(axis);
  if (axes.empty())
    for (int axis = 1; axis <= layer.in[0].rank(); ++axis) axes.push_back(axis);
  const std::string hint = layer.name + "/out";
  const std::string& x = to.last(layer.inputs[0]);
  const std::string y =
      operation == "sum"
          ? to.graph.add("ReduceSum", hint, std::vector{x, to.graph.integers(layer.name + "/axes", axes)})
          : to.graph.add(operation == "mean" ? "ReduceMean" : "ReduceMax", hint, std::vector{x},
                         std::vector<OnnxAttribute>{{"axes", axes}});
  to.set_last(layer.name, layer.out[0], to.reshaped(hint, y, layer.out[0]));
  return true;
}

bool write_upsample(OnnxWriter& to, const OnnxLayer& layer) {
  const bool bilinear = layer.options.string("method") == "bilinear";
  std::vector<float> scales = {1, 1};
  for (int axis = 0; axis + 1 < layer.in[0].rank(); ++axis)
    scales.push_back(static_cast<float>(layer.out[0][axis] / layer.in[0][axis]));
  const std::string sizes =
      to.graph.constant(layer.name + "/scales", scales, Integers{static_cast<std::int64_t>(scales.size())});
  const std::string_view mode = bilinear ? "linear" : "nearest";
  const std::string_view places = !bilinear                                ? "asymmetric"
                                  : layer.options.boolean("align_corners") ? "align_corners"
                                                                           : "half_pixel";
  to.set_first(layer.name, layer.out[0],
               to.graph.add("Resize", layer.name + "/out",
                            std::vector<std::string>{to.first(layer.inputs[0]), "", sizes},
                            std::vector<OnnxAttribute>{{"mode", mode},
                                                       {"coordinate_transformation_mode", places},
                                                       {"nearest_mode", std::string_view("floor")}}));
  return true;
}

/// The same numbers for every sample: repeated as often as an input has samples.
bool write_constant(OnnxWriter& to, const OnnxLayer& layer) {
  const std::vector<double> given = layer.options.reals("value");
  std::vector<float> values(given.begin(), given.end());
  const auto elements = static_cast<std::size_t>(layer.out[0].num_elements());
  if (values.size() == 1) values.assign(elements, values.front());
  const auto extents = layer.out[0].extents();
  const std::string& sample = to.net.inputs.front().name;
  const std::string count =
      to.graph.add("Shape", layer.name + "/samples", std::vector{to.last(sample)},
                   std::vector<OnnxAttribute>{{"start", std::int64_t{0}}, {"end", std::int64_t{1}}});
  const std::string shape = to.graph.add(
      "Concat", layer.name + "/shape",
      std::vector{count,
                  to.graph.integers(layer.name + "/extents", Integers(extents.begin(), extents.end()))},
      std::vector<OnnxAttribute>{{"axis", std::int64_t{0}}});
  Integers one = {1};
  one.insert(one.end(), extents.begin(), extents.end());
  to.set_last(layer.name, layer.out[0],
              to.graph.add("Expand", layer.name + "/out",
                           std::vector{to.graph.constant(layer.name + "/value", values, one), shape}));
  return true;
}

}  // namespace

bool write_moves(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string& kind = layer.kind;
  if (kind == "flatten" || kind == "reshape" || kind == "squeeze" || kind == "expand_dims") {
    to.set_last(layer.name, layer.out[0],
                to.reshaped(layer.name + "/out", to.last(layer.inputs[0]), layer.out[0]));
    return true;
  }
  if (kind == "concat") return write_concat(to, layer);
  if (kind == "split") return write_split(to, layer);
  if (kind == "slice") return write_slice(to, layer);
  if (kind == "pad" || kind == "crop") return write_margins(to, layer);
  if (kind == "transpose") return write_transpose(to, layer);
  if (kind == "reduce") return write_reduce(to, layer);
  if (kind == "upsample") return write_upsample(to, layer);
  if (kind == "constant") return write_constant(to, layer);
  return false;
}

}  // namespace lockstep
