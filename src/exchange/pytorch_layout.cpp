// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "exchange/pytorch_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "core/error.h"

namespace lockstep {

namespace {

using Names = std::pair<std::string_view, std::string_view>;

// Lockstep's names and PyTorch's.
constexpr Names kOfLinear[] = {{"kernel", "weight"}, {"bias", "bias"}};
constexpr Names kOfNorms[] = {{"gamma", "weight"},
                              {"beta", "bias"},
                              {"moving_mean", "running_mean"},
                              {"moving_variance", "running_var"}};
constexpr Names kOfTables[] = {{"embeddings", "weight"}};

std::span<const Names> names_of(std::string_view kind) {
  if (kind == "dense" || kind == "conv1d" || kind == "conv2d" || kind == "conv3d") return kOfLinear;
  if (kind == "batch_norm" || kind == "layer_norm" || kind == "rms_norm" || kind == "group_norm" ||
      kind == "instance_norm")
    return kOfNorms;
  if (kind == "embedding") return kOfTables;
  return {};
}

std::string replaced(std::string text, char from, char to) {
  std::ranges::replace(text, from, to);
  return text;
}

/// The axes of out x in x window of a kernel window x in x out.
std::vector<int> outer_first(int rank) {
  std::vector<int> order = {rank - 1, rank - 2};
  for (int axis = 0; axis < rank - 2; ++axis) order.push_back(axis);
  return order;
}

/// The axes of window x in x out of out x in x window.
std::vector<int> outer_last(int rank) {
  std::vector<int> order;
  for (int axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.insert(order.end(), {1, 0});
  return order;
}

}  // namespace

ForeignTensor to_pytorch(const ForeignTensor& variable, std::span<const LayerKind> layers) {
  const std::size_t slash = variable.name.rfind('/');
  const std::string layer = slash == std::string::npos ? "" : variable.name.substr(0, slash);
  const std::string own = slash == std::string::npos ? variable.name : variable.name.substr(slash + 1);
  const auto found = std::ranges::find(layers, layer, &LayerKind::name);
  const std::string_view kind = found == layers.end() ? "" : std::string_view(found->kind);
  const std::span<const Names> names = names_of(kind);
  const auto name = std::ranges::find(names, own, &Names::first);
  if (name == names.end())
    throw Error(ErrorKind::config,
                fmt::format("layer {} ({}): the variable {} has no form in PyTorch's layout", layer,
                            kind.empty() ? "of no known kind" : kind, own),
                variable.name, "Export with --layout lockstep, and convert this layer in Python.");
  ForeignTensor result = own == "kernel"
                             ? with_axes(variable, outer_first(static_cast<int>(variable.extents.size())))
                             : variable;
  result.name = fmt::format("{}.{}", replaced(layer, '/', '.'), name->second);
  return result;
}

std::vector<ImportedTensor> from_pytorch(std::span<const ForeignTensor> tensors) {
  const auto split = [](const std::string& name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? std::pair(std::string(), name)
                                    : std::pair(name.substr(0, dot), name.substr(dot + 1));
  };
  std::set<std::string> norms;  // batch norms, and others with a weight of one axis
  for (const ForeignTensor& tensor : tensors) {
    const auto [layer, own] = split(tensor.name);
    if (own == "running_mean" || (own == "weight" && tensor.extents.size() == 1)) norms.insert(layer);
  }
  std::vector<ImportedTensor> result;
  for (const ForeignTensor& tensor : tensors) {
    const auto [layer, own] = split(tensor.name);
    if (own == "num_batches_tracked") continue;
    std::string name = own;
    bool kernel = false;
    if (norms.contains(layer)) {
      const auto of_norm = std::ranges::find(kOfNorms, own, &Names::second);
      if (of_norm != std::end(kOfNorms)) name = of_norm->first;
    } else if (own == "weight") {
      name = "kernel";
      kernel = tensor.extents.size() >= 2;
    }
    ForeignTensor converted =
        kernel ? with_axes(tensor, outer_last(static_cast<int>(tensor.extents.size()))) : tensor;
    converted.name = layer.empty() ? name : fmt::format("{}/{}", replaced(layer, '.', '/'), name);
    result.push_back({tensor.name, std::move(converted)});
  }
  return result;
}

}  // namespace lockstep
