// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The first layer of a graph whose data has several inputs: one output per input. It is no layer that a
// configuration names.
#pragma once

#include <memory>
#include <vector>

#include "core/named_shape.h"
#include "model/layer.h"

namespace lockstep {

/// A layer named "inputs". Its input is a row with the values of all `inputs`, one after the other.
std::unique_ptr<Layer> make_input_parts(std::vector<NamedShape> inputs);

}  // namespace lockstep
