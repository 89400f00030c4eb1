// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers for the tests of distributions, and their histogram and moments by brute force.
#pragma once

#include <algorithm>
#include <cfloat>
#include <limits>

#include "kernels/distribution.h"
#include "unit/kernels/kernel_testing.h"

namespace lockstep {

/// The limits of the buckets, built as TensorFlow's are described.
inline std::vector<double> bucket_limits() {
  std::vector<double> positive;
  for (double edge = 1e-12; edge < 1e20; edge *= 1.1) positive.push_back(edge);
  positive.push_back(DBL_MAX);
  std::vector<double> limits;
  for (auto edge = positive.rbegin(); edge != positive.rend(); ++edge) limits.push_back(-*edge);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

/// Zeros of both signs, subnormal and largest numbers, both neighbours of every edge, and `count` random ones
/// of all magnitudes.
inline std::vector<float> numbers_of_all_magnitudes(std::int64_t count) {
  std::vector<float> numbers = {0.0F, -0.0F, FLT_MIN / 8, -FLT_MIN / 8, FLT_MAX, -FLT_MAX, 1.0F, -1.0F};
  for (double edge = 1e-12; edge < 1e20; edge *= 1.1)
    for (const float sign : {1.0F, -1.0F}) {
      const auto near = static_cast<float>(edge);
      for (const float number : {near, std::nextafter(near, 0.0F), std::nextafter(near, FLT_MAX)})
        numbers.push_back(sign * number);
    }
  const Values exponents = random_values(count, 11, -40, 37), signs = random_values(count, 12);
  for (std::size_t i = 0; i < exponents.size(); ++i)
    numbers.push_back(static_cast<float>((signs[i] < 0 ? -1 : 1) * std::pow(10.0, exponents[i])));
  return numbers;
}

struct MeasuredPieces {
  std::vector<std::uint32_t> buckets = std::vector<std::uint32_t>(kDistributionBuckets);
  std::vector<Distribution> pieces;
  explicit MeasuredPieces(std::size_t count)
      : pieces((count + kDistributionPiece - 1) / static_cast<std::size_t>(kDistributionPiece)) {}
};

inline MeasuredPieces brute_force(const std::vector<float>& x, DistributionBounds bounds = {}) {
  static const std::vector<double> limits = bucket_limits();
  MeasuredPieces found(x.size());
  for (std::size_t p = 0; p < found.pieces.size(); ++p) {
    Distribution& to = found.pieces[p];
    const std::size_t begin = p * kDistributionPiece;
    long double sum = 0, squares = 0;
    to.least = std::numeric_limits<float>::infinity();
    to.largest = -to.least;
    for (std::size_t i = begin; i < std::min<std::size_t>(x.size(), begin + kDistributionPiece); ++i) {
      const float value = x[i];
      if (!std::isfinite(value)) continue;
      sum += value;
      squares += static_cast<long double>(value) * value;
      ++to.finite;
      to.zeros += value == 0 ? 1 : 0;
      to.beyond += value <= bounds.low || value >= bounds.high ? 1 : 0;
      to.least = std::min(to.least, value);
      to.largest = std::max(to.largest, value);
      const auto limit = std::upper_bound(limits.begin(), limits.end(), static_cast<double>(value));
      ++found.buckets[static_cast<std::size_t>(limit - limits.begin())];
    }
    to.sum = static_cast<double>(sum);
    to.sum_squares = static_cast<double>(squares);
  }
  return found;
}

/// Counts are equal; sums differ by rounding: at most 16,384 numbers.
inline void expect_like(const MeasuredPieces& found, const MeasuredPieces& expected) {
  EXPECT_EQ(found.buckets, expected.buckets);
  ASSERT_EQ(found.pieces.size(), expected.pieces.size());
  for (std::size_t p = 0; p < found.pieces.size(); ++p) {
    const Distribution &a = found.pieces[p], &b = expected.pieces[p];
    EXPECT_EQ(a.finite, b.finite);
    EXPECT_EQ(a.zeros, b.zeros);
    EXPECT_EQ(a.beyond, b.beyond);
    EXPECT_TRUE(
        !(std::abs(a.sum - b.sum) > 1e-12 * std::sqrt(b.sum_squares * static_cast<double>(b.finite))));
    EXPECT_TRUE(std::abs(a.sum_squares - b.sum_squares) <= 1e-12 * b.sum_squares);
    if (b.finite == 0) continue;
    EXPECT_EQ(a.least, b.least);
    EXPECT_EQ(a.largest, b.largest);
  }
}

}  // namespace lockstep
