// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// UTF-8, tokens, vocabularies.
#include "data/tokenizer.h"

#include "data/text_info.h"
#include "data/utf8.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;

TEST(Utf8Test, ValidTextIsRoundTripped) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xED\x9F\xBF\xEE\x80\x80\xF0\x90\x80\x80\xF4\x8F\xBF\xBF";
  EXPECT_EQ(first_invalid_utf8(text), std::string::npos);
  std::string again;
  std::vector<char32_t> points;
  for (std::string_view rest = text; !rest.empty();) {
    points.push_back(take_code_point(rest));
    append_utf8(again, points.back());
  }
  EXPECT_EQ(again, text);
  EXPECT_EQ(points, (std::vector<char32_t>{'a', 0xE9, 0x20AC, 0xD7FF, 0xE000, 0x10000, 0x10FFFF}));
}

TEST(Utf8Test, DetectsInvalidForms) {
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x9F\xBF", "\xED\xA0\x80",
                          "\xE2\x82", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"})
    EXPECT_EQ(first_invalid_utf8(std::string("ab") + bad), 2U) << ::testing::PrintToString(std::string(bad));
}

TEST(TokenizerTest, WordsAreRunsOfLettersAndDigits) {
  const Tokenizer words{TokenUnit::words, true};
  EXPECT_THAT(words.tokens("It's 5.93 mln, 'quoted' o'Neill\xE2\x80\x99s -- end'"),
              ElementsAre("it's", "5", "93", "mln", "quoted", "o'neill's", "end"));
  EXPECT_THAT(words.tokens("\xC3\x89t\xC3\xA9\xE2\x80\x94\xD0\x94\xD0\x90 \xCE\xA3"),
              ElementsAre("\xC3\xA9t\xC3\xA9", "\xD0\xB4\xD0\xB0", "\xCF\x83"));
  EXPECT_THAT(words.tokens("  ,. "), ElementsAre());
}

TEST(TokenizerTest, CharactersAreAllCodePoints) {
  EXPECT_THAT((Tokenizer{TokenUnit::characters, false}.tokens("A \xC3\xA9\n")),
              ElementsAre("A", " ", "\xC3\xA9", "\n"));
}

TEST(TokenizerTest, LowerCaseFollowsUnicode) {
  // Spot checks of each range against the Unicode character database.
  const std::pair<char32_t, char32_t> pairs[] = {
      {'Z', 'z'},     {0xDE, 0xFE},   {0xD7, 0xD7},     {0x100, 0x101}, {0x139, 0x13A},
      {0x148, 0x148}, {0x14A, 0x14B}, {0x178, 0xFF},    {0x179, 0x17A}, {0x17E, 0x17E},
      {0x386, 0x3AC}, {0x38A, 0x3AF}, {0x38F, 0x3CE},   {0x3A9, 0x3C9}, {0x401, 0x451},
      {0x42F, 0x44F}, {0x44F, 0x44F}, {0x4E2D, 0x4E2D}, {0x131, 0x131}, {0x138, 0x138}};
  for (const auto& [upper, lower] : pairs)
    EXPECT_EQ(static_cast<std::uint32_t>(lower_case_of(upper)), static_cast<std::uint32_t>(lower));
}

using VocabularyTest = FolderTest;

TEST_F(VocabularyTest, FileRoundTrip) {
  const Vocabulary made({{"b", 2}, {"\n", 3}, {"a\tb\\", 2}, {"c", 1}}, {.padding = true, .min_count = 2});
  EXPECT_EQ(made.file_text(), "<pad>\t0\n<unk>\t1\n\\n\t3\na\\tb\\\\\t2\nb\t2\n");
  write("v.txt", made.file_text());
  const Vocabulary again = Vocabulary::from_file(path("v.txt"), {.padding = true});
  EXPECT_EQ(again.digest(), made.digest());
  EXPECT_EQ(again.id("\n"), 2);
  EXPECT_EQ(again.id("c"), again.unknown_id());
  EXPECT_EQ(Vocabulary::of_run(path("v.txt")).digest(), made.digest());
  // A reader without padding accepts the file of one with padding.
  const Vocabulary unpadded = Vocabulary::from_file(path("v.txt"), {});
  EXPECT_EQ(unpadded.size(), 4);
  EXPECT_EQ(unpadded.id("\n"), 1);
}

TEST_F(VocabularyTest, DamageIsReportedWithItsLine) {
  const auto expect = [&](const std::string& text, int line, const std::string& what) {
    write("v.txt", text);
    expect_data_error([&] { Vocabulary::from_file(path("v.txt"), {}); },
                      path("v.txt") + (line > 0 ? ", line " + std::to_string(line) : ""), what);
  };
  expect("a\n\nb\n", 2, "has no word");
  expect("a\\q\n", 1, "backslash");
  expect("a\t-1\n", 1, "'-1' is not a count");
  expect("a\nb\nc\n<unk>\t1\n", 4, "twice");
  expect("<unk>\t1\n", 0, "holds no words");
}

}  // namespace
}  // namespace lockstep::testing
