// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A linear primitive of 16-bit activations made of a float32 one, on any device: for processors and shapes
// for which the device's library has none (private to this room).
#pragma once

#include <memory>
#include <string>

#include "core/error.h"
#include "kernels/elementwise.h"
#include "kernels/primitives.h"

namespace lockstep {

/// Elements of a primitive's operands, and which results stay float32.
struct LinearSizes {
  std::int64_t x = 0, y = 0, weights = 0;
  bool wide_y = false, wide_dx = false;
};
LinearSizes sizes_of(const ConvolutionSpec& spec);
LinearSizes sizes_of(const DenseSpec& spec);

/// x and dy are widened into the lane's scratch, y and dx rounded from there; the pack has the weights as
/// float32 numbers that `type` has, so the products are those of numbers of that type. `inner` is of float32;
/// `kernels` are its device's and must outlive the primitive. `why`: LinearPrimitive::widened().
std::unique_ptr<LinearPrimitive> make_widened_linear(const ElementwiseKernels& kernels,
                                                     std::unique_ptr<LinearPrimitive> inner, DType type,
                                                     const LinearSizes& sizes, std::string why);

/// Primitive(spec, arguments...) where the device's library has it in the spec's type; else the float32 one
/// on widened numbers. `why_not`: why that is not worth trying, if the type is not float32; empty: it is.
template <typename Primitive, typename Spec, typename... Arguments>
std::unique_ptr<LinearPrimitive> make_in_its_type(const ElementwiseKernels& kernels, std::string why_not,
                                                  const Spec& spec, const Arguments&... arguments) {
  if (spec.dtype == DType::f32) return std::make_unique<Primitive>(spec, arguments...);
  if (why_not.empty()) {
    try {
      return std::make_unique<Primitive>(spec, arguments...);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;  // device: the library has none for this shape
      why_not = error.what_happened();
    }
  }
  Spec wide = spec;  // its results are as wide in any case
  wide.dtype = DType::f32;
  return make_widened_linear(kernels, std::make_unique<Primitive>(wide, arguments...), spec.dtype,
                             sizes_of(spec), std::move(why_not));
}

}  // namespace lockstep
