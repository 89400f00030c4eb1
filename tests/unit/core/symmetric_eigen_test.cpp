// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/symmetric_eigen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

std::vector<double> symmetric(std::int64_t n) {
  std::vector<double> matrix(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      matrix[static_cast<std::size_t>(i * n + j)] =
          std::sin(1.7 * static_cast<double>((i + j) * (i + j))) + (i == j ? 2 : 0);
  return matrix;
}

/// A v = l v, vectors are orthonormal, values ascend. Sizes on both sides of Eigen's blocks.
TEST(SymmetricEigen, ValuesAndVectorsAreThoseOfTheMatrix) {
  SymmetricEigen eigen(100);
  for (const std::int64_t n : {1, 2, 33, 100}) {
    const std::vector<double> a = symmetric(n);
    double* const matrix = eigen.matrix(n);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)  // the lower triangle does not count
        matrix[i * n + j] = j >= i ? a[static_cast<std::size_t>(i * n + j)] : 1e300;
    ASSERT_TRUE(eigen.solve());
    for (std::int64_t k = 0; k < n; ++k) {
      const double* const v = eigen.vectors() + k * n;
      EXPECT_LE(eigen.values()[std::max<std::int64_t>(k - 1, 0)], eigen.values()[k]);
      for (std::int64_t i = 0; i < n; ++i) {
        double product = 0;
        for (std::int64_t j = 0; j < n; ++j) product += a[static_cast<std::size_t>(i * n + j)] * v[j];
        EXPECT_NEAR(product, eigen.values()[k] * v[i], 1e-12 * static_cast<double>(n)) << n;
      }
      for (std::int64_t other = 0; other <= k; ++other) {
        double dot = 0;
        for (std::int64_t i = 0; i < n; ++i) dot += v[i] * eigen.vectors()[other * n + i];
        EXPECT_NEAR(dot, other == k ? 1 : 0, 1e-12) << n;
      }
    }
  }
}

TEST(SymmetricEigen, ValuesThatAreNotFiniteAreRefused) {
  SymmetricEigen eigen(3);
  double* const matrix = eigen.matrix(3);
  for (int i = 0; i < 9; ++i) matrix[i] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(eigen.solve());
}

}  // namespace
}  // namespace lockstep
