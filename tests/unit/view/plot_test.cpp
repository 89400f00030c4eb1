// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Curves through recorded points, and charts as lines of text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "view/plot/point_curve.h"
#include "view/plot/text_plot.h"

namespace lockstep {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(PointCurve, LinesAreInterpolatedAndJoined) {
  const std::vector<CurvePoint> points{{0, 0}, {10, 10}};
  const auto columns = point_columns(points, 0, 10, 11);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    EXPECT_LE(columns[i].least, static_cast<double>(i) + 1e-9);
    EXPECT_GE(columns[i].most, static_cast<double>(i) - 1e-9);
    const double before = i > 0 ? columns[i - 1].most : 0;
    EXPECT_LE(columns[i].least, before + 1e-9) << "a hole before " << i;
  }
}

TEST(PointCurve, GapsAreNotJoinedAndLonePointsAreThere) {
  const std::vector<CurvePoint> points{{0, 1}, {2, 1}, {3, kNaN}, {5, 7}, {6, kNaN}, {8, 2}, {10, 2}};
  const auto columns = point_columns(points, 0, 10, 11);
  for (const std::size_t gap : {3u, 4u, 6u, 7u}) EXPECT_TRUE(std::isnan(columns[gap].least)) << gap;
  EXPECT_EQ(columns[5].least, 7);
  EXPECT_EQ(columns[5].most, 7);
  EXPECT_EQ(columns[8].most, 2);
}

TEST(PointCurve, ExtremesOfACrowdedColumnSurvive) {
  std::vector<CurvePoint> points;
  for (int i = 0; i < 10000; ++i) points.push_back({double(i), i == 5003 ? 9.0 : i == 5004 ? -9.0 : 0.0});
  double most = 0, least = 0;
  for (const ChartColumn& column : point_columns(points, 0, 9999, 50)) {
    most = std::max(most, column.most);
    least = std::min(least, column.least);
  }
  EXPECT_EQ(most, 9);
  EXPECT_EQ(least, -9);
}

TEST(PointCurve, SmoothingStartsAtTheFirstValueAndPassesGaps) {
  std::vector<CurvePoint> points{{0, 4}, {1, kNaN}, {2, 4}, {3, 8}};
  smooth(points, 0.5);
  EXPECT_DOUBLE_EQ(points[0].y, 4);
  EXPECT_TRUE(std::isnan(points[1].y));
  EXPECT_DOUBLE_EQ(points[2].y, 4);
  // Weights 1/2, 1/4, 1/8 of 8, 4, 4.
  EXPECT_DOUBLE_EQ(points[3].y, (8 * 0.5 + 4 * 0.25 + 4 * 0.125) / 0.875);
}

TEST(PointCurve, LogAxesCoverTheValues) {
  for (const auto& [low, high] :
       {std::pair(-4.0, 0.0), {-0.1, 0.2}, {2.0, 2.0}, {-12.0, 3.0}, {0.31, 0.69}}) {
    const ChartAxis axis = log_axis(low, high, 4);
    EXPECT_LE(axis.low, low + 1e-9);
    EXPECT_GE(axis.high, high - 1e-9);
    EXPECT_GT(axis.high, axis.low);
    EXPECT_GE(axis.ticks.size(), 2u);
    EXPECT_LE(axis.ticks.size(), 8u);
  }
}

TextPlot two_curves() {
  const auto flat = [](double value) {
    return [value](int count) {
      return std::vector<ChartColumn>(static_cast<std::size_t>(count), {value, value, value, value});
    };
  };
  return {.title = "title",
          .curves = {{"low", flat(0)}, {"high", flat(1)}},
          .values = {0, 1, {0, 1}},
          .x = {0, 10, {0, 5, 10}},
          .x_name = "step",
          .rows = 4};
}

TEST(TextPlot, MarksWithoutColours) {
  const TextStyle style{.width = 30, .unicode = true};
  const std::vector<std::string> lines = text_plot(two_curves(), style);
  ASSERT_EQ(lines.size(), 4u + 5u);
  EXPECT_EQ(lines[1], "* low  + high");
  EXPECT_EQ(lines[2], "1 ┤" + std::string(27, '+'));
  EXPECT_EQ(lines[5], "0 ┤" + std::string(27, '*'));
}

TEST(TextPlot, DotsWithColours) {
  const TextStyle style{.width = 30, .unicode = true, .colours = true};
  const std::vector<std::string> lines = text_plot(two_curves(), style);
  EXPECT_THAT(lines[2], ::testing::HasSubstr("⠉"));  // the upper dots of a character
  EXPECT_THAT(lines[5], ::testing::HasSubstr("⣀"));
  EXPECT_THAT(lines[2], ::testing::HasSubstr("\033["));
}

TEST(TextLine, IsCutInColumnsNotBytesAndHasNoControlCharacters) {
  const TextStyle style{.width = 4};
  TextLine line(style);
  line.add("äö").add("\033[x\nü", Colour::red);
  EXPECT_EQ(line.text(), "äö\\x");
  EXPECT_EQ(line.columns(), 4);
}

}  // namespace
}  // namespace lockstep
