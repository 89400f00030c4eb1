// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Affine maps of images. Pixel (x, y) is the point (x, y); the map is about the centre ((width - 1) / 2,
// (height - 1) / 2).
#pragma once

#include "data/transforms/family.h"

namespace lockstep {

enum class Interpolation { bilinear, nearest };

template <auto... kPath>
constexpr ParamSpec interpolation_option() {
  return option<kPath...>("interpolation", "bilinear", one_of("bilinear|nearest"), "between pixels");
}
/// What lies beyond the borders.
template <auto... kPath>
constexpr ParamSpec beyond_option() {
  return option<kPath...>("fill", "0", between(-1e30, 1e30), "value beyond the borders");
}

/// What happens to the picture, in this order: scaling, shearing, rotation, shift.
struct AffineParts {
  double degrees = 0;               ///< counter-clockwise, as the picture is seen (y points down)
  double scale = 1;                 ///< above 1: larger
  double shear_x = 0, shear_y = 0;  ///< x += shear_x * y, and y += shear_y * x
  double shift_x = 0, shift_y = 0;  ///< in pixels, to the right and down
};

/// out(x, y) = the value of `in` at the point that the map takes to (x, y). Beyond the borders the image has
/// the value `fill`, also where a point between two pixels is interpolated.
void apply_affine(const float* in, const Grid& image, const AffineParts& parts, Interpolation interpolation,
                  float fill, float* out);

}  // namespace lockstep
