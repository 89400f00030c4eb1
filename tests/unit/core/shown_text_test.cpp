// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/shown_text.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep {
namespace {

using namespace std::string_view_literals;

TEST(ShownText, OrdinaryTextStays) {
  for (const std::string_view text : {"", "a b~", "é", "中文", "𝄞", "\xC2\xA0", "c:\\n", "'\"{}%"})
    EXPECT_EQ(shown_text(text), text);
}

TEST(ShownText, WhatATerminalActsOnIsWrittenVisibly) {
  EXPECT_EQ(shown_text("\x1b[31m\a\x7f"), R"(\x1b[31m\x07\x7f)");
  EXPECT_EQ(shown_text("a\nb\tc\r"), R"(a\nb\tc\r)");
  EXPECT_EQ(shown_text("a\0b"sv), R"(a\x00b)");
  EXPECT_EQ(shown_text("\xC2\x80\xC2\x9B\xC2\x9F"), R"(\u0080\u009b\u009f)");  // C1
  EXPECT_EQ(shown_text("\xE2\x80\xA8\xE2\x80\xAE\xE2\x81\xA6"),
            R"(\u2028\u202e\u2066)");  // lines, directions
}

TEST(ShownText, BytesThatAreNoUtf8AreWrittenVisibly) {
  EXPECT_EQ(shown_text("\x9b"
                       "5m"),
            R"(\x9b5m)");
  EXPECT_EQ(shown_text("\xC0\x9B"), R"(\xc0\x9b)");                  // overlong
  EXPECT_EQ(shown_text("\xE0\x82\x9B"), R"(\xe0\x82\x9b)");          // overlong
  EXPECT_EQ(shown_text("\xED\xA0\x80"), R"(\xed\xa0\x80)");          // a surrogate
  EXPECT_EQ(shown_text("\xF4\x90\x80\x80"), R"(\xf4\x90\x80\x80)");  // above U+10FFFF
  EXPECT_EQ(shown_text("\xE4\xB8"), R"(\xe4\xb8)");                  // cut off
}

TEST(ShownText, OnceIsEnough) {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  const std::string once = shown_text(bytes);
  EXPECT_EQ(shown_text(once), once);
  EXPECT_EQ(shown_lines(once), once);
  EXPECT_EQ(shown_message(once), once);
}

TEST(ShownText, LinesAndMessagesKeepTheirLineEnds) {
  EXPECT_EQ(shown_lines("a\tb\nc\x1b\r\n"), "a\tb\nc\\x1b\\r\n");
  EXPECT_EQ(shown_message("what\t\n  advice\nerror: forged"), "what\t\n  advice\\nerror: forged");
}

TEST(ShownText, VeryLongLinesOfMessagesKeepTheirBeginAndEnd) {
  EXPECT_EQ(shown_message(std::string(2000, 'x')), std::string(2000, 'x'));
  EXPECT_EQ(
      shown_message(std::string(3000, 'x') + "\n  Do it."),
      std::string(200, 'x') + " ... (2600 characters left out) ... " + std::string(200, 'x') + "\n  Do it.");
  std::string wide;  // 3 bytes each
  for (int i = 0; i < 1000; ++i) wide += "中";
  const std::string cut = shown_message(wide);
  EXPECT_EQ(shown_text(cut), cut) << "no character is cut in two";
  EXPECT_NE(cut.find("(868 characters left out)"), std::string::npos) << cut;
}

TEST(ShownText, FormatsTextsAlone) {
  const char* const name = "a\n";
  EXPECT_EQ(shown_format("{}\n{:<6}|{:>3}|{:.1f}|{}\n", name, std::string("\t"), 7, 0.5, "\x1b"sv),
            "a\\n\n\\t    |  7|0.5|\\x1b\n");
}

TEST(Error, ShowsTextsOfOthers) {
  const Error error(ErrorKind::data, "no 'a\nerror: b\n  Do that.'", "x\n  y:3:5", "Use 'a\x1b\n  Then: c'.");
  EXPECT_STREQ(error.what(), "x\\n  y:3:5: no 'a\\nerror: b\\n  Do that.'\n  Use 'a\\x1b\\n  Then: c'.");
}

}  // namespace
}  // namespace lockstep
