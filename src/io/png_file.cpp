// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/png_file.h"

#include <png.h>

#include "core/error.h"

namespace lockstep {

Picture::Picture(int wide, int high, int number_of_channels, std::uint8_t fill)
    : width(wide),
      height(high),
      channels(number_of_channels),
      pixels(static_cast<std::size_t>(wide) * static_cast<std::size_t>(high) *
                 static_cast<std::size_t>(number_of_channels),
             fill) {}

std::string png_of(const Picture& picture) {
  LOCKSTEP_CHECK(picture.width > 0 && picture.height > 0 &&
                 (picture.channels == 1 || picture.channels == 3 || picture.channels == 4));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = picture.channels == 1   ? PNG_FORMAT_GRAY
                 : picture.channels == 3 ? PNG_FORMAT_RGB
                                         : PNG_FORMAT_RGBA;
  png_alloc_size_t size = 0;
  const auto write = [&](void* to) {
    if (png_image_write_to_memory(&image, to, &size, 0, picture.pixels.data(), 0, nullptr) == 0)
      throw Error(ErrorKind::bug, fmt::format("libpng cannot write a picture of {} x {}: {}", picture.width,
                                              picture.height, image.message));
  };
  write(nullptr);  // the size alone
  std::string bytes(size, '\0');
  write(bytes.data());
  bytes.resize(size);
  return bytes;
}

}  // namespace lockstep
