// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "exchange/onnx_initializers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "exchange/onnx_memory.h"
#include "io/atomic_file.h"
#include "onnx.pb.h"

namespace lockstep {

namespace {

/// What an input of an operator is.
struct Role {
  std::string_view operation;
  int input;
  std::string_view variable;
};
constexpr Role kRoles[] = {
    {"Conv", 1, "kernel"},
    {"Conv", 2, "bias"},
    {"ConvTranspose", 1, "kernel"},
    {"ConvTranspose", 2, "bias"},
    {"Gemm", 1, "kernel"},
    {"Gemm", 2, "bias"},
    {"MatMul", 1, "kernel"},
    {"BatchNormalization", 1, "gamma"},
    {"BatchNormalization", 2, "beta"},
    {"BatchNormalization", 3, "moving_mean"},
    {"BatchNormalization", 4, "moving_variance"},
    {"LayerNormalization", 1, "gamma"},
    {"LayerNormalization", 2, "beta"},
    {"RMSNormalization", 1, "gamma"},
    {"Gather", 0, "embeddings"},
};

struct Use {
  std::string variable;
  bool transposed = false;  ///< out x in (x window)
};

std::int64_t attribute(const onnx::Node& node, std::string_view name, std::int64_t otherwise) {
  for (const onnx::Attribute& one : node.attribute())
    if (one.name() == name) return one.i();
  return otherwise;
}

/// Finds RMS norms, which are single operators before opset 23: x / sqrt(mean of x^2 + epsilon), as Lockstep
/// and PyTorch write them.
class RmsNorms {
 public:
  explicit RmsNorms(const onnx::Graph& graph) {
    for (const onnx::Node& node : graph.node())
      for (const std::string& output : node.output()) makers_.emplace(output, &node);
  }
  /// `value` is such a quotient.
  bool has(const std::string& value) const {
    if (const onnx::Node* const quotient = made_by("Div", value))
      return is_root(quotient->input(0), quotient->input(1));
    const onnx::Node* const product = made_by("Mul", value);
    if (product == nullptr) return false;
    for (const int i : {0, 1}) {
      const std::string &x = product->input(i), &inverse = product->input(1 - i);
      const onnx::Node* const one = made_by("Reciprocal", inverse);
      const onnx::Node* const over = made_by("Div", inverse);
      if (one != nullptr && is_root(x, one->input(0))) return true;
      if (over != nullptr && is_root(x, over->input(1))) return true;
    }
    return false;
  }

 private:
  /// With the inputs that the operator needs; null: another one makes it.
  const onnx::Node* made_by(std::string_view operation, const std::string& value) const {
    const bool has_two = operation == "Div" || operation == "Mul" || operation == "Add" || operation == "Pow";
    const auto found = makers_.find(value);
    if (found == makers_.end() || found->second->op_type() != operation) return nullptr;
    return found->second->input_size() >= (has_two ? 2 : 1) ? found->second : nullptr;
  }
  bool is_square(const std::string& x, const std::string& value) const {
    if (const onnx::Node* const power = made_by("Pow", value)) return power->input(0) == x;
    const onnx::Node* const product = made_by("Mul", value);
    return product != nullptr && product->input(0) == x && product->input(1) == x;
  }
  /// `value` is sqrt(mean of x^2 + epsilon).
  bool is_root(const std::string& x, const std::string& value) const {
    const onnx::Node* const root = made_by("Sqrt", value);
    const onnx::Node* const sum = root != nullptr ? made_by("Add", root->input(0)) : nullptr;
    if (sum == nullptr) return false;
    for (const int i : {0, 1})
      if (const onnx::Node* const mean = made_by("ReduceMean", sum->input(i));
          mean != nullptr && is_square(x, mean->input(0)))
        return true;
    return false;
  }

