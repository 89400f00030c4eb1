// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which layers' products of 16-bit numbers are float32's on this device, for people: they save no time there.
#pragma once

#include <string>

#include "model/graph.h"

namespace lockstep {

/// "conv1, fc (this processor cannot multiply float16); conv2 (...)", by reason in the order of the layers;
/// empty: there is none. The layers were prepared.
std::string widened_products(const Graph& graph);

}  // namespace lockstep
