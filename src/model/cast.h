// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The layer that the graph inserts where activations change their type. A configuration cannot name it.
//
// Why the graph decides the type of an activation: a kernel that reads float32 as bfloat16 gives wrong
// numbers silently. A layer says which types it takes and gives; where two differ the graph inserts a cast,
// one for all consumers, which memory plan and executor treat like any operation. So layers move to 16 bits
// one at a time, and one that has not moved stays correct.
#pragma once

#include <memory>

#include "model/layer.h"

namespace lockstep {

/// y = x in another type; the gradient is converted back to x's type. One of the types is float32.
std::unique_ptr<Layer> make_cast(std::string name, const Shape& shape, DType from, DType to);

}  // namespace lockstep
