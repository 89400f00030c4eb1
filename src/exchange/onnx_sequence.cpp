// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers of sequences, except lstm and gru, as operators of ONNX. Lengths are floats of the shape N x 1.
#include <cmath>
#include <numeric>

#include "exchange/onnx_writer.h"
#include "model/layers/sinusoids.h"

namespace lockstep {

namespace {

using Integers = std::vector<std::int64_t>;

constexpr std::int64_t kFloat32 = 1;  // TensorProto.DataType
constexpr float kNever = -1e30F;      // a score whose probability is 0

std::string cast_to_float(OnnxWriter& to, const std::string& hint, const std::string& from) {
  return to.graph.add("Cast", hint, std::vector{from}, std::vector<OnnxAttribute>{{"to", kFloat32}});
}

/// 0, 1, .. count - 1 plus `first` with the extents.
std::string counted(OnnxWriter& to, const std::string& hint, std::int64_t count, float first,
                    const Integers& extents) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return to.graph.constant(hint, values, extents);
}

bool write_sequence_length(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string hint = layer.name + "/out";
  const std::int64_t steps = layer.in[0][0];
  const std::string padding =
      to.number(layer.name + "/padding", static_cast<float>(layer.options.real("padding")));
  const std::string ends = to.graph.add("Equal", hint, std::vector{to.last(layer.inputs[0]), padding});
  const std::string kept = cast_to_float(to, hint, to.graph.add("Not", hint, std::vector{ends}));
  const std::string places =
      to.graph.add("Mul", hint, std::vector{kept, counted(to, layer.name + "/places", steps, 1, {1, steps})});
  to.set_last(layer.name, layer.out[0],
              to.graph.add("ReduceMax", hint, std::vector{places},
                           std::vector<OnnxAttribute>{{"axes", Integers{1}}, {"keepdims", std::int64_t{1}}}));
  return true;
}

bool write_last_step(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string hint = layer.name + "/out";
  const std::int64_t steps = layer.in[0][0];
  const std::string& x = to.last(layer.inputs[0]);
  if (layer.inputs.size() == 1) {
    const std::string step =
        to.graph.add("Slice", hint,
                     std::vector{x, to.graph.integers(layer.name + "/begin", Integers{steps - 1}),
                                 to.graph.integers(layer.name + "/end", Integers{steps}),
                                 to.graph.integers(layer.name + "/axes", Integers{1})});
    to.set_last(layer.name, layer.out[0], to.reshaped(hint, step, layer.out[0]));
    return true;
  }
  const std::string is_last =
      to.graph.add("Equal", hint,
                   std::vector{to.reshaped(hint, to.last(layer.inputs[1]), Shape{1, 1}),
                               counted(to, layer.name + "/places", steps, 1, {1, steps, 1})});
  const std::string kept =
      to.graph.add("Where", hint, std::vector{is_last, x, to.number(layer.name + "/zero", 0)});
  to.set_last(
      layer.name, layer.out[0],
      to.graph.add("ReduceSum", hint, std::vector{kept, to.graph.integers(layer.name + "/axes", Integers{1})},
                   std::vector<OnnxAttribute>{{"keepdims", std::int64_t{0}}}));
  return true;
}

bool write_masking(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string hint = layer.name + "/out";
  const std::string& x = to.last(layer.inputs[0]);
  const std::string value = to.number(layer.name + "/value", static_cast<float>(layer.options.real("value")));
  const std::string other = cast_to_float(
      to, hint, to.graph.add("Not", hint, std::vector{to.graph.add("Equal", hint, std::vector{x, value})}));
  const std::string mask =  // steps x 1
      to.graph.add("ReduceMax", hint, std::vector{other},
                   std::vector<OnnxAttribute>{{"axes", Integers{-1}}, {"keepdims", std::int64_t{1}}});
  to.set_last(layer.name, layer.out[0], to.graph.add("Mul", hint, std::vector{x, mask}));
  to.set_last(OnnxNet::value_of(layer.name, 1), layer.out[1], to.reshaped(hint, mask, layer.out[1]));
  return true;
}

bool write_positional_embedding(OnnxWriter& to, const OnnxLayer& layer) {
  const std::int64_t steps = layer.in[0][0], features = layer.in[0][1];
  const std::string table =
      layer.options.string("kind") == "learned"
          ? to.variable(layer, "embeddings")
          : to.graph.constant(layer.name + "/table", sinusoids(steps, features), Integers{steps, features});
  to.set_last(layer.name, layer.out[0],
              to.graph.add("Add", layer.name + "/out", std::vector{to.last(layer.inputs[0]), table}));
  return true;
}

/// One attention layer while its operators are written.
struct AttentionWriter {
  OnnxWriter& to;
  const OnnxLayer& layer;
  std::int64_t units, heads;
  std::string hint = layer.name + "/out";

