// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `precision` of a configuration: the type of activations, the loss scale, TF32.
#pragma once

#include <span>

#include "config/params.h"
#include "core/dtype.h"
#include "optim/loss_scale.h"

namespace lockstep {

struct PrecisionOptions {
  DType compute = DType::f32;  ///< of activations and their gradients
  LossScale loss_scale = {};
  bool allow_tf32 = false;  ///< on a GPU: products may round their factors to TF32
};

/// Options of the section `precision`.
std::span<const ParamSpec> precision_table();
/// `section` is checked against precision_table(). Throws Error(config) for a loss scale that is not a power
/// of two.
PrecisionOptions precision_options(const Params& section);

}  // namespace lockstep
