// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "layer_cases.h"
#include "support/reference_kernels.h"

namespace lockstep {

namespace {

LayerCase activation(const std::string& name, const std::string& yaml, ActivationKind kind,
                     double alpha = 0) {
  return {.name = name,
          .yaml = yaml,
          .inputs = {Shape{5, 3}},
          .reference =
              [=](const Inputs& in, const Variables&) {
                Values y;
                for (double x : in[0]) y.push_back(reference::activation(kind, alpha, x));
                return y;
              },
          .low = -3,
          .high = 8};
}

}  // namespace

void add_activation_cases(std::vector<LayerCase>& cases) {
  cases.push_back(activation("leaky_relu", "leaky_relu: {alpha: 0.1}", ActivationKind::leaky_relu,
                             static_cast<double>(0.1F)));
  cases.push_back(activation("relu6", "relu6", ActivationKind::relu6));
  cases.push_back(activation("elu", "elu: {alpha: 0.7}", ActivationKind::elu, static_cast<double>(0.7F)));
  cases.push_back(activation("gelu", "gelu", ActivationKind::gelu_erf));
  cases.push_back(activation("gelu_approximate", "gelu: {approximate: true}", ActivationKind::gelu_tanh));
  cases.push_back(activation("silu", "silu", ActivationKind::silu));
  cases.push_back(activation("tanh", "tanh", ActivationKind::tanh));
  cases.push_back(activation("sigmoid", "sigmoid", ActivationKind::sigmoid));
  cases.push_back(activation("softplus", "softplus", ActivationKind::softplus));
}

}  // namespace lockstep
