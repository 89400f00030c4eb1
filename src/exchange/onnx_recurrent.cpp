// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm and gru as operators of ONNX. There, sequences are steps x batch x features, a kernel has a row per
// output, and the rows for h are a tensor of their own.
#include <fmt/format.h>

#include "exchange/onnx_writer.h"

namespace lockstep {

namespace {

/// The tensors of the directions of one of the stacked layers, side by side.
struct Weights {
  std::vector<float> w, r, b;
};

/// The gate's columns of a kernel of (in + units) x (gates units) as rows: those of x to w, those of h to r.
void append_gate(Weights& to, const std::vector<float>& kernel, std::int64_t in, std::int64_t units,
                 std::int64_t gates, std::int64_t gate) {
  const auto at = [&](std::int64_t row, std::int64_t unit) {
    return kernel[static_cast<std::size_t>(row * gates * units + gate * units + unit)];
  };
  for (std::int64_t unit = 0; unit < units; ++unit) {
    for (std::int64_t row = 0; row < in; ++row) to.w.push_back(at(row, unit));
    for (std::int64_t row = 0; row < units; ++row) to.r.push_back(at(in + row, unit));
  }
}

void append_bias(Weights& to, const std::vector<float>& bias, std::int64_t units, std::int64_t gate,
                 float more = 0) {
  for (std::int64_t unit = 0; unit < units; ++unit)
    to.b.push_back(bias[static_cast<std::size_t>(gate * units + unit)] + more);
}

void append_lstm(Weights& to, OnnxWriter& from, const OnnxLayer& layer, const std::string& suffix,
                 std::int64_t in, std::int64_t units) {
  const std::vector<float> kernel = from.values_of(layer, ("kernel" + suffix).c_str()),
                           bias = from.values_of(layer, ("bias" + suffix).c_str());
  constexpr std::int64_t kOrder[] = {0, 3, 2, 1};  // i, o, f, c of i, j, f, o
  for (const std::int64_t gate : kOrder) {
    append_gate(to, kernel, in, units, 4, gate);
    append_bias(to, bias, units, gate, gate == 2 ? static_cast<float>(layer.options.real("forget_bias")) : 0);
  }
  to.b.resize(to.b.size() + static_cast<std::size_t>(4 * units));
}

void append_gru(Weights& to, OnnxWriter& from, const OnnxLayer& layer, const std::string& suffix,
                std::int64_t in, std::int64_t units) {
  const auto values = [&](const std::string& own) { return from.values_of(layer, (own + suffix).c_str()); };
  const std::vector<float> kernel = values("gates_kernel"), bias = values("gates_bias");
  for (const std::int64_t gate : {1, 0}) {  // z, r of r, u
    append_gate(to, kernel, in, units, 2, gate);
    append_bias(to, bias, units, gate);
  }
  append_gate(to, values("candidate_kernel"), in, units, 1, 0);
  append_bias(to, values("candidate_bias"), units, 0);
  to.b.resize(to.b.size() + static_cast<std::size_t>(2 * units));
  if (layer.options.boolean("reset_after"))
    append_bias(to, values("candidate_recurrent_bias"), units, 0);
  else
    to.b.resize(to.b.size() + static_cast<std::size_t>(units));
}

}  // namespace

bool write_recurrent(OnnxWriter& to, const OnnxLayer& layer) {
  const bool lstm = layer.kind == "lstm";
  if (!lstm && layer.kind != "gru") return false;
  const std::string hint = layer.name + "/out";
  const std::int64_t units = layer.options.integer("units"), gates = lstm ? 4 : 3;
  const std::int64_t directions = layer.options.boolean("bidirectional") ? 2 : 1, out = directions * units;
  const auto transposed = [&](const std::string& x, const std::vector<std::int64_t>& order) {
    return to.graph.add("Transpose", hint, std::vector{x}, std::vector<OnnxAttribute>{{"perm", order}});
  };
  std::string lengths;
  if (layer.inputs.size() == 2) {
    constexpr std::int64_t kInt32 = 6;  // TensorProto.DataType
    const std::string whole =
        to.graph.add("Cast", layer.name + "/lengths", std::vector{to.last(layer.inputs[1])},
                     std::vector<OnnxAttribute>{{"to", kInt32}});
    lengths = to.graph.add(
        "Reshape", layer.name + "/lengths",
        std::vector{whole, to.graph.integers(layer.name + "/all", std::vector<std::int64_t>{-1})});
  }
  std::string x = transposed(to.last(layer.inputs[0]), {1, 0, 2});
  std::int64_t in = layer.in[0].last();
  std::vector<std::string> results;
  for (std::int64_t stacked = 0; stacked < layer.options.integer("layers"); ++stacked, in = out) {
    Weights weights;
    for (std::int64_t direction = 0; direction < directions; ++direction)
      (lstm ? append_lstm : append_gru)(
          weights, to, layer, fmt::format("_{}{}", stacked, direction == 1 ? "_reverse" : ""), in, units);
    const auto constant = [&](const char* own, const std::vector<float>& values,
                              std::vector<std::int64_t> extents) {
      return to.graph.constant(layer.name + "/" + own, values, extents);
    };
    const std::vector<std::string> inputs = {x, constant("W", weights.w, {directions, gates * units, in}),
                                             constant("R", weights.r, {directions, gates * units, units}),
                                             constant("B", weights.b, {directions, 2 * gates * units}),
                                             lengths};
    const OnnxAttribute attributes[] = {
        {"hidden_size", units},
        {"direction", std::string_view(directions == 2 ? "bidirectional" : "forward")},
        {"linear_before_reset", std::int64_t{!lstm && layer.options.boolean("reset_after") ? 1 : 0}}};
    results = to.graph.add_many(lstm ? "LSTM" : "GRU", hint, inputs,
                                std::span(attributes).first(lstm ? 2 : 3), lstm ? 3 : 2);
    // steps x directions x batch x units to steps x batch x (directions units)
    x = to.graph.add(
        "Reshape", hint,
        std::vector{transposed(results[0], {0, 2, 1, 3}),
                    to.graph.integers(layer.name + "/shape", std::vector<std::int64_t>{0, 0, out})});
  }
  to.set_last(layer.name, layer.out[0], transposed(x, {1, 0, 2}));
  for (std::size_t i = 1; i < results.size(); ++i)
    to.set_last(OnnxNet::value_of(layer.name, static_cast<int>(i)), layer.out[i],
                to.reshaped(hint, transposed(results[i], {1, 0, 2}), layer.out[i]));
  return true;
}

}  // namespace lockstep
