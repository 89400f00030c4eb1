// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What dense layers and convolutions on the CPU share (private to this room).
#pragma once

#include <memory>

#include "core/error.h"
#include "kernels/kernel_table.h"
#include "kernels/onednn.h"
#include "kernels/widened_linear.h"

namespace lockstep {

/// Primitive(spec, lanes), which is oneDNN's, where oneDNN has it in the spec's type; else the float32 one on
/// widened numbers.
template <typename Primitive, typename Spec>
std::unique_ptr<LinearPrimitive> make_in_its_type(const Spec& spec, int lanes) {
  if (spec.dtype == DType::f32) return std::make_unique<Primitive>(spec, lanes);
  if (spec.dtype == DType::bf16 && onednn::multiplies_bfloat16()) {
    try {
      return std::make_unique<Primitive>(spec, lanes);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;  // device: oneDNN cannot create it for this shape
    }
  }
  Spec wide = spec;
  wide.dtype = DType::f32;
  return make_widened_linear(cpu_kernels().elementwise, std::make_unique<Primitive>(wide, lanes), spec.dtype,
                             sizes_of(spec));
}

}  // namespace lockstep
