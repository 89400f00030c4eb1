// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: pixels of JPEG files, in memory by libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "io/image_header.h"

namespace lockstep {

class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Begins the decoding of a file, which must stay until the pixels are read. Throws ImageDamage.
  ImageHeader begin(std::span<const std::byte> file, int channels);
  /// Reads all pixels, height x width x channels of the header, and the rest of the file. Throws ImageDamage.
  void read(std::uint8_t* pixels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
