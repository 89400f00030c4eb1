// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples as pictures: a contact sheet, and blocks in a terminal. Images are shown as they are, volumes by
// their middle slice; of other numbers of channels than 3, the first one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/shape.h"
#include "io/png_file.h"

namespace lockstep {

/// A sample can be shown: it is an image or a volume.
bool has_picture(const Shape& shape);
/// `values` from `black` to `white` as a picture. Needs has_picture().
Picture picture_of(const Shape& shape, std::span<const float> values, float black, float white);

/// All pictures have one size per row. Row by row, each enlarged by a whole factor to at least 48 pixels,
/// with a border.
Picture contact_sheet(const std::vector<std::vector<Picture>>& rows);

/// Pictures side by side, in lines of text of at most `columns` characters. With `color`: half blocks in
/// 24-bit colours; otherwise characters from dark to bright.
std::string terminal_pictures(std::span<const Picture> pictures, int columns, bool color);

}  // namespace lockstep
