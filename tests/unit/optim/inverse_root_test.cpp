// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/inverse_root.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

/// A A^T for numbers A of n x columns.
std::vector<float> gram(std::int64_t n, std::int64_t columns) {
  std::vector<double> a(static_cast<std::size_t>(n * columns));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(1.3 * static_cast<double>(i * i + 1));
  std::vector<float> result(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < columns; ++k)
        sum += a[static_cast<std::size_t>(i * columns + k)] * a[static_cast<std::size_t>(j * columns + k)];
      result[static_cast<std::size_t>(i * n + j)] = static_cast<float>(sum);
    }
  return result;
}

std::vector<double> product(std::int64_t n, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a.size());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t j = 0; j < n; ++j)
        result[static_cast<std::size_t>(i * n + j)] +=
            a[static_cast<std::size_t>(i * n + k)] * b[static_cast<std::size_t>(k * n + j)];
  return result;
}

/// The fourth power of the root, times the matrix, is the identity. Sizes on both sides of Eigen's blocks.
TEST(InverseRoot, ItsPowerIsTheInverse) {
  InverseRoot roots(100);
  for (const std::int64_t n : {1, 2, 7, 48, 100}) {
    const std::vector<float> matrix = gram(n, 3 * n);
    std::vector<float> root(matrix.size());
    ASSERT_TRUE(
        roots.compute(n, matrix.data(), {.scale = 2, .exponent = 0.25, .epsilon = 1e-12}, root.data()));
    const std::vector<double> wide(root.begin(), root.end());
    std::vector<double> unit = product(n, wide, wide);
    unit = product(n, product(n, unit, unit), {matrix.begin(), matrix.end()});
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        EXPECT_NEAR(2 * unit[static_cast<std::size_t>(i * n + j)], i == j ? 1 : 0, 1e-4) << n;
        EXPECT_EQ(root[static_cast<std::size_t>(i * n + j)], root[static_cast<std::size_t>(j * n + i)]);
      }
  }
}

/// Eigenvalues 4 and 0: 4 + 4 epsilon, and 4 epsilon alone.
TEST(InverseRoot, TheRidgeIsAShareOfTheLargestEigenvalue) {
  InverseRoot roots(2);
  const float matrix[] = {4, 0, 0, 0};
  float root[4];
  ASSERT_TRUE(roots.compute(2, matrix, {.exponent = 0.5, .epsilon = 0.25}, root));
  EXPECT_FLOAT_EQ(root[0], 1 / std::sqrt(5.0F));
  EXPECT_FLOAT_EQ(root[3], 1);
  EXPECT_EQ(root[1], 0);
}

TEST(InverseRoot, WhatHasNoRootLeavesTheOldOne) {
  InverseRoot roots(2);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<float>> bad = {
      {0, 0, 0, 0}, {1, 0, 0, std::nanf("")}, {kInfinity, 0, 0, 1}, {-1, 0, 0, -2}, {1e-44F, 0, 0, 1e-44F}};
  for (const std::vector<float>& matrix : bad) {
    float root[] = {7, 8, 9, 10};
    EXPECT_FALSE(roots.compute(2, matrix.data(), {.exponent = 1, .epsilon = 1e-6}, root)) << matrix[0];
    EXPECT_EQ(root[0], 7);
    EXPECT_EQ(root[3], 10);
  }
}

}  // namespace
}  // namespace lockstep
