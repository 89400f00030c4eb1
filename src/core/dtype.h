// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Element types. Arithmetic is in float32. Activations are stored as f32, bf16 or f16; data sets and
// checkpoints also use the other types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/half.h"

namespace lockstep {

/// The values are part of digests on disk: do not change them.
enum class DType : std::uint8_t {
  f32 = 1,
  f64 = 2,
  bf16 = 3,
  f16 = 4,
  i32 = 5,
  i64 = 6,
  u8 = 7,
  i8 = 8,
  i16 = 9,
  u16 = 10
};

std::size_t size_in_bytes(DType type);
std::string_view name_of(DType type);

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::u16;
};
template <typename T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace lockstep
