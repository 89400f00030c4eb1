// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/duration.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Duration, EachForm) {
  EXPECT_EQ(parse_duration("90s"), 90);
  EXPECT_EQ(parse_duration("45m"), 2700);
  EXPECT_EQ(parse_duration("1.5h"), 5400);
  EXPECT_EQ(parse_duration("2d"), 172800);
  EXPECT_EQ(parse_duration("0s"), 0);
  EXPECT_EQ(parse_duration("1:30:05"), 5405);
  EXPECT_EQ(parse_duration("100:00:00"), 360000);
  EXPECT_EQ(parse_duration("2-03:00:10"), 2 * 86400 + 3 * 3600 + 10);
}

TEST(Duration, RejectsInvalidAndAmbiguousText) {
  for (const char* text : {"", "90", "1:30", "-5s", "s", "1x", "1:60:00", "1:00:60", "1::0", "1:2:3:4",
                           "2-24:00:00", "-1:00:00", "x-01:00:00", "infs", "nanh", "1: 0:0", "1e400s"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

}  // namespace
}  // namespace lockstep
