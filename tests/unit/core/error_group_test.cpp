// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/error_group.h"

#include <gmock/gmock.h>

namespace lockstep {
namespace {

using ::testing::StrEq;

Error mistake(const std::string& what) { return Error(ErrorKind::config, what, "a.yaml:1:2", "Do it."); }

std::string thrown_by(const ErrorCollector& mistakes) {
  try {
    mistakes.throw_if_any();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(ErrorCollector, CollectsAndThrowsTogether) {
  ErrorCollector mistakes;
  EXPECT_EQ(thrown_by(mistakes), "nothing");
  EXPECT_TRUE(mistakes.attempt([] {}));
  EXPECT_FALSE(mistakes.attempt([] { throw mistake("one"); }));
  EXPECT_EQ(thrown_by(mistakes), "a.yaml:1:2: one\n  Do it.");
  EXPECT_FALSE(mistakes.attempt([] { throw Error(ErrorKind::usage, "two"); }));
  EXPECT_EQ(thrown_by(mistakes), "a.yaml:1:2: one\n  Do it.\n  two\n  2 mistakes");
}

TEST(ErrorCollector, GroupsBecomePartsOfTheOuterOne) {
  ErrorCollector inner, outer;
  inner.add(mistake("one"));
  inner.add(mistake("two"));
  outer.add(mistake("zero"));
  outer.attempt([&] { inner.throw_if_any(); });
  ASSERT_EQ(outer.errors().size(), 3U);
  EXPECT_THAT(outer.errors()[2].what_happened(), StrEq("two"));
}

TEST(ErrorCollector, OtherErrorsPassThrough) {
  ErrorCollector mistakes;
  EXPECT_THROW(mistakes.attempt([] { throw Error(ErrorKind::data, "cut short"); }), Error);
  EXPECT_TRUE(mistakes.empty());
  EXPECT_FALSE(mistakes.attempt([] { throw ReportedMistake("known"); }));
  EXPECT_TRUE(mistakes.empty());
}

TEST(ErrorCollector, ManyAreCounted) {
  ErrorCollector mistakes;
  for (int i = 0; i < 1000; ++i) mistakes.add(mistake("x"));
  EXPECT_EQ(mistakes.errors().size(), ErrorCollector::kMostErrors);
  EXPECT_THAT(thrown_by(mistakes), ::testing::EndsWith("and 950 more\n  1000 mistakes"));
}

}  // namespace
}  // namespace lockstep
