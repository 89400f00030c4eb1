// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// EXIF 2.32, section 4.6.2: a TIFF header ("II" or "MM", 42, the place of the first directory), and entries
// of 12 bytes: tag, type, count, value.
#include <cstring>

#include "io/image_header.h"

namespace lockstep {

namespace {

constexpr char kPrefix[] = "Exif\0";  // with two zeros
constexpr std::uint32_t kOrientation = 0x0112, kShort = 3, kTiff = 42;
constexpr std::size_t kEntryBytes = 12;

}  // namespace

int exif_orientation(std::span<const std::byte> exif) {
  if (exif.size() >= sizeof kPrefix && std::memcmp(exif.data(), kPrefix, sizeof kPrefix) == 0)
    exif = exif.subspan(sizeof kPrefix);
  if (exif.size() < 8) return 0;
  const bool little = exif[0] == std::byte{'I'} && exif[1] == std::byte{'I'};
  if (!little && !(exif[0] == std::byte{'M'} && exif[1] == std::byte{'M'})) return 0;
  // A number of `count` bytes; the caller has checked that they are there.
  const auto number = [&](std::size_t at, std::size_t count) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
      value = value << 8 | static_cast<std::uint32_t>(exif[at + (little ? count - 1 - i : i)]);
    return value;
  };
  if (number(2, 2) != kTiff) return 0;
  const std::size_t directory = number(4, 4);
  if (directory > exif.size() - 2) return 0;
  const std::size_t entries = number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > exif.size()) return 0;
    if (number(entry, 2) != kOrientation) continue;
    const std::uint32_t value = number(entry + 8, 2);
    return number(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 0;
  }
  return 0;
}

}  // namespace lockstep
