// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A window of an image or a volume, which may reach beyond its borders.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "data/transforms/family.h"

namespace lockstep {

/// What lies beyond the borders. constant: one value. edge: the nearest value. reflect: the mirror image,
/// with the border itself once (numpy.pad's "reflect").
enum class Border { constant, edge, reflect };
struct Padding {
  Border border = Border::constant;
  float fill = 0;
};

/// Options of the member of that type.
template <auto... kPath>
constexpr ParamSpec fill_option() {
  return option<kPath..., &Padding::fill>("fill", "0", between(-1e30, 1e30),
                                          "value beyond the borders, with padding_mode constant");
}
template <auto... kPath>
constexpr ParamSpec padding_mode_option() {
  return option<kPath..., &Padding::border>(
      "padding_mode", "constant", one_of("constant|edge|reflect"),
      "what lies beyond the borders: fill, the nearest value, or the mirror image without the border itself");
}

/// Throws Error(config) if `padding` values beyond a border cannot be mirrored.
void check_padding(const Padding& padding, const Grid& grid, const std::array<std::int64_t, 3>& beyond);

/// out = the values of `in` from `start` (depth, height, width; may be negative) on. `to` has the same
/// channels.
void copy_window(const float* in, const Grid& from, const std::array<std::int64_t, 3>& start, Padding padding,
                 float* out, const Grid& to);

}  // namespace lockstep
