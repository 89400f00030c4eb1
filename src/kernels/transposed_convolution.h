// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolution on any device: a convolution primitive with its passes exchanged.
#pragma once

#include <memory>

#include "kernels/kernel_table.h"

namespace lockstep {

/// y = the data gradient of `convolution` at x, plus bias, then relu. x has the convolution's output shape, y
/// its input shape, and the weights are the convolution's: kernel x (in_c / groups) x out_c. The bias has
/// in_c elements. `kernels` must outlive the primitive.
std::unique_ptr<LinearPrimitive> make_transposed_convolution(const KernelTable& kernels,
                                                             const ConvolutionSpec& convolution, int lanes);

}  // namespace lockstep
