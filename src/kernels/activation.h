// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations other than relu (which is in ElementwiseKernels, or fused). In float32, in forms that neither
// overflow nor lose digits where a function is small: within about 1e-6 relative, down to the smallest normal
// number. NaN stays NaN. Every instruction-set level gives the same bits at any address. The arrays of a call
// have one type of activations, to which results are rounded when they are stored. Plain types only.
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

enum class ActivationKind { leaky_relu, relu6, elu, gelu_tanh, gelu_erf, silu, tanh, sigmoid, softplus };

/// alpha and beta: leaky_relu: x, or alpha x for x < 0. elu: beta x, or beta alpha (exp(x) - 1) for x < 0.
/// tanh: alpha tanh(beta x).
struct Activation {
  ActivationKind kind;
  float alpha = 1.0F, beta = 1.0F;
};

class ActivationKernels {
 public:
  virtual ~ActivationKernels();
  /// y may alias x.
  virtual void forward(const Lane&, Activation, std::int64_t count, ConstData x, Data y) const = 0;
  /// dx from dy and the input x; may alias dy.
  virtual void backward(const Lane&, Activation, std::int64_t count, ConstData dy, ConstData x,
                        Data dx) const = 0;
};

}  // namespace lockstep
