// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/shape.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"

namespace lockstep {
namespace {

TEST(Shape, ExtentsCountAndText) {
  const Shape image{2, 8, 6, 3};
  EXPECT_EQ(image.rank(), 4);
  EXPECT_EQ(image[1], 8);
  EXPECT_EQ(image.last(), 3);
  EXPECT_EQ(image.num_elements(), 2 * 8 * 6 * 3);
  EXPECT_EQ(image.to_string(), "2x8x6x3");
}

TEST(Shape, ScalarAndEmpty) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.num_elements(), 1);
  EXPECT_EQ(scalar.last(), 1);
  EXPECT_EQ(scalar.to_string(), "scalar");
  EXPECT_EQ((Shape{0, 5}).num_elements(), 0);
}

TEST(Shape, FrontAxis) {
  const Shape sample{8, 8, 1};
  EXPECT_EQ(sample.with_front(32), (Shape{32, 8, 8, 1}));
  EXPECT_EQ(sample.with_front(32).without_front(), sample);
  EXPECT_EQ(Shape().with_front(3), Shape{3});
  EXPECT_THROW(Shape().without_front(), Error);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1}).with_front(1), Error);
}

TEST(Shape, EqualityComparesRankAndExtents) {
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 0}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_EQ((Shape{2, 3}), Shape(std::vector<std::int64_t>{2, 3}));
}

TEST(Shape, RejectsNegativeExtentsAndTooManyAxes) {
  EXPECT_THROW((Shape{2, -1}), Error);
  EXPECT_THROW(Shape(std::vector<std::int64_t>(9, 1)), Error);
}

}  // namespace
}  // namespace lockstep
