// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Labels of pictures: how wide a text is at most, and what is left of one that is too long. Widths are those
// of DejaVu Sans, which is wider than the fonts that a system uses otherwise: a label that fits here fits
// there.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Size of the labels in the SVGs of reports (page.css), in pixels.
inline constexpr double kLabelPixels = 11;

/// Pixels that UTF-8 text takes at a font size of `pixels`.
double text_width(std::string_view text, double pixels = kLabelPixels, bool bold = false);

/// The text, or, if it is wider than `width`, its end after a slash or a dot ("…block/conv1"), if it is a
/// path or a key, else its begin and its end with "…" between them. At least one character stays.
std::string fitted(const std::string& text, double width, double pixels = kLabelPixels, bool bold = false);

}  // namespace lockstep
