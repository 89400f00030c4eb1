// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers stored in one of the types of core/data.h, and comparisons of stored results with the float32
// kernel's results, rounded once.
#pragma once

#include "core/data.h"
#include "unit/kernels/kernel_testing.h"

namespace lockstep {

/// Half the distance from 1 to T's next number: the largest relative error of one rounding to T, for numbers
/// that are not subnormal in T.
template <typename T>
inline constexpr double kRoundingOf = dtype_of<T> == DType::bf16  ? 0x1p-8
                                      : dtype_of<T> == DType::f16 ? 0x1p-11
                                                                  : kRounding;

/// Numbers of T in 64-byte aligned memory, shifted by `shift` elements.
template <typename T>
class Stored {
 public:
  explicit Stored(std::int64_t count, int shift = 0)
      : count_(static_cast<std::size_t>(count)),
        shift_(static_cast<std::size_t>(shift)),
        buffer_(cpu_device(), (count_ + shift_ + 1) * sizeof(T)) {}
  explicit Stored(const Values& values, int shift = 0)
      : Stored(static_cast<std::int64_t>(values.size()), shift) {
    for (std::size_t i = 0; i < count_; ++i) data()[i] = from_float<T>(static_cast<float>(values[i]));
  }
  T* data() const { return static_cast<T*>(buffer_.data()) + shift_; }
  std::size_t size() const { return count_; }
  /// The same numbers in float32.
  Floats widened() const {
    Floats wide(static_cast<std::int64_t>(count_));
    for (std::size_t i = 0; i < count_; ++i) wide[i] = to_float(data()[i]);
    return wide;
  }
  Values values() const { return widened().values(); }
  std::vector<T> host() const { return {data(), data() + count_}; }

 private:
  std::size_t count_, shift_;
  Buffer buffer_;
};

/// `stored` is `exact` rounded to T, bit for bit (or both NaN).
template <typename T>
void expect_rounded(const Stored<T>& stored, const Floats& exact, const std::string& what) {
  ASSERT_EQ(stored.size(), exact.size()) << what;
  int reported = 0;
  for (std::size_t i = 0; i < exact.size() && reported < 5; ++i) {
    const T expected = from_float<T>(exact[i]);
    if (std::memcmp(stored.data() + i, &expected, sizeof(T)) == 0) continue;
    if (std::isnan(to_float(stored.data()[i])) && std::isnan(exact[i])) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << to_float(stored.data()[i]) << ", not "
                  << to_float(expected);
    ++reported;
  }
}

}  // namespace lockstep
