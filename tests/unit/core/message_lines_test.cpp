// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which line ends of a message stay: those of the program, and none of a name in it.
#include "core/message_lines.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "core/error_group.h"
#include "core/log.h"
#include "core/shown_text.h"

namespace lockstep {
namespace {

const std::string kName = "a\nerror: forged\n  Do that.";      // NOLINT
const std::string kShown = R"(a\nerror: forged\n  Do that.)";  // NOLINT

TEST(MessageLines, AnErrorHasOneLineAndOneAdvice) {
  const Error error(ErrorKind::data, "no " + kName, "x.h5", "Use " + kName);
  EXPECT_EQ(error.what_happened(), "no " + kShown);
  EXPECT_EQ(error.advice(), "Use " + kShown);
  EXPECT_EQ(error.what(), "x.h5: no " + kShown + "\n  Use " + kShown);
}

TEST(MessageLines, ThoseOfTheProgramStay) {
  const Error error = error_of_lines(ErrorKind::checkpoint, "it differs:\n  " + shown_text(kName), "x.h5",
                                     "Do this.\n  Then that.");
  EXPECT_EQ(error.kind(), ErrorKind::checkpoint);
  EXPECT_EQ(error.what_happened(), "it differs:\n  " + kShown);
  EXPECT_EQ(error.advice(), "Do this.\n  Then that.");
  EXPECT_EQ(Error(error).what_happened(), error.what_happened());
  EXPECT_EQ(message_of(error).text, error.what());
}

TEST(MessageLines, OtherExceptionsAreOneLine) {
  EXPECT_EQ(message_of(std::runtime_error(kName)).text, kShown);
}

TEST(MessageLines, AnArgumentOfALogIsOneLine) {
  configure_log(-1, LogLevel::info);
  testing::internal::CaptureStderr();
  log_warning("{}: {}\n  The run continues.{}", kName, 3, MessageLines{"\n  - b"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: " + kShown + ": 3\n  The run continues.\n  - b\n");
}

TEST(MessageLines, AGroupHasALineForEachMistake) {
  ErrorCollector mistakes;
  mistakes.add(Error(ErrorKind::config, "one " + kName, "a.yaml"));
  mistakes.add(Error(ErrorKind::config, "two"));
  try {
    mistakes.throw_if_any();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "a.yaml: one " + kShown + "\n  two\n  2 mistakes");
  }
}

}  // namespace
}  // namespace lockstep
