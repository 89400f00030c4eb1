// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pictures as PNG files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// 8 bits per channel, row by row from the top.
struct Picture {
  int width = 0, height = 0;
  int channels = 3;  ///< 1: grey; 3: red, green, blue; 4: and alpha
  std::vector<std::uint8_t> pixels;

  Picture() = default;
  Picture(int wide, int high, int number_of_channels, std::uint8_t fill);
  std::uint8_t* at(int x, int y) {
    return pixels.data() +
           (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) *
               static_cast<std::size_t>(channels);
  }
  const std::uint8_t* at(int x, int y) const { return const_cast<Picture*>(this)->at(x, y); }
};

/// The bytes of a PNG file. Throws Error(bug) for a picture without pixels.
std::string png_of(const Picture& picture);

}  // namespace lockstep
