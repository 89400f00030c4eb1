// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(Error, JoinsWhereWhatAndAdvice) {
  EXPECT_STREQ(Error(ErrorKind::data, "no label").what(), "no label");
  EXPECT_STREQ(Error(ErrorKind::data, "no label", "a.csv, line 3").what(), "a.csv, line 3: no label");
  EXPECT_STREQ(Error(ErrorKind::data, "no label", "", "Add one.").what(), "no label\n  Add one.");
}

TEST(Error, ExitCodes) {
  EXPECT_EQ(exit_code(ErrorKind::usage), 2);
  EXPECT_EQ(exit_code(ErrorKind::config), 2);
  EXPECT_EQ(exit_code(ErrorKind::data), 3);
  EXPECT_EQ(exit_code(ErrorKind::checkpoint), 4);
  for (ErrorKind kind :
       {ErrorKind::communication, ErrorKind::device, ErrorKind::numeric, ErrorKind::output, ErrorKind::bug})
    EXPECT_EQ(exit_code(kind), 1) << name_of(kind);
}

TEST(Error, RequireAndCheck) {
  const auto require = [](int value) { LOCKSTEP_REQUIRE(value > 0, ErrorKind::data, "value is {}", value); };
  const auto check = [](int value) { LOCKSTEP_CHECK(value > 0, "value is {}", value); };
  EXPECT_NO_THROW(require(1));
  EXPECT_NO_THROW(check(1));
  try {
    require(-1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_STREQ(error.what(), "value is -1");
  }
  try {
    check(-1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bug);
    EXPECT_THAT(error.what(), HasSubstr("error_test.cpp:"));
    EXPECT_THAT(error.what(), HasSubstr("broken invariant: value > 0: value is -1"));
  }
}

}  // namespace
}  // namespace lockstep
