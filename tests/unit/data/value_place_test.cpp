// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/value_place.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(ValuePlace, IsInTheAxesOfASample) {
  EXPECT_EQ(place_text(Shape{4, 8, 8, 2}, ((3 * 8 + 5) * 8 + 7) * 2 + 1), "voxel [3, 5, 7], channel 1");
  EXPECT_EQ(place_text(Shape{8, 8, 1}, 9), "pixel [1, 1]");
  EXPECT_EQ(place_text(Shape{8, 8, 3}, 5), "pixel [0, 1], channel 2");
  EXPECT_EQ(place_text(Shape{10, 4}, 6), "value [1, 2]");
  EXPECT_EQ(place_text(Shape{7}, 6), "value 6 (from 0)");
  EXPECT_EQ(place_text(Shape{1}, 0), "the value");
  EXPECT_EQ(place_text(Shape{1, 1, 1}, 0), "the value");
}

TEST(ValuePlace, LabelColumnsCountAsInTheOptions) {
  EXPECT_EQ(label_column_text(2, 5), "label column 2 (from 0)");
  EXPECT_EQ(label_column_text(0, 1), "the label");
}

}  // namespace
}  // namespace lockstep
