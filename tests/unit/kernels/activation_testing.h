// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All activations with the parameters for the tests, on the CPU and on GPUs.
#pragma once

#include <string>
#include <vector>

#include "kernels/activation.h"

namespace lockstep {

struct NamedActivation {
  std::string name;
  Activation activation;
};
inline std::vector<NamedActivation> activations() {
  return {{"leaky_relu", {ActivationKind::leaky_relu, 0.2F}},
          {"relu6", {ActivationKind::relu6}},
          {"elu", {ActivationKind::elu, 0.7F}},
          {"selu", {ActivationKind::elu, 1.6732632F, 1.050701F}},
          {"gelu_tanh", {ActivationKind::gelu_tanh}},
          {"gelu_erf", {ActivationKind::gelu_erf}},
          {"silu", {ActivationKind::silu}},
          {"tanh", {ActivationKind::tanh}},
          {"scaled tanh", {ActivationKind::tanh, 1.7159F, 0.6666667F}},
          {"sigmoid", {ActivationKind::sigmoid}},
          {"softplus", {ActivationKind::softplus}}};
}

}  // namespace lockstep
