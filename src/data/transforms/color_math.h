// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Changes of the colours of an image whose values lie in [0, max]. They are those of torchvision's functional
// transforms for float images; results are limited to [0, max]. in == out is allowed.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep {

struct ColorImage {
  std::int64_t pixels;
  std::int64_t channels;  ///< 3: red, green, blue; 1: grey
  float max;
};

/// ITU-R 601-2.
inline float gray_of(const float* pixel) {
  return 0.2989F * pixel[0] + 0.587F * pixel[1] + 0.114F * pixel[2];
}

/// factor * values.
void change_brightness(const float* in, const ColorImage& image, float factor, float* out);
/// factor * values + (1 - factor) * the mean of the grey image.
void change_contrast(const float* in, const ColorImage& image, float factor, float* out);
/// factor * values + (1 - factor) * the grey image. A grey image stays as it is.
void change_saturation(const float* in, const ColorImage& image, float factor, float* out);
/// Adds `shift`, in turns, to the hue of HSV. A grey image stays as it is.
void change_hue(const float* in, const ColorImage& image, float shift, float* out);

}  // namespace lockstep
