// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Changes of tone and sharpness of an image whose values lie in [0, max], as torchvision's functional
// transforms make them. All work in place.
#pragma once

#include <cstdint>

#include "data/transforms/color_math.h"
#include "data/transforms/family.h"

namespace lockstep {

/// Keeps the first `bits` of 8 bits per value: values are rounded to 256 levels before.
void posterize(float* values, const ColorImage& image, int bits);
/// max - v where v >= threshold.
void solarize(float* values, const ColorImage& image, float threshold);
/// Each channel stretched to [0, max]; a constant one stays.
void auto_contrast(float* values, const ColorImage& image);
/// Each channel's histogram of 256 levels made flat; values are rounded to levels before.
void equalize(float* values, const ColorImage& image);
/// factor * values + (1 - factor) * values smoothed by [1 1 1; 1 5 1; 1 1 1] / 13; the border is not
/// smoothed. `scratch` has the image's values.
void change_sharpness(float* values, const Grid& image, float max, float factor, float* scratch);

}  // namespace lockstep
