// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Images and what Pillow makes of them: tests/vectors/make_image_vectors.py.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "support/hdf5_vectors.h"
#include "support/test_folders.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {

using Bytes = std::vector<std::uint8_t>;

struct Picture {
  std::string name;
  Bytes file, pixels;
  std::int64_t height = 0, width = 0;
  bool is_jpeg() const { return name.ends_with(".jpg"); }
};

inline Hdf5Vectors image_vectors() { return Hdf5Vectors(test_vectors("images.h5")); }

inline std::vector<Picture> pictures() {
  const Hdf5Vectors from = image_vectors();
  const Bytes files = from.read<std::uint8_t>("files", H5T_NATIVE_UINT8);
  const Bytes pixels = from.read<std::uint8_t>("pixels", H5T_NATIVE_UINT8);
  auto file = files.begin(), pixel = pixels.begin();
  std::vector<Picture> all;
  for (const std::string& line : from.lines("names")) {
    Picture picture;
    std::ptrdiff_t bytes = 0;
    std::istringstream(line) >> picture.name >> bytes >> picture.height >> picture.width;
    const std::ptrdiff_t values = picture.height * picture.width * 3;
    picture.file.assign(file, file + bytes);
    picture.pixels.assign(pixel, pixel + values);
    file += bytes;
    pixel += values;
    all.push_back(picture);
  }
  return all;
}

inline Picture picture(const std::string& name) {
  for (Picture& one : pictures())
    if (one.name == name) return one;
  ADD_FAILURE() << name;
  return {};
}

}  // namespace lockstep::testing
