// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/npy_format.h"

#include <fmt/format.h>

#include <bit>

#include "core/error.h"

namespace lockstep {

namespace {

constexpr std::size_t kAlignment = 64;  // of the numbers in the file
constexpr std::size_t kPreamble = 10;   // magic, version, length

const char* code_of(DType type) {
  switch (type) {
    case DType::u8:
      return "u1";
    case DType::i8:
      return "i1";
    case DType::u16:
      return "u2";
    case DType::i16:
      return "i2";
    case DType::i32:
      return "i4";
    case DType::i64:
      return "i8";
    case DType::f16:
      return "f2";
    case DType::f32:
      return "f4";
    case DType::f64:
      return "f8";
    case DType::bf16:
      break;
  }
  LOCKSTEP_CHECK(false, "NumPy has no {}", name_of(type));
  return "";
}

}  // namespace

std::string npy_header(DType type, std::span<const std::int64_t> extents) {
  std::string shape;
  for (const std::int64_t extent : extents) shape += fmt::format("{}{},", shape.empty() ? "" : " ", extent);
  const char order = size_in_bytes(type) == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", order,
                                 code_of(type), shape);
  while ((kPreamble + text.size() + 1) % kAlignment != 0) text += ' ';
  text += '\n';
  std::string all("\x93NUMPY\x01\x00", 8);
  all += static_cast<char>(text.size() & 0xFF);
  all += static_cast<char>(text.size() >> 8);
  return all + text;
}

}  // namespace lockstep
