// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The layer that the graph inserts where activations change their type. A configuration cannot name it.
#pragma once

#include <memory>

#include "model/layer.h"

namespace lockstep {

/// y = x in another type; the gradient is converted back to x's type. One of the types is float32.
std::unique_ptr<Layer> make_cast(std::string name, const Shape& shape, DType from, DType to);

}  // namespace lockstep