  std::map<std::string, const onnx::Node*> makers_;  ///< by what they make
};

/// By the name of an initialiser. A bias that follows a MatMul is added by an operator of its own.
std::map<std::string, Use> uses_of(const onnx::Graph& graph) {
  std::map<std::string, Use> uses;
  std::map<std::string, std::string> products;  // outputs of MatMul
  const RmsNorms rms_norms(graph);
  for (const onnx::Node& node : graph.node()) {
    if (node.op_type() == "MatMul" && node.output_size() == 1) products[node.output(0)] = node.name();
    for (const Role& role : kRoles) {
      if (node.op_type() != role.operation || role.input >= node.input_size()) continue;
      const bool transposed =
          role.variable == "kernel" && (node.op_type() == "Conv" || node.op_type() == "ConvTranspose" ||
                                        (node.op_type() == "Gemm" && attribute(node, "transB", 0) != 0));
      uses.try_emplace(node.input(role.input), Use{std::string(role.variable), transposed});
    }
    if (node.op_type() == "Add" && node.input_size() == 2)
      for (const int i : {0, 1})
        if (products.contains(node.input(i))) uses.try_emplace(node.input(1 - i), Use{"bias"});
    if (node.op_type() == "Mul" && node.input_size() == 2)
      for (const int i : {0, 1})
        if (rms_norms.has(node.input(i))) uses.try_emplace(node.input(1 - i), Use{"gamma"});
  }
  return uses;
}

/// The layer of "features.0.weight", "conv1/kernel" or "onnx::Conv_12".
std::string layer_of(const std::string& name) {
  constexpr std::string_view kOwn[] = {
      "weight",       "bias",        "kernel",      "gamma",           "beta",
      "running_mean", "running_var", "moving_mean", "moving_variance", "embeddings"};
  std::string layer = name;
  const std::size_t end = layer.find_last_of("./");
  if (end != std::string::npos && std::ranges::find(kOwn, layer.substr(end + 1)) != std::end(kOwn))
    layer.resize(end);
  std::ranges::replace(layer, '.', '/');
  while (layer.starts_with('/')) layer.erase(0, 1);
  return layer;
}

std::optional<DType> dtype_of_onnx(int type) {
  switch (type) {
    case 1:
      return DType::f32;
    case 10:
      return DType::f16;
    case 11:
      return DType::f64;
    case 16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

Error damaged(const std::string& path, const std::string& what) {
  return {ErrorKind::data, what, path, "The file may be damaged: export it again."};
}

ForeignTensor tensor_of(const onnx::Tensor& from, DType dtype, const std::string& path) {
  if (from.data_location() == 1)
    throw Error(ErrorKind::data, fmt::format("tensor {} is kept in another file", from.name()), path,
                "Export it with the weights inside.");
  ForeignTensor tensor{.name = from.name(), .dtype = dtype};
  double bytes = static_cast<double>(size_in_bytes(dtype));
  for (const std::int64_t extent : from.dims()) {
    bytes *= static_cast<double>(extent);
    tensor.extents.push_back(extent);
  }
  check_extents(tensor, path);
  const bool raw = from.has_raw_data();
  if (!raw && dtype != DType::f32)
    throw damaged(path, fmt::format("tensor {} of 16 or 64 bits has no raw data", from.name()));
  const std::size_t have =
      raw ? from.raw_data().size() : static_cast<std::size_t>(from.float_data_size()) * sizeof(float);
  if (bytes != static_cast<double>(have))
    throw damaged(path,
                  fmt::format("tensor {} {} has {} bytes", from.name(), extents_text(tensor.extents), have));
  tensor.bytes.resize(have);
  if (have > 0)
    std::memcpy(tensor.bytes.data(),
                raw ? from.raw_data().data() : static_cast<const void*>(from.float_data().data()), have);
  return tensor;
}

/// Axes out x in x window become window x in x out.
ForeignTensor channels_last(const ForeignTensor& tensor) {
  const int rank = static_cast<int>(tensor.extents.size());
  if (rank < 2) return tensor;
  std::vector<int> order(static_cast<std::size_t>(rank - 2));
  std::iota(order.begin(), order.end(), 2);
  order.insert(order.end(), {1, 0});
  return with_axes(tensor, order);
}

}  // namespace

std::vector<ImportedTensor> onnx_initializers_from(std::string_view contents, const std::string& path) {
  if (contents.size() > 0x7fffffffU)
    throw Error(ErrorKind::data,
                fmt::format("has {} bytes, more than an ONNX file can have", contents.size()), path,
                "Export the weights alone, as safetensors or a state dict.");
  onnx::Model model;
  if (!take_onnx_memory(contents, path) ||
      !model.ParseFromArray(contents.data(), static_cast<int>(contents.size())) || !model.has_graph())
    throw damaged(path, "is no ONNX model");
  const std::map<std::string, Use> uses = uses_of(model.graph());
  std::vector<ImportedTensor> result;
  for (const onnx::Tensor& initializer : model.graph().initializer()) {
    const auto use = uses.find(initializer.name());
    const std::optional<DType> dtype = dtype_of_onnx(initializer.data_type());
    if (use == uses.end() || !dtype) continue;
    ForeignTensor tensor = tensor_of(initializer, *dtype, path);
    if (use->second.transposed) tensor = channels_last(tensor);
    const std::string layer = layer_of(initializer.name());
    // The name of a projection is whole: attention/qkv_kernel.
    tensor.name = layer.ends_with("_" + use->second.variable) ? layer : layer + "/" + use->second.variable;
    result.push_back({initializer.name(), std::move(tensor)});
  }
  if (result.empty())
    throw Error(ErrorKind::data, "has no weights: no operator with weights reads an initialiser", path,
                "Export the model with its weights as initialisers.");
  return result;
}

std::vector<ImportedTensor> read_onnx_initializers(const std::string& path) {
  return onnx_initializers_from(read_whole_file(path, ErrorKind::data), path);
}

}  // namespace lockstep
