// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/kept_array.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "data/npy_header.h"
#include "io/npy_format.h"

namespace lockstep {

namespace {

constexpr std::size_t kHeaderPreamble = 10;
constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);

}  // namespace

bool is_npy(std::string_view bytes) { return bytes.starts_with(kMagic); }

std::string kept_array_file(std::span<const std::int64_t> extents,
                            std::initializer_list<std::span<const float>> parts) {
  std::string bytes = npy_header(DType::f32, extents);
  for (const std::span<const float> part : parts)
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size_bytes());
  return bytes;
}

KeptArray kept_array(std::string_view bytes, std::string_view what, const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::data, fmt::format("is no {}: {}", what, why), where,
                "Restore the file: the model was trained with its numbers.");
  };
  if (bytes.size() < kHeaderPreamble || !is_npy(bytes)) refuse("it is no .npy file");
  const auto byte = [&](std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at]));
  };
  const std::size_t begin = kHeaderPreamble + byte(8) + 256 * byte(9);
  if (bytes.size() < begin) refuse("it is cut short");
  const NpyHeader header =
      parse_npy_header(bytes.substr(kHeaderPreamble, begin - kHeaderPreamble), kHeaderPreamble, where);
  if (bytes.substr(0, begin) != npy_header(DType::f32, header.extents)) refuse("it is no array of float32");
  const auto count = static_cast<std::size_t>(header.rows() * header.values_per_row());
  if (bytes.size() != begin + count * sizeof(float))
    refuse(fmt::format("it has {} bytes instead of {}", bytes.size(), begin + count * sizeof(float)));
  KeptArray array{header.extents, std::vector<float>(count)};
  std::memcpy(array.values.data(), bytes.data() + begin, count * sizeof(float));
  if (!std::ranges::all_of(array.values, [](float number) { return std::isfinite(number); }))
    refuse("it has values that are not finite");
  return array;
}

}  // namespace lockstep
