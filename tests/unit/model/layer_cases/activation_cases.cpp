// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "layer_cases.h"
#include "support/reference_kernels.h"

namespace lockstep {

namespace {

LayerCase activation(const std::string& name, const std::string& yaml, Activation function) {
  return {.name = name,
          .yaml = yaml,
          .inputs = {Shape{5, 3}},
          .reference =
              [=](const Inputs& in, const Variables&) {
                Values y;
                for (double x : in[0]) y.push_back(reference::activation(function, x));
                return y;
              },
          .low = -3,
          .high = 8};
}

Values log_softmax(std::int64_t rows, std::int64_t channels, const Values& x) {
  Values y = reference::softmax(rows, channels, x);
  for (double& value : y) value = std::log(value);
  return y;
}

}  // namespace

void add_activation_cases(std::vector<LayerCase>& cases) {
  using Kind = ActivationKind;
  cases.push_back(activation("leaky_relu", "leaky_relu: {alpha: 0.1}", {Kind::leaky_relu, 0.1F}));
  cases.push_back(activation("relu6", "relu6", {Kind::relu6}));
  cases.push_back(activation("elu", "elu: {alpha: 0.7}", {Kind::elu, 0.7F}));
  cases.push_back(activation("selu", "selu", {Kind::elu, 1.6732632F, 1.050701F}));
  cases.push_back(activation("gelu", "gelu", {Kind::gelu_erf}));
  cases.push_back(activation("gelu_approximate", "gelu: {approximate: true}", {Kind::gelu_tanh}));
  cases.push_back(activation("silu", "silu", {Kind::silu}));
  cases.push_back(activation("tanh", "tanh", {Kind::tanh}));
  cases.push_back(activation("tanh_scaled", "tanh: {scale: 1.2}", {Kind::tanh, 1.2F}));
  cases.push_back(activation("tanh_scaled_and_steep", "tanh: {scale: 1.7159, slope: 0.6667}",
                             {Kind::tanh, 1.7159F, 0.6667F}));
  cases.push_back(activation("sigmoid", "sigmoid", {Kind::sigmoid}));
  cases.push_back(activation("softplus", "softplus", {Kind::softplus}));
  for (std::int64_t channels : {1, 3, 17})
    cases.push_back({.name = "log_softmax_" + std::to_string(channels),
                     .yaml = "log_softmax",
                     .inputs = {Shape{2, channels}},
                     .reference =
                         [=](const Inputs& in, const Variables&) {
                           return log_softmax(static_cast<std::int64_t>(in[0].size()) / channels, channels,
                                              in[0]);
                         },
                     .microshards = {2, 0, 1}});
}

}  // namespace lockstep
