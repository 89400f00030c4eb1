// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Affine maps of images. Pixel (x, y) is the point (x, y); the map is about the centre ((width - 1) / 2,
// (height - 1) / 2).
#pragma once

#include "data/transforms/family.h"

namespace lockstep {

enum class Interpolation { bilinear, nearest };

/// Reads the option `interpolation`.
Interpolation interpolation_option(const Params& params);
inline constexpr ParamSpec kInterpolationOption = {"interpolation", ParamType::string, "bilinear",
                                                   one_of("bilinear|nearest"), "between pixels"};

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
