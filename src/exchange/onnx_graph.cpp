// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "exchange/onnx_graph.h"

#include <fmt/format.h>

#include <set>

#include "core/error.h"
#include "core/version.h"
#include "onnx.pb.h"

namespace lockstep {

namespace {

constexpr std::int64_t kIrVersion = 8, kOpset = 17;
constexpr int kFloat32 = 1, kInt64 = 7;  // TensorProto.DataType
constexpr std::string_view kBatch = "N";

void describe(onnx::ValueInfo& value, const std::string& name, const Shape& sample) {
  value.set_name(name);
  onnx::TensorType& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(kFloat32);
  type.mutable_shape()->add_dim()->set_dim_param(std::string(kBatch));
  for (const std::int64_t extent : sample.extents()) type.mutable_shape()->add_dim()->set_dim_value(extent);
}

}  // namespace

struct OnnxGraph::Impl {
  onnx::Model model;
  std::set<std::string> names;
};

OnnxGraph::OnnxGraph() : impl_(std::make_unique<Impl>()) {
  onnx::Model& model = impl_->model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("lockstep");
  model.set_producer_version(std::string(kVersion));
  model.mutable_graph()->set_name("lockstep");
  onnx::OperatorSet& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(kOpset);
}

OnnxGraph::~OnnxGraph() = default;

std::string OnnxGraph::fresh(const std::string& hint) {
  std::string name = hint;
  for (int number = 2; !impl_->names.insert(name).second; ++number) name = fmt::format("{}_{}", hint, number);
  return name;
}

void OnnxGraph::add_input(const std::string& name, const Shape& sample) {
  LOCKSTEP_CHECK(impl_->names.insert(name).second, "two values are named '{}'", name);
  describe(*impl_->model.mutable_graph()->add_input(), name, sample);
}

void OnnxGraph::add_output(const std::string& name, const Shape& sample) {
  LOCKSTEP_CHECK(impl_->names.insert(name).second, "two values are named '{}'", name);
  describe(*impl_->model.mutable_graph()->add_output(), name, sample);
}

std::string OnnxGraph::constant(const std::string& hint, std::span<const float> values,
                                std::span<const std::int64_t> extents) {
  onnx::Tensor& tensor = *impl_->model.mutable_graph()->add_initializer();
  tensor.set_name(fresh(hint));
  tensor.set_data_type(kFloat32);
  for (const std::int64_t extent : extents) tensor.add_dims(extent);
  tensor.set_raw_data(values.data(), values.size_bytes());
  return tensor.name();
}

std::string OnnxGraph::integers(const std::string& hint, std::span<const std::int64_t> values) {
  onnx::Tensor& tensor = *impl_->model.mutable_graph()->add_initializer();
  tensor.set_name(fresh(hint));
  tensor.set_data_type(kInt64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  tensor.set_raw_data(values.data(), values.size_bytes());
  return tensor.name();
}

std::string OnnxGraph::add(std::string_view operation, const std::string& hint,
                           std::span<const std::string> inputs, std::span<const OnnxAttribute> attributes) {
  return add_many(operation, hint, inputs, attributes, 1).front();
}

std::vector<std::string> OnnxGraph::add_many(std::string_view operation, const std::string& hint,
                                             std::span<const std::string> inputs,
                                             std::span<const OnnxAttribute> attributes, std::size_t count) {
  onnx::Node& node = *impl_->model.mutable_graph()->add_node();
  node.set_op_type(std::string(operation));
  for (const std::string& input : inputs) node.add_input(input);
  for (const OnnxAttribute& attribute : attributes) {
    onnx::Attribute& to = *node.add_attribute();
    to.set_name(std::string(attribute.name));
    if (const auto* whole = std::get_if<std::int64_t>(&attribute.value)) {
      to.set_type(onnx::Attribute::INT);
      to.set_i(*whole);
    } else if (const auto* real = std::get_if<float>(&attribute.value)) {
      to.set_type(onnx::Attribute::FLOAT);
      to.set_f(*real);
    } else if (const auto* text = std::get_if<std::string_view>(&attribute.value)) {
      to.set_type(onnx::Attribute::STRING);
      to.set_s(std::string(*text));
    } else {
      to.set_type(onnx::Attribute::INTS);
      for (const std::int64_t one : std::get<std::vector<std::int64_t>>(attribute.value)) to.add_ints(one);
    }
  }
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < count; ++i) outputs.push_back(fresh(hint));
  for (const std::string& output : outputs) node.add_output(output);
  node.set_name(fmt::format("{}:{}", operation, outputs.front()));
  return outputs;
}

void OnnxGraph::name_output(const std::string& value, const std::string& name) {
  onnx::Node& node = *impl_->model.mutable_graph()->add_node();
  node.set_op_type("Identity");
  node.set_name(fmt::format("Output:{}", name));
  node.add_input(value);
  node.add_output(name);
}

std::string OnnxGraph::serialized(std::span<const std::pair<std::string, std::string>> metadata) const {
  onnx::Model model = impl_->model;
  for (const auto& [key, value] : metadata) {
    onnx::Text& text = *model.add_metadata_props();
    text.set_key(key);
    text.set_value(value);
  }
  std::string bytes;
  LOCKSTEP_REQUIRE(model.SerializeToString(&bytes), ErrorKind::output,
                   "the model is larger than the 2 GiB of an ONNX file");
  return bytes;
}

}  // namespace lockstep
