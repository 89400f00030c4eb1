// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the graph puts between layers that hold activations in different types; no layer of a configuration.
#pragma once

#include <memory>

#include "model/layer.h"

namespace lockstep {

/// y = x in another type, of the same shape; the gradient goes back in x's type.
std::unique_ptr<Layer> make_cast(std::string name, const Shape& shape, DType from, DType to);

}  // namespace lockstep
