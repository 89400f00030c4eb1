// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/sample_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace lockstep {

namespace {

constexpr int kCell = 48, kBorder = 4;
constexpr std::uint8_t kPaper = 128;

/// The smallest whole factor with which the longer side has kCell pixels.
int enlargement(const Picture& picture) {
  return std::max(
      1, (kCell + std::max(picture.width, picture.height) - 1) / std::max(picture.width, picture.height));
}

void paste(const Picture& from, int factor, Picture& to, int left, int top) {
  for (int y = 0; y < from.height * factor; ++y)
    for (int x = 0; x < from.width * factor; ++x) {
      const std::uint8_t* const pixel = from.at(x / factor, y / factor);
      for (int c = 0; c < 3; ++c) to.at(left + x, top + y)[c] = pixel[from.channels == 3 ? c : 0];
    }
}

/// The picture in a size that fits: the mean of the pixels that fall into one.
Picture reduced(const Picture& from, int most_width) {
  if (from.width <= most_width) return from;
  const int width = most_width;
  const int height =
      std::max(1, static_cast<int>(std::lround(static_cast<double>(from.height) * width / from.width)));
  Picture to(width, height, from.channels, 0);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < from.channels; ++c) {
        const int x0 = x * from.width / width, x1 = std::max(x0 + 1, (x + 1) * from.width / width);
        const int y0 = y * from.height / height, y1 = std::max(y0 + 1, (y + 1) * from.height / height);
        int sum = 0;
        for (int v = y0; v < y1; ++v)
          for (int u = x0; u < x1; ++u) sum += from.at(u, v)[c];
        to.at(x, y)[c] = static_cast<std::uint8_t>(sum / ((x1 - x0) * (y1 - y0)));
      }
  return to;
}

/// Two pixels, one above the other: the upper one is the colour of the half block.
std::string half_block(const Picture& picture, int x, int y) {
  const auto color = [&](int at) {
    const std::uint8_t* const pixel = picture.at(x, std::min(at, picture.height - 1));
    const int step = picture.channels == 3 ? 1 : 0;
    return fmt::format("{};{};{}", pixel[0], pixel[step], pixel[2 * step]);
  };
  return fmt::format("\x1b[38;2;{};48;2;{}m▀", color(y), color(y + 1));
}

char shade(const Picture& picture, int x, int y) {
  static constexpr std::string_view kShades = " .:-=+*#%@";
  const std::uint8_t* const pixel = picture.at(x, y);
  const int gray =
      picture.channels == 3 ? (pixel[0] * 299 + pixel[1] * 587 + pixel[2] * 114) / 1000 : pixel[0];
  return kShades[static_cast<std::size_t>(gray) * kShades.size() / 256];
}

}  // namespace

bool has_picture(const Shape& shape) { return shape.rank() == 3 || shape.rank() == 4; }

Picture picture_of(const Shape& shape, std::span<const float> values, float black, float white) {
  LOCKSTEP_CHECK(has_picture(shape));
  const auto height = static_cast<int>(shape[shape.rank() - 3]),
             width = static_cast<int>(shape[shape.rank() - 2]);
  const auto channels = static_cast<std::size_t>(shape.last());
  const std::size_t slice = shape.rank() == 4 ? static_cast<std::size_t>(shape[0] / 2) : 0;
  const float* in =
      values.data() + slice * static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * channels;
  Picture picture(width, height, channels == 3 ? 3 : 1, 0);
  const float range = white > black ? white - black : 1;
  std::uint8_t* out = picture.pixels.data();
  for (int pixel = 0; pixel < width * height; ++pixel, in += channels)
    for (int c = 0; c < picture.channels; ++c)
      *out++ = static_cast<std::uint8_t>(std::clamp((in[c] - black) / range, 0.0F, 1.0F) * 255 + 0.5F);
  return picture;
}

Picture contact_sheet(const std::vector<std::vector<Picture>>& rows) {
  int width = 0, height = kBorder;
  for (const auto& row : rows) {
    LOCKSTEP_CHECK(!row.empty());
    const int factor = enlargement(row[0]);
    width = std::max(width, kBorder + static_cast<int>(row.size()) * (row[0].width * factor + kBorder));
    height += row[0].height * factor + kBorder;
  }
  Picture sheet(width, height, 3, kPaper);
  int top = kBorder;
  for (const auto& row : rows) {
    const int factor = enlargement(row[0]);
    int left = kBorder;
    for (const Picture& picture : row) {
      paste(picture, factor, sheet, left, top);
      left += picture.width * factor + kBorder;
    }
    top += row[0].height * factor + kBorder;
  }
  return sheet;
}

std::string terminal_pictures(std::span<const Picture> pictures, int columns, bool color) {
  if (pictures.empty()) return {};
  const int each = columns / static_cast<int>(pictures.size()) - 1;
  // A character is twice as high as wide: without colours, two of them are a pixel.
  const int most = std::max(2, color ? each : each / 2);
  std::vector<Picture> small;
  for (const Picture& picture : pictures) small.push_back(reduced(picture, most));
  std::string text;
  for (int y = 0; y < small[0].height; y += color ? 2 : 1) {
    for (const Picture& picture : small) {
      for (int x = 0; x < picture.width; ++x) {
        if (color)
          text += half_block(picture, x, y);
        else
          text += std::string(2, shade(picture, x, y));
      }
      if (color) text += "\x1b[0m";
      text += ' ';
    }
    text += '\n';
  }
  return text;
}

}  // namespace lockstep
