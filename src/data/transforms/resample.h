// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Resizing a box of an image, as Pillow does it for float images: output pixel i stands for the interval [i,
// i
// + 1) of `out` pixels, its centre lies at (i + 1/2) * box / out in the box, and its value is the weighted
// mean of the input pixels around that centre. The weights are a triangle (bilinear) or a cubic (bicubic, a =
// -1/2), widened by the factor of a reduction (antialiasing). nearest takes the pixel that holds the centre.
#pragma once

#include <string>

#include "data/transforms/family.h"

namespace lockstep {

enum class Resampling { bilinear, bicubic, nearest };

template <auto... kPath>
constexpr ParamSpec resampling_option() {
  return option<kPath...>("method", "bilinear", one_of("bilinear|bicubic|nearest"),
                          "filter; widened where the image gets smaller");
}

/// A box in pixels of the input, which need not be whole.
struct ResampleBox {
  double x = 0, y = 0, width = 0, height = 0;
};

/// Values of scratch that resample() needs for boxes of images of the form `from`.
std::int64_t resample_scratch(const Grid& from, const Grid& to);
/// The box of `in` in the size of `to`.
void resample(const float* in, const Grid& from, const ResampleBox& box, Resampling method, float* out,
              const Grid& to, float* scratch);

}  // namespace lockstep
