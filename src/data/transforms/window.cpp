// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/window.h"

#include <algorithm>

namespace lockstep {

namespace {

/// The place in [0, size) that stands for place `at`; -1: beyond the border.
std::int64_t inside(std::int64_t at, std::int64_t size, Border border) {
  if (at >= 0 && at < size) return at;
  if (border == Border::constant) return -1;
  if (border == Border::edge) return std::clamp<std::int64_t>(at, 0, size - 1);
  return at < 0 ? -at : 2 * (size - 1) - at;
}

void copy_row(const float* in, const Grid& from, std::int64_t start, Padding padding, float* out,
              std::int64_t width) {
  const std::int64_t channels = from.channels;
  const std::int64_t first = std::clamp<std::int64_t>(-start, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(from.width - start, first, width);
  std::copy_n(in + (first + start) * channels, (last - first) * channels, out + first * channels);
  const auto beyond = [&](std::int64_t begin, std::int64_t end) {
    if (padding.border == Border::constant) {
      std::fill(out + begin * channels, out + end * channels, padding.fill);
      return;
    }
    for (std::int64_t x = begin; x < end; ++x)
      std::copy_n(in + inside(x + start, from.width, padding.border) * channels, channels,
                  out + x * channels);
  };
  beyond(0, first);
  beyond(last, width);
}

}  // namespace

void check_padding(const Padding& padding, const Grid& grid, const std::array<std::int64_t, 3>& beyond) {
  if (padding.border != Border::reflect) return;
  for (int axis = 0; axis < 3; ++axis)
    if (beyond[static_cast<std::size_t>(axis)] >= grid.size(axis))
      throw Error(ErrorKind::config,
                  fmt::format("{} values cannot be mirrored beyond a border of an axis of {}",
                              beyond[static_cast<std::size_t>(axis)], grid.size(axis)),
                  "", "Pad less, or with padding_mode: edge or constant.");
}

void copy_window(const float* in, const Grid& from, const std::array<std::int64_t, 3>& start, Padding padding,
                 float* out, const Grid& to) {
  const std::int64_t row = to.width * to.channels;
  for (std::int64_t z = 0; z < to.depth; ++z)
    for (std::int64_t y = 0; y < to.height; ++y, out += row) {
      const std::int64_t from_z = inside(z + start[0], from.depth, padding.border);
      const std::int64_t from_y = inside(y + start[1], from.height, padding.border);
      if (from_z < 0 || from_y < 0) {
        std::fill(out, out + row, padding.fill);
        continue;
      }
      copy_row(in + (from_z * from.height + from_y) * from.width * from.channels, from, start[2], padding,
               out, to.width);
    }
}

}  // namespace lockstep
