// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/affine_map.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep {

namespace {

/// The map from a place in the output to a place in the input.
struct Inverse {
  double xx, xy, x0, yx, yy, y0;
};

Inverse inverse_of(const AffineParts& parts, const Grid& image) {
  const double angle = parts.degrees * std::numbers::pi / 180;
  const double c = std::cos(angle), s = std::sin(angle);
  // Forward: rotation * shear * scale; counter-clockwise with y down: [c s; -s c].
  const double a = (c * 1 + s * parts.shear_y) * parts.scale, b = (c * parts.shear_x + s * 1) * parts.scale;
  const double d = (-s * 1 + c * parts.shear_y) * parts.scale, e = (-s * parts.shear_x + c * 1) * parts.scale;
  const double determinant = a * e - b * d;
  Inverse map{.xx = e / determinant,
              .xy = -b / determinant,
              .x0 = 0,
              .yx = -d / determinant,
              .yy = a / determinant,
              .y0 = 0};
  const double cx = 0.5 * static_cast<double>(image.width - 1),
               cy = 0.5 * static_cast<double>(image.height - 1);
  const double px = -cx - parts.shift_x, py = -cy - parts.shift_y;
  map.x0 = map.xx * px + map.xy * py + cx;
  map.y0 = map.yx * px + map.yy * py + cy;
  return map;
}

template <int kChannels>
void bilinear(const float* in, const Grid& image, const Inverse& map, float fill, float* out) {
  const std::int64_t channels = kChannels > 0 ? kChannels : image.channels;
  const std::int64_t row = image.width * channels;
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x, out += channels) {
      const double dx = static_cast<double>(x), dy = static_cast<double>(y);
      const double sx = map.xx * dx + map.xy * dy + map.x0, sy = map.yx * dx + map.yy * dy + map.y0;
      if (!(sx > -1 && sy > -1 && sx < static_cast<double>(image.width) &&
            sy < static_cast<double>(image.height))) {
        std::fill_n(out, channels, fill);
        continue;
      }
      const auto left = static_cast<std::int64_t>(std::floor(sx)),
                 top = static_cast<std::int64_t>(std::floor(sy));
      const auto fx = static_cast<float>(sx - static_cast<double>(left));
      const auto fy = static_cast<float>(sy - static_cast<double>(top));
      const float* const corner = in + top * row + left * channels;
      const bool in_left = left >= 0, in_right = left + 1 < image.width, in_top = top >= 0,
                 in_bottom = top + 1 < image.height;
      for (std::int64_t k = 0; k < channels; ++k) {
        const float v00 = in_left && in_top ? corner[k] : fill;
        const float v01 = in_right && in_top ? corner[channels + k] : fill;
        const float v10 = in_left && in_bottom ? corner[row + k] : fill;
        const float v11 = in_right && in_bottom ? corner[row + channels + k] : fill;
        const float upper = v00 + (v01 - v00) * fx, lower = v10 + (v11 - v10) * fx;
        out[k] = upper + (lower - upper) * fy;
      }
    }
}

void nearest(const float* in, const Grid& image, const Inverse& map, float fill, float* out) {
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x, out += image.channels) {
      const double dx = static_cast<double>(x), dy = static_cast<double>(y);
      const double sx = std::floor(map.xx * dx + map.xy * dy + map.x0 + 0.5);
      const double sy = std::floor(map.yx * dx + map.yy * dy + map.y0 + 0.5);
      if (sx >= 0 && sy >= 0 && sx < static_cast<double>(image.width) &&
          sy < static_cast<double>(image.height))
        std::copy_n(in + (static_cast<std::int64_t>(sy) * image.width + static_cast<std::int64_t>(sx)) *
                             image.channels,
                    image.channels, out);
      else
        std::fill_n(out, image.channels, fill);
    }
}

}  // namespace

void apply_affine(const float* in, const Grid& image, const AffineParts& parts, Interpolation interpolation,
                  float fill, float* out) {
  const Inverse map = inverse_of(parts, image);
  if (interpolation == Interpolation::nearest) return nearest(in, image, map, fill, out);
  if (image.channels == 1) return bilinear<1>(in, image, map, fill, out);
  if (image.channels == 3) return bilinear<3>(in, image, map, fill, out);
  bilinear<0>(in, image, map, fill, out);
}

}  // namespace lockstep
