// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/color_math.h"

#include <cmath>

namespace lockstep {

namespace {

float limited(float value, float max) { return std::min(std::max(value, 0.0F), max); }

/// The mean of the grey image. Sums of 16 pixels side by side, so that they vectorise.
double mean_gray(const float* in, const ColorImage& image) {
  constexpr std::int64_t kPixels = 16, kLanes = kPixels * 3;
  const std::int64_t width = kPixels * image.channels, count = image.pixels * image.channels;
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + width <= count; i += width)
    for (std::int64_t lane = 0; lane < width; ++lane) lanes[lane] += in[i + lane];
  for (std::int64_t lane = 0; i < count; ++i, ++lane) lanes[lane] += in[i];
  double sum = 0;
  for (std::int64_t pixel = 0; pixel < kPixels; ++pixel)
    sum += image.channels == 3 ? gray_of(lanes + 3 * pixel) : lanes[pixel];
  return sum / static_cast<double>(image.pixels);
}

}  // namespace

void change_brightness(const float* in, const ColorImage& image, float factor, float* out) {
  for (std::int64_t i = 0; i < image.pixels * image.channels; ++i)
    out[i] = limited(in[i] * factor, image.max);
}

void change_contrast(const float* in, const ColorImage& image, float factor, float* out) {
  const auto rest = static_cast<float>((1 - static_cast<double>(factor)) * mean_gray(in, image));
  for (std::int64_t i = 0; i < image.pixels * image.channels; ++i)
    out[i] = limited(in[i] * factor + rest, image.max);
}

void change_saturation(const float* in, const ColorImage& image, float factor, float* out) {
  if (image.channels != 3) {
    if (in != out) std::copy_n(in, image.pixels * image.channels, out);
    return;
  }
  for (std::int64_t i = 0; i < image.pixels; ++i) {
    const float rest = (1 - factor) * gray_of(in + 3 * i);
    for (std::int64_t c = 0; c < 3; ++c) out[3 * i + c] = limited(in[3 * i + c] * factor + rest, image.max);
  }
}

void change_hue(const float* in, const ColorImage& image, float shift, float* out) {
  if (image.channels != 3) {
    if (in != out) std::copy_n(in, image.pixels * image.channels, out);
    return;
  }
  for (std::int64_t i = 0; i < image.pixels; ++i) {
    const float r = in[3 * i], g = in[3 * i + 1], b = in[3 * i + 2];
    const float value = std::max({r, g, b}), chroma = value - std::min({r, g, b});
    float hue = 0;  // in sixths of a turn
    if (chroma > 0) {
      hue = value == r ? (g - b) / chroma : value == g ? 2 + (b - r) / chroma : 4 + (r - g) / chroma;
    }
    hue += 6 * shift;
    hue -= 6 * std::floor(hue / 6);
    // channel = value - chroma * max(0, min(k, 4 - k, 1)), k = (n + hue) mod 6 with n = 5, 3, 1
    const auto channel = [&](float n) {
      float k = n + hue;
      if (k >= 6) k -= 6;
      return value - chroma * std::max(0.0F, std::min({k, 4 - k, 1.0F}));
    };
    out[3 * i] = limited(channel(5), image.max);
    out[3 * i + 1] = limited(channel(3), image.max);
    out[3 * i + 2] = limited(channel(1), image.max);
  }
}

}  // namespace lockstep
