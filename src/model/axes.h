// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of inputs and of axis options (-1 is the last axis), for layers.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/layer.h"

namespace lockstep {

/// Returns the axis as a number in [0, rank). Throws Error(config) that names layer, option and shape.
int axis_of(const Layer& layer, std::string_view option, std::int64_t axis, const Shape& shape);

/// axis_of() for a list of different axes; returns them in ascending order. An empty list means all axes.
std::vector<int> axes_of(const Layer& layer, std::string_view option, std::span<const std::int64_t> axes,
                         const Shape& shape);

/// The product of the extents of the axes [first, last).
std::int64_t product(const Shape& shape, int first, int last);

/// Throws Error(config) unless there is one input.
void require_one_input(const Layer& layer, std::span<const Shape> inputs);

}  // namespace lockstep