  std::string add(std::string_view operation, std::vector<std::string> inputs,
                  std::vector<OnnxAttribute> attributes = {}) {
    return to.graph.add(operation, hint, inputs, attributes);
  }
  std::string projected(const std::string& x, const std::string& own) {
    const std::string y = add("MatMul", {x, to.variable(layer, (own + "_kernel").c_str())});
    const std::string bias = own + "_bias";
    return to.has(layer, bias.c_str()) ? add("Add", {y, to.variable(layer, bias.c_str())}) : y;
  }
  /// The projection in parts of `units` columns.
  std::vector<std::string> parts(const std::string& x, const std::string& own, std::size_t count) {
    const std::string y = projected(x, own);
    if (count == 1) return {y};
    return to.graph.add_many("Split", hint,
                             std::vector{y, to.graph.integers(layer.name + "/sizes", Integers(count, units))},
                             std::vector<OnnxAttribute>{{"axis", std::int64_t{-1}}}, count);
  }
  /// steps x units as heads; `order` puts steps, heads and the numbers of a head into their order.
  std::string by_head(const std::string& x, std::int64_t steps, Integers order) {
    return add("Transpose", {to.reshaped(hint, x, Shape{steps, heads, units / heads})},
               {{"perm", std::move(order)}});
  }
  /// Which of `steps` lie before the length.
  std::string before_length(const std::string& lengths, std::int64_t steps, const Shape& length,
                            const Integers& places) {
    return add("Less",
               {counted(to, layer.name + "/places", steps, 0, places), to.reshaped(hint, lengths, length)});
  }
};

bool write_attention(OnnxWriter& to, const OnnxLayer& layer) {
  AttentionWriter w{to, layer, layer.options.integer("units"), layer.options.integer("heads")};
  const bool lengths = layer.in.size() >= 2 && layer.in.back() == Shape{1};
  const bool self = layer.in.size() == (lengths ? 2 : 1);
  const std::int64_t queries = layer.in[0][0], keys = self ? queries : layer.in[1][0];
  const std::string x = to.last(layer.inputs[0]);
  std::vector<std::string> qkv = w.parts(x, self ? "qkv" : "query", self ? 3 : 1);
  if (!self)
    for (std::string& part : w.parts(to.last(layer.inputs[1]), "memory", 2)) qkv.push_back(std::move(part));
  const double factor = 1.0 / std::sqrt(static_cast<double>(w.units / w.heads));
  std::string scores =
      w.add("MatMul", {w.by_head(qkv[0], queries, {0, 2, 1, 3}), w.by_head(qkv[1], keys, {0, 2, 3, 1})});
  scores = w.add("Mul", {scores, to.number(layer.name + "/factor", static_cast<float>(factor))});
  if (layer.options.boolean("causal")) {
    std::vector<float> later(static_cast<std::size_t>(queries * keys), 0);
    for (std::int64_t query = 0; query < queries; ++query)
      for (std::int64_t key = query + 1; key < keys; ++key)
        later[static_cast<std::size_t>(query * keys + key)] = kNever;
    scores = w.add("Add", {scores, to.graph.constant(layer.name + "/later", later, Integers{queries, keys})});
  }
  std::string inside;
  if (lengths) {
    inside = w.before_length(to.last(layer.inputs.back()), keys, Shape{1, 1, 1}, {1, 1, 1, keys});
    scores = w.add("Where", {inside, scores, to.number(layer.name + "/never", kNever)});
  }
  std::string shares = w.add("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  const auto zero = [&] { return to.number(layer.name + "/zero", 0); };
  if (lengths) shares = w.add("Where", {inside, shares, zero()});  // a length of 0: nothing, not equal shares
  const std::string outputs =
      w.add("Transpose", {w.add("MatMul", {shares, w.by_head(qkv[2], keys, {0, 2, 1, 3})})},
            {{"perm", Integers{0, 2, 1, 3}}});
  std::string y = w.projected(to.reshaped(w.hint, outputs, Shape{queries, w.units}), "output");
  if (lengths && self)
    y = w.add("Where", {w.before_length(to.last(layer.inputs.back()), queries, Shape{1, 1}, {1, queries, 1}),
                        y, zero()});
  to.set_last(layer.name, layer.out[0], std::move(y));
  return true;
}

}  // namespace

bool write_sequence(OnnxWriter& to, const OnnxLayer& layer) {
  const std::string& kind = layer.kind;
  if (kind == "sequence_length") return write_sequence_length(to, layer);
  if (kind == "last_step") return write_last_step(to, layer);
  if (kind == "masking") return write_masking(to, layer);
  if (kind == "positional_embedding") return write_positional_embedding(to, layer);
  if (kind == "attention") return write_attention(to, layer);
  return false;
}

}  // namespace lockstep
