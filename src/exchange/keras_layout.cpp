// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "exchange/keras_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/child_process.h"
#include "core/error.h"
#include "core/scalar.h"
#include "io/hdf5_arrays.h"

namespace lockstep {

namespace {

/// Values that are read in a trial.
constexpr std::uint64_t kTrialBytes = std::uint64_t{64} << 20;

/// A class of Keras, its name in files, and its variables in their order.
struct KerasClass {
  std::string_view kind, name;
  std::vector<std::string_view> variables;
};

const std::vector<KerasClass>& classes() {
  static const std::vector<KerasClass> kClasses{
      {"dense", "dense", {"kernel", "bias"}},
      {"conv1d", "conv1d", {"kernel", "bias"}},
      {"conv2d", "conv2d", {"kernel", "bias"}},
      {"conv3d", "conv3d", {"kernel", "bias"}},
      {"batch_norm", "batch_normalization", {"gamma", "beta", "moving_mean", "moving_variance"}},
      {"layer_norm", "layer_normalization", {"gamma", "beta"}},
      {"rms_norm", "rms_normalization", {"gamma"}},
      {"group_norm", "group_normalization", {"gamma", "beta"}},
      {"embedding", "embedding", {"embeddings"}},
  };
  return kClasses;
}

/// The class of a group "dense_12"; null if it is another one.
const KerasClass* class_of(std::string_view group) {
  for (const KerasClass& one : classes()) {
    if (group == one.name) return &one;
    if (!group.starts_with(one.name) || group.size() <= one.name.size() || group[one.name.size()] != '_')
      continue;
    const std::string_view number = group.substr(one.name.size() + 1);
    if (!number.empty() && std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; }))
      return &one;
  }
  return nullptr;
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts{""};
  for (const char c : path)
    if (c == '/')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// The name of variable `index` of a layer that has `count`; empty: not known. A batch norm without gamma and
/// beta has two; one with only one of them cannot be told.
std::string_view variable_name(const KerasClass& of, std::size_t index, std::size_t count) {
  if (of.kind == "batch_norm") {
    if (count == 2) return of.variables[index + 2];
    return count == 4 ? of.variables[index] : std::string_view();
  }
  if ((of.kind == "layer_norm" || of.kind == "group_norm") && count == 1) return {};
  return index < of.variables.size() ? of.variables[index] : std::string_view();
}

}  // namespace

bool is_keras_file(const std::string& path) { return path.ends_with(".weights.h5"); }

ForeignFile read_keras_weights(const std::string& path, FollowedFiles& followed) {
  const auto crash = run_in_child([&] { read_hdf5_arrays(path, followed, kTrialBytes); });
  if (crash)
    throw Error(ErrorKind::data, fmt::format("damaged: the library that reads HDF5 {}", *crash), path,
                "Copy or make the file again. Found by opening it in a process of its own.");
  ForeignFile file;
  for (Hdf5Array& array : read_hdf5_arrays(path, followed)) {
    file.tensors.push_back({array.path, array.dtype, std::move(array.extents), std::move(array.bytes)});
    check_extents(file.tensors.back(), path);
    if (array.dtype == DType::i8 && array.path.find("vars/") != std::string::npos)
      throw Error(ErrorKind::data,
                  "is quantized: its numbers are factors of a scale that another dataset has",
                  fmt::format("{}, dataset {}", path, array.path),
                  "Save the weights before model.quantize(...) is called.");
  }
  if (std::ranges::none_of(file.tensors, [](const ForeignTensor& tensor) {
        return tensor.name.find("vars/") != std::string::npos;
      }))
    throw Error(ErrorKind::data, "has no weights of Keras 3: no group vars", path,
                "Write it with model.save_weights(\"x.weights.h5\") of Keras 3.");
  return file;
}

std::vector<ImportedTensor> from_keras(std::span<const ForeignTensor> tensors) {
  std::map<std::string, std::size_t> counts;  // by group
  const auto group_of = [](const std::string& name) { return name.substr(0, name.rfind('/')); };
  for (const ForeignTensor& tensor : tensors) ++counts[group_of(tensor.name)];
  std::vector<ImportedTensor> result;
  for (const ForeignTensor& tensor : tensors) {
    const std::vector<std::string> parts = parts_of(tensor.name);
    if (parts.size() < 3 || parts[parts.size() - 2] != "vars" || parts.front() == "optimizer") continue;
    const std::optional<std::int64_t> index = parse_integer(parts.back());
    const std::string& layer = parts[parts.size() - 3];
    if (!index || *index < 0 || layer.starts_with("seed_generator")) continue;
    std::string name;
    for (std::size_t i = 0; i + 2 < parts.size(); ++i)
      if (parts[i] != "layers") name += parts[i] + "/";
    const KerasClass* const of = class_of(layer);
    const std::string_view own =
        of == nullptr ? ""
                      : variable_name(*of, static_cast<std::size_t>(*index), counts[group_of(tensor.name)]);
    ForeignTensor named = tensor;
    named.name = name + (own.empty() ? parts.back() : std::string(own));
    result.push_back({tensor.name, std::move(named)});
  }
  return result;
}

std::vector<ForeignTensor> to_keras(std::span<const ForeignTensor> variables,
                                    std::span<const LayerKind> layers) {
  std::map<std::string_view, int> numbers;  // by class: how many layers came before
  std::vector<ForeignTensor> result;
  for (const LayerKind& layer : layers) {
    const auto of = std::ranges::find(classes(), layer.kind, &KerasClass::kind);
    if (of == classes().end()) continue;
    const int number = numbers[of->name]++;
    const std::string group =
        number == 0 ? fmt::format("layers/{}", of->name) : fmt::format("layers/{}_{}", of->name, number);
    int index = 0;
    for (const std::string_view own : of->variables) {
      const auto found =
          std::ranges::find(variables, fmt::format("{}/{}", layer.name, own), &ForeignTensor::name);
      if (found == variables.end()) continue;
      ForeignTensor tensor = *found;
      tensor.name = fmt::format("{}/vars/{}", group, index++);
      result.push_back(std::move(tensor));
    }
  }
  if (result.size() == variables.size()) return result;
  for (const ForeignTensor& variable : variables) {
    const std::string layer = variable.name.substr(0, variable.name.rfind('/'));
    const auto found = std::ranges::find(layers, layer, &LayerKind::name);
    const bool known = found != layers.end() &&
                       std::ranges::find(classes(), found->kind, &KerasClass::kind) != classes().end();
    if (!known)
      throw Error(ErrorKind::config,
                  fmt::format("layer {} ({}) has no form in the weights of Keras", layer,
                              found == layers.end() ? "of no known kind" : found->kind),
                  variable.name, "Export to safetensors, and convert this layer in Python.");
  }
  return result;
}

void write_keras_weights(int descriptor, const std::string& path, std::span<const ForeignTensor> tensors) {
  std::vector<Hdf5Array> arrays;
  for (const ForeignTensor& tensor : tensors)
    arrays.push_back({tensor.name, tensor.dtype, tensor.extents, tensor.bytes});
  write_hdf5_arrays(descriptor, path, arrays);
}

}  // namespace lockstep
