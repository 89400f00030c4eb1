// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A linear primitive with 16-bit activations built from a float32 one, on any device. It serves processors
// and shapes that the device's library does not support (private to this room).
//
// Which 16-bit products use oneDNN: bfloat16 on a processor with AVX-512 BF16 and without AMX. There oneDNN's
// bfloat16 takes half the time of float32 in dense layers of 1024 x 1024, and one half to two thirds of it in
// the convolutions of ResNet-20. Without AVX-512 BF16 it takes two to five times as long as float32, and the
// one measured processor with AMX is slower with it than with float32. oneDNN 2.6 has no float16 products on
// CPUs. Everything else computes here, so 16-bit activations work, and save memory, on every processor.
// LOCKSTEP_BFLOAT16 overrides the choice. pack() rounds the weights once per step; their gradients are
// float32.
#pragma once

#include <memory>
#include <string>

#include "core/error.h"
#include "kernels/elementwise.h"
#include "kernels/not_supported.h"
#include "kernels/primitives.h"

namespace lockstep {

/// Element counts of a primitive's operands, and which results stay float32.
struct LinearSizes {
  std::int64_t x = 0, y = 0, weights = 0;
  bool wide_y = false, wide_dx = false;
};
LinearSizes sizes_of(const ConvolutionSpec& spec);
LinearSizes sizes_of(const DenseSpec& spec);

/// Widens x and dy into the lane's scratch and rounds y and dx from there. The pack holds the weights rounded
/// to `type`, stored as float32, so the products are those of numbers of that type. `inner` is a float32
/// primitive. `kernels` are those of its device and must outlive the primitive. `why` is returned by
/// LinearPrimitive::widened().
std::unique_ptr<LinearPrimitive> make_widened_linear(const ElementwiseKernels& kernels,
                                                     std::unique_ptr<LinearPrimitive> inner, DType type,
                                                     const LinearSizes& sizes, std::string why);

/// Returns Primitive(spec, arguments...) if the device's library supports the spec's type, else the float32
/// primitive on widened numbers. `why_not`: a reason not to try a 16-bit type; empty: try it.
template <typename Primitive, typename Spec, typename... Arguments>
std::unique_ptr<LinearPrimitive> make_in_its_type(const ElementwiseKernels& kernels, std::string why_not,
                                                  const Spec& spec, const Arguments&... arguments) {
  if (spec.dtype == DType::f32) return std::make_unique<Primitive>(spec, arguments...);
  if (why_not.empty()) {
    try {
      return std::make_unique<Primitive>(spec, arguments...);
    } catch (const NotSupported& error) {
      why_not = error.what_happened();
    }
  }
  Spec wide = spec;  // its results are at least as wide
  wide.dtype = DType::f32;
  return make_widened_linear(kernels, std::make_unique<Primitive>(wide, arguments...), spec.dtype,
                             sizes_of(spec), std::move(why_not));
}

}  // namespace lockstep
