// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "exchange/onnx_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace lockstep {

OnnxWriter::OnnxWriter(const OnnxNet& from) : net(from) {
  for (std::size_t i = 0; i < net.inputs.size(); ++i) {
    const NamedShape& input = net.inputs[i];
    write_input(*this, input.name, net.prepared.empty() ? OnnxInput{.shape = input.shape} : net.prepared[i]);
  }
}

const std::string& OnnxWriter::last(const std::string& value) {
  Value& own = values_.at(value);
  if (!own.last.empty()) return own.last;
  std::vector<std::int64_t> order = {0};
  for (int axis = 2; axis <= own.sample.rank(); ++axis) order.push_back(axis);
  order.push_back(1);
  own.last = graph.add("Transpose", value + "/last", std::vector{own.first},
                       std::vector<OnnxAttribute>{{"perm", order}});
  return own.last;
}

const std::string& OnnxWriter::first(const std::string& value) {
  Value& own = values_.at(value);
  if (!own.first.empty()) return own.first;
  std::vector<std::int64_t> order = {0, own.sample.rank()};
  for (int axis = 1; axis < own.sample.rank(); ++axis) order.push_back(axis);
  own.first = graph.add("Transpose", value + "/first", std::vector{own.last},
                        std::vector<OnnxAttribute>{{"perm", order}});
  return own.first;
}

bool OnnxWriter::all_first(const std::vector<std::string>& values) const {
  return std::ranges::all_of(values, [&](const std::string& value) {
    return values_.at(value).sample.rank() >= 2 && !values_.at(value).first.empty();
  });
}

void OnnxWriter::set_last(const std::string& value, const Shape& sample, std::string name) {
  values_[value] = {sample, name, sample.rank() < 2 ? name : ""};
}

void OnnxWriter::set_first(const std::string& value, const Shape& sample, std::string name) {
  values_[value] = {sample, sample.rank() < 2 ? name : "", name};
}

bool OnnxWriter::has(const OnnxLayer& layer, const char* own) const {
  return net.variables.contains(fmt::format("{}/{}", layer.owner, own));
}

std::vector<float> OnnxWriter::values_of(const OnnxLayer& layer, const char* own) const {
  const ForeignTensor& tensor = net.variables.at(fmt::format("{}/{}", layer.owner, own));
  std::vector<float> values(static_cast<std::size_t>(tensor.num_elements()));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

std::string OnnxWriter::variable(const OnnxLayer& layer, const char* own) {
  if (!has(layer, own)) return "";
  const std::string name = fmt::format("{}/{}", layer.owner, own);
  return graph.constant(name, values_of(layer, own), net.variables.at(name).extents);
}

std::string OnnxWriter::variable_or(const OnnxLayer& layer, const char* own, std::int64_t count,
                                    float missing) {
  if (has(layer, own)) return variable(layer, own);
  return graph.constant(fmt::format("{}/{}", layer.name, own),
                        std::vector<float>(static_cast<std::size_t>(count), missing), std::vector{count});
}

std::string OnnxWriter::number(const std::string& hint, float value) {
  return graph.constant(hint, std::vector{value}, {});
}

std::string OnnxWriter::reshaped(const std::string& hint, const std::string& from, const Shape& sample) {
  std::vector<std::int64_t> extents = {0};  // 0: as it is
  extents.insert(extents.end(), sample.extents().begin(), sample.extents().end());
  return graph.add("Reshape", hint, std::vector{from, graph.integers(hint + "/shape", extents)});
}

std::string onnx_file(const OnnxNet& net, std::span<const std::pair<std::string, std::string>> metadata) {
  OnnxWriter to(net);
  for (const OnnxLayer& layer : net.layers)
    if (!write_pointwise(to, layer) && !write_linear(to, layer) && !write_norms(to, layer) &&
        !write_moves(to, layer) && !write_recurrent(to, layer) && !write_sequence(to, layer))
      throw Error(ErrorKind::config,
                  fmt::format("layer {}: {} cannot be written as ONNX", layer.name, layer.kind), "",
                  "Export the variables as safetensors, and build this layer in the other program.");
  std::map<std::string, Shape> shapes;
  for (const NamedShape& input : net.inputs) shapes[input.name] = input.shape;
  for (const OnnxLayer& layer : net.layers)
    for (std::size_t i = 0; i < layer.out.size(); ++i)
      shapes[OnnxNet::value_of(layer.name, static_cast<int>(i))] = layer.out[i];
  std::vector<std::string> done;
  for (const std::string& output : net.outputs) {
    if (std::ranges::find(done, output) != done.end()) continue;  // several heads read one value
    done.push_back(output);
    const std::string& value = to.last(output);
    to.graph.add_output(output, shapes.at(output));
    to.graph.name_output(value, output);
  }
  return to.graph.serialized(metadata);
}

std::string OnnxWriter::circular(const std::string& hint, const std::string& from, std::int64_t axis,
                                 std::int64_t extent, std::int64_t before, std::int64_t after) {
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    const auto one = [&](const char* what, std::int64_t value) {
      return graph.integers(hint + what, std::vector{value});
    };
    return graph.add("Slice", hint,
                     std::vector{from, one("/begin", begin), one("/end", end), one("/axis", axis)});
  };
  std::vector<std::string> parts;
  if (before > 0) parts.push_back(part(extent - before, extent));
  parts.push_back(from);
  if (after > 0) parts.push_back(part(0, after));
  return graph.add("Concat", hint, parts, std::vector<OnnxAttribute>{{"axis", axis}});
}

}  // namespace lockstep
