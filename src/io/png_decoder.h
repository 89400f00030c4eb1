// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: pixels of PNG files, in memory by libpng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "io/image_header.h"

namespace lockstep {

class PngDecoder {
 public:
  PngDecoder();
  ~PngDecoder();
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  /// Begins the decoding of a file, which must stay until the pixels are read. The header's channels are 1
  /// for grey images, unless `channels` is 3, and for indices, and 3 for others. Throws ImageDamage.
  ImageHeader begin(std::span<const std::byte> file, int channels, const PixelForm& form);
  /// Reads all pixels, height x width x channels values of the header, and the rest of the file. Throws
  /// ImageDamage.
  void read(std::uint8_t* pixels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
