// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/tensor_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/error.h"

namespace lockstep {

namespace {

double from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// IEEE 754 binary16.
double from_f16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31)
    value =
        fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return (bits >> 15) != 0 ? -value : value;
}

template <typename T>
std::vector<double> to_double(const void* data, std::size_t count) {
  const T* values = static_cast<const T*>(data);
  return std::vector<double>(values, values + count);
}

std::vector<double> to_double(const void* data, std::size_t count, double (*convert)(std::uint16_t)) {
  const auto* values = static_cast<const std::uint16_t*>(data);
  std::vector<double> result(count);
  std::transform(values, values + count, result.begin(), convert);
  return result;
}

}  // namespace

std::vector<double> values_of(const Tensor& tensor) {
  const void* data = tensor.raw();
  const auto count = static_cast<std::size_t>(tensor.num_elements());
  switch (tensor.dtype()) {
    case DType::f32:
      return to_double<float>(data, count);
    case DType::f64:
      return to_double<double>(data, count);
    case DType::bf16:
      return to_double(data, count, from_bf16);
    case DType::f16:
      return to_double(data, count, from_f16);
    case DType::i32:
      return to_double<std::int32_t>(data, count);
    case DType::i64:
      return to_double<std::int64_t>(data, count);
    case DType::u8:
      return to_double<std::uint8_t>(data, count);
    case DType::i8:
      return to_double<std::int8_t>(data, count);
    case DType::i16:
      return to_double<std::int16_t>(data, count);
    case DType::u16:
      return to_double<std::uint16_t>(data, count);
  }
  LOCKSTEP_CHECK(false, "dtype {}", static_cast<int>(tensor.dtype()));
}

}  // namespace lockstep
