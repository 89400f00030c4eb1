// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a value lies, in the axes that the user knows, for messages. Everything counts from 0, as the options
// do and as arrays of NumPy do.
#pragma once

#include <cstdint>
#include <string>

#include "core/shape.h"

namespace lockstep {

/// The value `index` of a sample with its channels last: "voxel [4, 0, 2], channel 1", "pixel [0, 2]",
/// "value [3, 1]" of a sequence, "value 3 (from 0)". The channel is left out where there is one.
std::string place_text(const Shape& shape, std::int64_t index);

/// "label column 3 (from 0)"; "the label" where there is one.
std::string label_column_text(std::int64_t column, std::int64_t columns);

}  // namespace lockstep
