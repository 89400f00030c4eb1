// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "exchange/onnx_net.h"

namespace lockstep {

namespace {

bool is_linear(const OnnxLayer& layer) {
  return layer.kind == "dense" || layer.kind == "conv1d" || layer.kind == "conv2d" || layer.kind == "conv3d";
}

std::vector<float> floats_of(const ForeignTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.num_elements()));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

void set_floats(ForeignTensor& tensor, const std::vector<float>& values) {
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
}

/// The variable's values, or `missing` for each of `count` channels.
std::vector<float> channel_values(const OnnxNet& net, const std::string& name, std::size_t count,
                                  float missing) {
  const auto found = net.variables.find(name);
  return found == net.variables.end() ? std::vector<float>(count, missing) : floats_of(found->second);
}

void fold(OnnxNet& net, const OnnxLayer& linear, const OnnxLayer& norm) {
  ForeignTensor& kernel = net.variables.at(linear.name + "/kernel");
  std::vector<float> weights = floats_of(kernel);
  const auto channels = static_cast<std::size_t>(kernel.extents.back());
  const std::vector<float> gamma = channel_values(net, norm.owner + "/gamma", channels, 1),
                           beta = channel_values(net, norm.owner + "/beta", channels, 0),
                           mean = channel_values(net, norm.owner + "/moving_mean", channels, 0),
                           variance = channel_values(net, norm.owner + "/moving_variance", channels, 1);
  std::vector<float> bias = channel_values(net, linear.name + "/bias", channels, 0);
  const double epsilon = norm.options.real("epsilon");
  for (std::size_t c = 0; c < channels; ++c) {
    const double scale = gamma[c] / std::sqrt(static_cast<double>(variance[c]) + epsilon);
    for (std::size_t i = c; i < weights.size(); i += channels)
      weights[i] = static_cast<float>(weights[i] * scale);
    bias[c] = static_cast<float>((static_cast<double>(bias[c]) - mean[c]) * scale + beta[c]);
  }
  set_floats(kernel, weights);
  ForeignTensor& with_bias = net.variables[linear.name + "/bias"];
  with_bias.name = linear.name + "/bias";
  with_bias.extents = {static_cast<std::int64_t>(channels)};
  set_floats(with_bias, bias);
}

}  // namespace

std::string OnnxNet::value_of(const std::string& layer, int output) {
  return output == 0 ? layer : layer + ":" + std::to_string(output);
}

std::vector<std::string> fold_batch_norms(OnnxNet& net) {
  std::vector<std::string> folded;
  for (OnnxLayer& norm : net.layers) {
    if (norm.kind != "batch_norm") continue;
    const std::string& from = norm.inputs.front();
    const auto linear = std::ranges::find(net.layers, from, &OnnxLayer::name);
    if (linear == net.layers.end() || !is_linear(*linear)) continue;
    std::int64_t readers = std::ranges::count(net.outputs, from), users = 0;
    for (const OnnxLayer& layer : net.layers) {
      readers += std::ranges::count(layer.inputs, from);
      users += layer.owner == linear->owner ? 1 : 0;
    }
    if (readers != 1 || users != 1) continue;
    fold(net, *linear, norm);
    norm.kind = "identity";
    folded.push_back(norm.name);
  }
  return folded;
}

}  // namespace lockstep
