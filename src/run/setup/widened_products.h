// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which layers compute products of 16-bit numbers in float32 on this device, as text: 16 bits save no time
// there.
#pragma once

#include <string>

#include "model/graph.h"

namespace lockstep {

/// "conv1, fc (this processor cannot multiply float16); conv2 (...)", by reason in the order of the layers;
/// empty: none. Call it after the layers are prepared.
std::string widened_products(const Graph& graph);

}  // namespace lockstep
