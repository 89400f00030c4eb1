// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: what the decoders of JPEG and PNG have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

/// What a decoder found in the header of an image.
struct ImageHeader {
  std::int64_t height = 0, width = 0;
  std::int64_t channels = 0;  ///< of the pixels that the decoder delivers: 1, 3, or 4 for CMYK
  int orientation = 1;        ///< EXIF: 1 (as it is) to 8
  int value_bytes = 1;        ///< of the pixels that the decoder delivers: 1, or 2 in this machine's order
  bool is_narrowed = false;   ///< the file has 16 bits per value, of which 8 are delivered
};

/// What becomes of the values of pixels.
struct PixelForm {
  bool wide = false;     ///< 16 bits: those of files with fewer are stretched (255 becomes 65535)
  bool indices = false;  ///< the index of a pixel's colour in the palette, and grey values as they are stored
};

/// A damaged file: what is wrong, and where in the file.
struct ImageDamage {
  std::string what;
  std::int64_t byte = 0;
};

/// The orientation, 1 to 8, of EXIF data (with or without "Exif\0\0" before it); 0: none, or damaged, as
/// viewers take it.
int exif_orientation(std::span<const std::byte> exif);

}  // namespace lockstep
