// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A linear primitive of 16-bit activations made of a float32 one, on any device: for processors and shapes
// for which the device's library has none (private to this room).
#pragma once

#include <memory>

#include "kernels/elementwise.h"
#include "kernels/primitives.h"

namespace lockstep {

/// Elements of a primitive's operands.
struct LinearSizes {
  std::int64_t x = 0, y = 0, weights = 0;
};
LinearSizes sizes_of(const ConvolutionSpec& spec);
LinearSizes sizes_of(const DenseSpec& spec);

/// x and dy are widened into the lane's scratch, y and dx rounded from there; the pack has the weights as
/// float32 numbers that `type` has, so the products are those of numbers of that type. `inner` is of float32;
/// `kernels` are its device's and must outlive the primitive.
std::unique_ptr<LinearPrimitive> make_widened_linear(const ElementwiseKernels& kernels,
                                                     std::unique_ptr<LinearPrimitive> inner, DType type,
                                                     const LinearSizes& sizes);

}  // namespace lockstep
