// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Decodes JPEG and PNG files in memory to 8-bit pixels, or 16-bit ones. The first bytes decide the format,
// not the name.
//
//  JPEG   baseline and progressive; grey, YCbCr, RGB, CMYK and YCCK; libjpeg-turbo's accurate integer inverse
//         DCT and its interpolating ("fancy") upsampling of chroma, which are its defaults and Pillow's.
//  PNG    all types: grey, colour, palette, 1 to 16 bits, interlaced. 16 bits become round(v * 255 / 65535),
//  or
//         stay (PixelForm::wide). Alpha and a transparent colour are dropped; gamma and colour profiles are
//         ignored.
//
// 3 channels of a grey image are equal. 1 channel of a JPEG file with luminance is its luminance as stored;
// of other images (19595 R + 38470 G + 7471 B + 32768) / 65536, rounded down (ITU-R 601, as Pillow's mode L).
// CMYK, stored as its complement (Adobe's convention), becomes R = K' - (255 - C') K' / 255, rounded, and so
// on.
//
// Why bytes: decoded images take ten to twenty times the bytes of JPEG files, and the size of a sample must
// be fixed, so that memory, blocks and the step plan stay arithmetic. A set that fits is decoded once into
// memory, a larger one whenever its block is read. The libraries return their errors by longjmp, so the
// functions that call them have no objects with destructors. libjpeg's warnings that mean missing pixels are
// errors. The SIMD versions of the accurate inverse transform give the bits of the plain code; libjpeg's
// scaled decoding is not used, because its pixels are others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "io/image_header.h"

namespace lockstep {

/// The name of an image, for messages: called when it is needed.
using ImageName = FunctionRef<std::string()>;

/// Rows from the top, pixels from the left, channels side by side.
struct ImageView {
  const std::uint8_t* pixels = nullptr;
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t value_bytes = 1;  ///< 2: values of 16 bits
  bool is_narrowed = false;      ///< the file has 16 bits per value
};

/// Throws Error(data) that says what a file is, unless its first bytes are those of a JPEG or PNG file.
void require_image(std::span<const std::byte> start, ImageName name);

/// A decoder for one image after another, by one thread at a time: its memory grows to that of the largest
/// image.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  /// Room for an image of a known size.
  struct Room {
    std::uint8_t* pixels = nullptr;
    std::int64_t height = 0, width = 0;
  };

  /// Decodes a whole file to `channels` (1 or 3) channels. With `upright` the image is turned as its EXIF
  /// orientation says. The result is valid until the next call; an image of the size of `room` is written
  /// there, unless it must be turned. Throws Error(data) at "<name>, byte N" for a damaged or truncated file,
  /// and for one that is neither JPEG nor PNG.
  ImageView decode(std::span<const std::byte> file, int channels, bool upright, ImageName name,
                   const Room& room, const PixelForm& form = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
