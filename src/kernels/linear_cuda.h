// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels for dense layers and convolutions on a GPU in addition to the libraries' products (private to this
// room): weight layouts, bias and relu.
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep::cuda {

/// to (columns x rows) = the transpose of from (rows x columns), in to's type. At least one of the two is
/// float32; no aliasing. One transpose converts between our kernel_h x kernel_w x in x out and cuDNN's out x
/// kernel_h x kernel_w x in, in either direction.
void transpose(const Lane& lane, std::int64_t rows, std::int64_t columns, ConstData from, Data to);

/// y = y + bias[c] (bias null: y), then max(y, 0) if relu; NaN stays NaN. y has any activation type.
void add_bias(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* bias, bool relu,
              Data y);

}  // namespace lockstep::cuda
