// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Axes of a sample as options give them (-1 is the last one), and copies between arrays of samples. For
// layers.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/layer.h"

namespace lockstep {

/// Checked against `shape`, in [0, rank). Throws Error(config) that names layer, option and shape.
int axis_of(const Layer& layer, std::string_view option, std::int64_t axis, const Shape& shape);

/// The same for a list: ascending, each once. An empty list means all axes.
std::vector<int> axes_of(const Layer& layer, std::string_view option, std::span<const std::int64_t> axes,
                         const Shape& shape);

/// Product of the extents of [first, last).
std::int64_t product(const Shape& shape, int first, int last);

/// Throws Error(config) unless there is one input.
void require_one_input(const Layer& layer, std::span<const Shape> inputs);

}  // namespace lockstep
