// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A linear primitive of 16-bit activations made of a float32 one, on any device: for processors and shapes
// for which the device's library has none (private to this room).
#pragma once

#include <memory>

#include "core/error.h"
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

/// Primitive(spec, arguments...) where the device's library has it in the spec's type; else the float32 one
/// on widened numbers. `native`: it is worth trying, if the type is not float32.
template <typename Primitive, typename Spec, typename... Arguments>
std::unique_ptr<LinearPrimitive> make_in_its_type(const ElementwiseKernels& kernels, bool native,
                                                  const Spec& spec, const Arguments&... arguments) {
  if (spec.dtype == DType::f32) return std::make_unique<Primitive>(spec, arguments...);
  if (native) {
    try {
      return std::make_unique<Primitive>(spec, arguments...);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;  // device: the library has none for this shape
    }
  }
  Spec wide = spec;
  wide.dtype = DType::f32;
  return make_widened_linear(kernels, std::make_unique<Primitive>(wide, arguments...), spec.dtype,
                             sizes_of(spec));
}

}  // namespace lockstep
