// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations other than relu (relu is in ElementwiseKernels or fused into other kernels). They compute in
// float32, in forms that do not overflow and keep precision near zero: the relative error is about 1e-6, down
// to the smallest normal number. NaN stays NaN. The bits are the same at every instruction-set level and for
// any address. All arrays of a call have one activation type; results are rounded to it when stored. This
// header uses plain types only (isa.h).
//
// Why own kernels: the bits of oneDNN's element-wise functions depend on the instruction set, and they lose
// digits by cancellation where results are small.
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

enum class ActivationKind { leaky_relu, relu6, elu, gelu_tanh, gelu_erf, silu, tanh, sigmoid, softplus };

/// leaky_relu: x, or alpha x for x < 0. elu: beta x, or beta alpha (exp(x) - 1) for x < 0. tanh: alpha
/// tanh(beta x). The other kinds use neither parameter.
struct Activation {
  ActivationKind kind;
  float alpha = 1.0F, beta = 1.0F;
};

class ActivationKernels {
 public:
  virtual ~ActivationKernels();
  /// y may alias x.
  virtual void forward(const Lane&, Activation, std::int64_t count, ConstData x, Data y) const = 0;
  /// Computes dx from dy and the input x; dx may alias dy.
  virtual void backward(const Lane&, Activation, std::int64_t count, ConstData dy, ConstData x,
                        Data dx) const = 0;
};

}  // namespace lockstep
