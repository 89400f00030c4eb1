// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What dense layers and convolutions on a GPU need around the libraries' products (private to this room):
// layouts of weights, bias and relu.
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep::cuda {

/// to (columns x rows) = the transpose of from (rows x columns), in to's type: one of the two is float32, or
/// both; no aliasing. Between our kernel_h x kernel_w x in x out and cuDNN's out x kernel_h x kernel_w x in
/// lies one transpose, either way.
void transpose(const Lane& lane, std::int64_t rows, std::int64_t columns, ConstData from, Data to);

/// y = y + bias[c] (bias null: y), then max(y, 0) if relu; NaN stays NaN. y of any type of activations.
void add_bias(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* bias, bool relu,
              Data y);

}  // namespace lockstep::cuda
