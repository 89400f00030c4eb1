// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/narrow_integers.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "core/error.h"

namespace lockstep {

namespace {

template <typename T>
void narrow(std::span<const std::int64_t> from, void* to, const std::string& name) {
  T* out = static_cast<T*>(to);
  for (const std::int64_t value : from) {
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
      throw Error(ErrorKind::data,
                  fmt::format("feature '{}': {} does not fit into {}", name, value, name_of(dtype_of<T>)), {},
                  "Set the option dtype to int64.");
    *out++ = static_cast<T>(value);
  }
}

}  // namespace

void narrow(std::span<const std::int64_t> from, DType type, void* to, const std::string& name) {
  switch (type) {
    case DType::u8:
      return narrow<std::uint8_t>(from, to, name);
    case DType::i8:
      return narrow<std::int8_t>(from, to, name);
    case DType::u16:
      return narrow<std::uint16_t>(from, to, name);
    case DType::i16:
      return narrow<std::int16_t>(from, to, name);
    case DType::i32:
      return narrow<std::int32_t>(from, to, name);
    default:
      std::memcpy(to, from.data(), from.size_bytes());
  }
}

}  // namespace lockstep
