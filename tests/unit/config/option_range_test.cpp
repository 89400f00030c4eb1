// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/option_range.h"

#include <gmock/gmock.h>

#include <limits>

#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

// A table is a constant, so these are, too.
static_assert(between(0, 1).contains(1) && !between(0, 1).contains(1.5) && !between(0, 1).contains(-0.1));
static_assert(at_least(0).below(1).contains(0) && !at_least(0).below(1).contains(1));
static_assert(!above(0).contains(0) && above(0).contains(1e300) && at_most(2).contains(2));
static_assert(OptionRange().contains(-1e300) && !OptionRange().takes_null() && or_null().takes_null());

TEST(OptionRange, TextsAreThoseOfTheReference) {
  EXPECT_EQ(OptionRange().text(), "");
  EXPECT_EQ(between(0, 1).text(), "[0, 1]");
  EXPECT_EQ(at_least(0).below(1).text(), "[0, 1)");
  EXPECT_EQ(above(0).up_to(1).text(), "(0, 1]");
  EXPECT_EQ(above(0).below(1).text(), "(0, 1)");
  EXPECT_EQ(at_least(1, "steps").text(), ">= 1 steps");
  EXPECT_EQ(above(0).text(), "> 0");
  EXPECT_EQ(at_most(5).text(), "<= 5");
  EXPECT_EQ(between(1, 1e12, "bytes").or_null().text(), "[1, 1e12] bytes or null");
  EXPECT_EQ(above(0).up_to(1e9).or_null().note("below 1 a share").text(),
            "(0, 1e9] or null; below 1 a share");
  EXPECT_EQ(at_least(0).below(1).or_schedule().text(), "[0, 1), or a schedule");
  EXPECT_EQ(at_least(0).below(1).or_schedule().of_numbers().text(), "[0, 1)");
  EXPECT_EQ(one_of("steps|epochs").or_null().text(), "steps|epochs or null");
  EXPECT_EQ(in_words("list, or null").text(), "list, or null");
  EXPECT_EQ(or_null().text(), "or null");
}

TEST(OptionRange, NumbersAreWrittenAsTheyStandInTheTable) {
  EXPECT_EQ(between(-2147483648, 9223372036854775807).text(), "[-2147483648, 9223372036854775807]");
  EXPECT_EQ(between(1, 1000000).text(), "[1, 1000000]");
  EXPECT_EQ(between(1, 1e6).text(), "[1, 1e6]");
  EXPECT_EQ(between(-1e30, 1e30).text(), "[-1e30, 1e30]");
  EXPECT_EQ(between(0.001, 0.5).text(), "[0.001, 0.5]");
  EXPECT_EQ(between(1e-12, 2.5e7).text(), "[1e-12, 2.5e7]");
}

TEST(OptionRange, ChoicesKeepTheirOrder) {
  EXPECT_THAT(one_of("tree|fast|x").choices(), ElementsAre("tree", "fast", "x"));
  EXPECT_TRUE(between(0, 1).choices().empty());
  EXPECT_FALSE(in_words("pca or zca").has_choices());
}

TEST(OptionRange, NullIsTakenWhereTheWordsSaySo) {
  EXPECT_TRUE(in_words("list, or null").takes_null());
  EXPECT_FALSE(in_words("null bytes").takes_null());
  EXPECT_TRUE(between(0, 1).or_null().takes_null());
}

TEST(OptionRange, WhatIsWrongInItselfIsABug) {
  const auto message = [](auto make) { return message_of(make, ErrorKind::bug); };
  EXPECT_THAT(message([] { between(1, 0); }), HasSubstr("lower limit"));
  EXPECT_THAT(message([] { above(1).below(1); }), HasSubstr("lower limit"));
  EXPECT_THAT(message([] { OptionRange().up_to(1); }), HasSubstr("follow"));
  EXPECT_THAT(message([] { between(0, 1).below(1); }), HasSubstr("follow"));
  for (const char* const choices : {"a", "a||b", "|a", "a|", "a| b"})
    EXPECT_THAT(message([&] { one_of(choices); }), HasSubstr("a|b|c")) << choices;
}

}  // namespace
}  // namespace lockstep
