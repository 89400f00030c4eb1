// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/trial/rate_range.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "config/named_options.h"
#include "config/yaml_node.h"
#include "optim/schedule.h"

namespace lockstep {
namespace {

/// Losses of a test from 1e-6 to 1: flat, then falling fastest at 1e-3, then rising from 1e-1 on.
std::vector<RatePoint> points(std::size_t count = 101) {
  std::vector<RatePoint> all;
  for (std::size_t i = 0; i < count; ++i) {
    const double exponent = -6 + 6 * static_cast<double>(i) / static_cast<double>(count - 1);
    const double fall = 2 / (1 + std::exp(-4 * (exponent + 3)));
    const double rise = exponent > -1 ? 30 * std::pow(exponent + 1, 2) : 0;
    all.push_back({.rate = std::pow(10, exponent),
                   .loss = 2.3 - fall + rise + 0.02 * std::sin(40.0 * static_cast<double>(i))});
  }
  return all;
}

TEST(RateRange, SuggestsWhereTheLossFallsFastest) {
  std::vector<RatePoint> all = points();
  const std::size_t width = smooth(all);
  EXPECT_EQ(width, 4U);
  const auto found = suggested_rate(all, width);
  ASSERT_TRUE(found);
  EXPECT_NEAR(std::log10(all[found->steepest].rate), -3, 0.3);
  EXPECT_NEAR(std::log10(all[found->least].rate), -1, 0.4);
}

TEST(RateRange, SmoothingIsAMeanThatDoesNotLag) {
  std::vector<RatePoint> line;
  for (int i = 0; i < 50; ++i) line.push_back({.rate = 1.0 + i, .loss = 3.0 * i});
  EXPECT_EQ(smooth(line), 2U);
  for (const RatePoint& point : line) EXPECT_NEAR(point.smoothed, point.loss, 1e-12);
}

TEST(RateRange, NothingIsSuggestedWhereTheLossFallsNowhere) {
  std::vector<RatePoint> rising;
  for (int i = 0; i < 30; ++i) rising.push_back({.rate = 1.0 + i, .loss = 1.0 + i});
  const std::size_t width = smooth(rising);
  EXPECT_FALSE(suggested_rate(rising, width));
  rising.resize(1);
  EXPECT_FALSE(suggested_rate(rising, smooth(rising)));
}

TEST(RateRange, EndsWhereTheLossLeavesItsRange) {
  const std::vector<RatePoint> all = points();
  std::size_t end = 0;
  while (end < all.size() && end_of_range_test(std::span(all).first(end)).empty()) ++end;
  EXPECT_GT(all[end].rate, 0.1);
  EXPECT_LT(end, all.size());
  const std::vector<RatePoint> broken{{.loss = 1}, {.loss = std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_THAT(end_of_range_test(broken), ::testing::HasSubstr("the loss is nan"));
  EXPECT_EQ(end_of_range_test({}), "");
}

TEST(RateRange, TheRateGrowsByTheSameFactor) {
  const NamedOptions named = named_options(parse_yaml(growing_rate(1e-7, 10, 100), "test"), "schedule");
  const ScheduleEntry& entry = schedule_table().at(named);
  const auto schedule = entry.make(Params(named.options, entry.table, "schedule"));
  EXPECT_NEAR(schedule->at(0), 1e-7, 1e-13);
  EXPECT_NEAR(schedule->at(99), 10, 1e-6);
  EXPECT_NEAR(schedule->at(50) / schedule->at(49), schedule->at(99) / schedule->at(98), 1e-9);
}

}  // namespace
}  // namespace lockstep
