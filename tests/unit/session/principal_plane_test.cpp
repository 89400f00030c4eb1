// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables in the plane of their principal components.
#include "session/summaries/principal_plane.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep {
namespace {

/// Rows 3 sin(t) a + cos(t) b + m, for orthogonal unit vectors a and b.
std::vector<float> ellipse(int rows) {
  constexpr float a[4] = {0.5F, -0.5F, 0.5F, 0.5F}, b[4] = {0.5F, 0.5F, -0.5F, 0.5F};
  std::vector<float> values;
  for (int row = 0; row < rows; ++row) {
    const double t = 2 * M_PI * row / rows;
    for (int c = 0; c < 4; ++c)
      values.push_back(static_cast<float>(3 * std::sin(t)) * a[c] + static_cast<float>(std::cos(t)) * b[c] +
                       7);
  }
  return values;
}

TEST(PrincipalPlane, FindsTheAxesOfAnEllipse) {
  constexpr int kRows = 100;
  const PrincipalPlane plane = principal_plane(ellipse(kRows), 4);
  ASSERT_EQ(plane.x.size(), static_cast<std::size_t>(kRows));
  EXPECT_NEAR(plane.x_share, 0.9, 1e-6);
  EXPECT_NEAR(plane.y_share, 0.1, 1e-6);
  for (int row = 0; row < kRows; ++row) {
    const double t = 2 * M_PI * row / kRows;
    EXPECT_NEAR(std::abs(plane.x[static_cast<std::size_t>(row)]), std::abs(3 * std::sin(t)), 1e-5);
    EXPECT_NEAR(std::abs(plane.y[static_cast<std::size_t>(row)]), std::abs(std::cos(t)), 1e-5);
  }
}

TEST(PrincipalPlane, IsEmptyWhereThereIsNone) {
  EXPECT_TRUE(principal_plane(std::vector<float>{1, 2, 3}, 1).x.empty());
  EXPECT_TRUE(principal_plane(std::vector<float>{1, 2}, 2).x.empty());
  EXPECT_TRUE(principal_plane(std::vector<float>{1, 2, 1, 2}, 2).x.empty());
  EXPECT_TRUE(
      principal_plane(std::vector<float>{1, std::numeric_limits<float>::quiet_NaN(), 3, 4}, 2).x.empty());
}

TEST(PrincipalPlane, ThePictureIsWideAlongTheFirstComponent) {
  const Picture picture = picture_of(principal_plane(ellipse(400), 4));
  int left = picture.width, right = 0, top = picture.height, bottom = 0;
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x) {
      if (picture.at(x, y)[0] == 255) continue;
      left = std::min(left, x);
      right = std::max(right, x);
      top = std::min(top, y);
      bottom = std::max(bottom, y);
    }
  EXPECT_NEAR(right - left, 3 * (bottom - top), 12);
  EXPECT_NEAR(right - left, picture.width - 32, 6);
}

}  // namespace
}  // namespace lockstep
