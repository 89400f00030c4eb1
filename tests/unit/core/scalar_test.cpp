// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/scalar.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Scalar, KindsFollowTheCoreSchema) {
  for (const char* text : {"", "~", "null", "Null", "NULL"})
    EXPECT_EQ(kind_of_scalar(text), ScalarKind::null) << text;
  for (const char* text : {"true", "False", "TRUE"})
    EXPECT_EQ(kind_of_scalar(text), ScalarKind::boolean) << text;
  for (const char* text : {"0", "-12", "+3", "0x1F", "0o17", "007"})
    EXPECT_EQ(kind_of_scalar(text), ScalarKind::integer) << text;
  for (const char* text : {"1e-3", "1.", ".5", "-0.0", "+12e03", "1E5"})
    EXPECT_EQ(kind_of_scalar(text), ScalarKind::real) << text;
  for (const char* text : {".inf", "-.INF", "+.Inf", ".nan", ".NaN"})
    EXPECT_EQ(kind_of_scalar(text), ScalarKind::non_finite) << text;
  for (const char* text : {"yes", "on", "nUll", "1_000", "0x", "0xg", "0o8", "-0x1", "1e", "e5", ".", "-",
                           "+.e1", "inf", "nan", "-.nan", "1 2", "12:30:45", "tRue"})
    EXPECT_EQ(kind_of_scalar(text), ScalarKind::text) << text;
}

TEST(Scalar, Integers) {
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(parse_integer("+9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_integer("0x1F"), 31);
  EXPECT_EQ(parse_integer("0o17"), 15);
  EXPECT_EQ(parse_integer("010"), 10);  // only 0o means octal
  EXPECT_EQ(parse_integer("1.0"), std::nullopt);
}

TEST(Scalar, Reals) {
  EXPECT_EQ(parse_real("1e-3"), 1e-3);
  EXPECT_EQ(parse_real("+.5"), 0.5);
  EXPECT_EQ(parse_real("7"), 7.0);
  EXPECT_EQ(parse_real("1e999"), std::nullopt);
  EXPECT_EQ(parse_real(".inf"), std::nullopt);
  EXPECT_EQ(parse_real("0x1F"), std::nullopt);
  EXPECT_EQ(parse_real("nan"), std::nullopt);
}

}  // namespace
}  // namespace lockstep
