// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers of any activation type on a GPU, compared with those on the CPU.
#pragma once

#include "unit/kernels/stored_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {

template <typename T>
OnDevice<T> on_device(const Stored<T>& numbers, int shift) {
  return OnDevice<T>(numbers.host(), shift);
}
template <typename T>
std::vector<float> widened(const std::vector<T>& numbers) {
  std::vector<float> wide;
  for (const T number : numbers) wide.push_back(to_float(number));
  return wide;
}
/// Checks for equal bits, or both NaN.
template <typename T>
void expect_same(const OnDevice<T>& actual, const Stored<T>& expected, const std::string& what) {
  expect_same(widened(actual.host()), widened(expected.host()), what);
}

/// The error bound after rounding to T of a value with float32 error `error`: half the distance between
/// adjacent numbers more.
template <typename T>
double rounded_error(double value, double error) {
  constexpr bool kBrain = dtype_of<T> == DType::bf16;
  return error + (kBrain ? 0x1p-8 : 0x1p-11) * (std::abs(value) + error) + (kBrain ? 0x1p-134 : 0x1p-25);
}
template <typename T>
void expect_near_rounded(const OnDevice<T>& actual, const Floats& expected, double error,
                         const std::string& what) {
  const std::vector<float> values = widened(actual.host());
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(expected[i]);
    ASSERT_NEAR(static_cast<double>(values[i]), value, rounded_error<T>(value, error)) << what << " " << i;
  }
}

}  // namespace lockstep
