// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE: words, added tokens, merges, texts of ids. tests/e2e/bpe_test.py compares with the package
// `tokenizers`.
#include "data/byte_pairs.h"

#include <algorithm>
#include <random>

#include "data/byte_pair_file.h"
#include "data/gpt2_words.h"
#include "data/text_info.h"
#include "data/unicode_classes.h"
#include "data/utf8.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t bytes = gpt2_word_bytes(text);
    words.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return words;
}

TEST(Gpt2WordsTest, FollowTheRegularExpression) {
  EXPECT_THAT(words_of("Hello world's 42nd don'T"),
              ElementsAre("Hello", " world", "'s", " 42", "nd", " don", "'", "T"));
  EXPECT_THAT(words_of("we'll 've 'x!'s"), ElementsAre("we", "'ll", " '", "ve", " '", "x", "!'", "s"));
  EXPECT_THAT(words_of("a  b"), ElementsAre("a", " ", " b"));
  EXPECT_THAT(words_of("a \n b \n"), ElementsAre("a", " \n", " b", " \n"));
  EXPECT_THAT(words_of("a\nb\t\tc"), ElementsAre("a", "\n", "b", "\t", "\t", "c"));
  EXPECT_THAT(words_of("\xC2\xA0x \xC2\xA0"), ElementsAre("\xC2\xA0", "x", " \xC2\xA0"));
  EXPECT_THAT(words_of("\xC3\xA9\xCC\x81 \xC2\xBD\xE2\x85\xA7\xE5\xAD\x97"),
              ElementsAre("\xC3\xA9", "\xCC\x81", " \xC2\xBD\xE2\x85\xA7", "\xE5\xAD\x97"));
}

TEST(UnicodeClassesTest, HaveTheEndsOfTheirRanges) {
  EXPECT_EQ(class_of('z'), CharacterClass::letter);
  EXPECT_EQ(class_of('_'), CharacterClass::other);
  EXPECT_EQ(class_of(0x1C), CharacterClass::other);  // a blank of Python, none of Unicode
  EXPECT_EQ(class_of(0x85), CharacterClass::space);
  EXPECT_EQ(class_of(0xAA), CharacterClass::letter);
  EXPECT_EQ(class_of(0xAB), CharacterClass::other);
  EXPECT_EQ(class_of(0xB9), CharacterClass::number);
  EXPECT_EQ(class_of(0x2028), CharacterClass::space);
  EXPECT_EQ(class_of(0x200B), CharacterClass::other);
  EXPECT_EQ(class_of(0x4E00), CharacterClass::letter);
  EXPECT_EQ(class_of(0x323AF), CharacterClass::letter);  // the last letter
  EXPECT_EQ(class_of(0x323B0), CharacterClass::other);
  EXPECT_EQ(class_of(0x10FFFF), CharacterClass::other);
}

TEST(TokenMatcherTest, FindsTheFirstAndOfThoseTheLongest) {
  TokenMatcher matcher;
  EXPECT_EQ(matcher.find("abc").bytes, 0U);
  EXPECT_TRUE(matcher.add("<a>", 1));
  EXPECT_TRUE(matcher.add("<a>b", 2));
  EXPECT_TRUE(matcher.add("x", 3));
  EXPECT_FALSE(matcher.add("x", 4));
  const TokenMatcher::Match longest = matcher.find("<< <a>bx");
  EXPECT_EQ(longest.at, 3U);
  EXPECT_EQ(longest.bytes, 4U);
  EXPECT_EQ(longest.id, 2);
  EXPECT_EQ(matcher.find("<a>").id, 1);
  EXPECT_EQ(matcher.find("<a").bytes, 0U);
  EXPECT_EQ(matcher.find("..x<a>").id, 3);
}

TEST(Utf8Test, ReplacesEachPartThatIsNoCharacter) {
  const std::string sign = "\xEF\xBF\xBD";
  EXPECT_EQ(with_replacements("a\xC3\xA9z"), "a\xC3\xA9z");
  // As bytes.decode(errors="replace") of Python and from_utf8_lossy of Rust.
  EXPECT_EQ(with_replacements("\xF0\x9F\x98z"), sign + "z");
  EXPECT_EQ(with_replacements("\xF0\x9F\x98"), sign);
  EXPECT_EQ(with_replacements("\xE2\x82\xE2\x82\xAC"), sign + "\xE2\x82\xAC");
  EXPECT_EQ(with_replacements("\xED\xA0\x80"), sign + sign + sign);
  EXPECT_EQ(with_replacements("\xC0\xAF\xFF"), sign + sign + sign);
  EXPECT_EQ(with_replacements("\xF4\x90\x80\x80"), sign + sign + sign + sign);
  EXPECT_EQ(with_replacements("\xC3"), sign);
}

/// All bytes, then what the merges make, then <|end|>.
BytePairTable table_with(const std::vector<std::pair<std::string, std::string>>& merges) {
  BytePairTable table;
  for (int byte = 0; byte < 256; ++byte) {
    const auto character = static_cast<char>(byte);
    table.tokens.push_back(visible_bytes({&character, 1}));
  }
  const auto id = [&](const std::string& token) {
    return static_cast<std::int32_t>(std::ranges::find(table.tokens, token) - table.tokens.begin());
  };
  for (const auto& [left, right] : merges) {
    table.merges.emplace_back(id(left), id(right));
    if (id(left + right) == std::ssize(table.tokens)) table.tokens.push_back(left + right);
  }
  table.added.push_back({static_cast<std::int32_t>(table.tokens.size()), true, false, false});
  table.tokens.emplace_back("<|end|>");
  return table;
}

std::vector<std::string> tokens_of(const BytePairs& pairs, std::string_view text) {
  std::vector<std::string> tokens;
  pairs.encode(
      text, [&](std::int32_t id) { tokens.push_back(pairs.table().tokens[static_cast<std::size_t>(id)]); });
  return tokens;
}

const std::vector<std::pair<std::string, std::string>> kMerges = {
    {"a", "b"}, {"b", "c"}, {"ab", "ab"}, {"a", "bc"}, {"\xC4\xA0", "a"}, {"x", "x"}};

TEST(BytePairsTest, TheFirstMergeOfTheListComesFirst) {
  const BytePairs pairs(table_with(kMerges), "here");
  EXPECT_THAT(tokens_of(pairs, "abc"), ElementsAre("ab", "c"));
  EXPECT_THAT(tokens_of(pairs, "ababab"), ElementsAre("abab", "ab"));
  EXPECT_THAT(tokens_of(pairs, "xxxxx"), ElementsAre("xx", "xx", "x"));
  EXPECT_THAT(tokens_of(pairs, "d a\n"), ElementsAre("d",
                                                     "\xC4\xA0"
                                                     "a",
                                                     "\xC4\x8A"));
  EXPECT_THAT(tokens_of(pairs, "ab<|end|>ab<|end|"),
              ElementsAre("ab", "<|end|>", "ab", "<", "|", "e", "n", "d", "|"));
  EXPECT_TRUE(tokens_of(pairs, "").empty());
}

/// All pairs are looked at for each merge.
std::vector<std::string> merged_slowly(const std::vector<std::pair<std::string, std::string>>& merges,
                                       std::string_view word) {
  std::vector<std::string> tokens;
  for (const char byte : word) tokens.push_back(visible_bytes({&byte, 1}));
  for (;;) {
    std::size_t best = merges.size(), at = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto found = std::ranges::find(merges, std::pair(tokens[i], tokens[i + 1]));
      if (const auto rank = static_cast<std::size_t>(found - merges.begin()); rank < best) {
        best = rank;
        at = i;
      }
    }
    if (best == merges.size()) return tokens;
    tokens[at] += tokens[at + 1];
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(BytePairsTest, LongWordsAreMergedAsShortOnes) {
  auto merges = kMerges;
  for (const auto& more : {std::pair<std::string, std::string>{"abab", "c"},
                           {"c", "ab"},
                           {"bc", "abc"},
                           {"xx", "xx"},
                           {"cab", "abc"},
                           {"b", "x"},
                           {"xx", "a"}})
    merges.push_back(more);
  const BytePairs pairs(table_with(merges), "here");
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::string word;
    for (auto left = 1 + random() % 200; left > 0; --left) word += "abcx"[random() % 4];
    EXPECT_EQ(tokens_of(pairs, word), merged_slowly(merges, word)) << word;
  }
}

TEST(BytePairsTest, OptionsOfTheTokenizerAct) {
  BytePairTable table = table_with(kMerges);
  table.add_prefix_space = true;
  const BytePairs prefixed(table, "here");
  EXPECT_THAT(tokens_of(prefixed, "a a"), ElementsAre("\xC4\xA0"
                                                      "a",
                                                      "\xC4\xA0"
                                                      "a"));
  table.add_prefix_space = false;
  table.ignore_merges = true;
  table.tokens.emplace_back("dog");
  EXPECT_THAT(tokens_of(BytePairs(table, "here"), "dog dog"), ElementsAre("dog", "\xC4\xA0", "d", "o", "g"));
}

TEST(BytePairsTest, AFileHasAllOfTheTokenizer) {
  BytePairTable table = table_with(kMerges);
  table.added.push_back({3, false, true, true});
  const BytePairs pairs(table, "here");
  const std::string text = tokenizer_json(pairs.table());
  const BytePairs again = byte_pairs_from(text, "there");
  EXPECT_EQ(tokenizer_json(again.table()), text);
  EXPECT_EQ(again.table().tokens, table.tokens);
  EXPECT_EQ(again.table().merges, table.merges);
  EXPECT_TRUE(again.is_special(table.added[0].id));
  EXPECT_FALSE(again.is_special(3));
  const TextInfo info = text_info_of(std::make_shared<const BytePairs>(again));
  TextInfo other = text_info_of(std::make_shared<const BytePairs>(table_with({{"a", "b"}}), "here"));
  EXPECT_NE(info.digest(), other.digest());
  const std::string before = other.digest();
  other.padding_id = 7;
  EXPECT_NE(other.digest(), before);
}

TEST(BytePairsTest, TextOfIdsIsThatOfTheirBytes) {
  const TextInfo info = text_info_of(std::make_shared<const BytePairs>(table_with(kMerges), "here"));
  std::vector<std::int32_t> ids;
  const std::string text = "ab\xF0\x9F\x98\x80 <|end|>\n\xC3\xA9";
  info.for_each_id(text, [&](std::int32_t id) { ids.push_back(id); });
  EXPECT_EQ(info.text_of(ids), text);
  EXPECT_EQ(info.text_of(std::span(ids).first(3)), "ab\xEF\xBF\xBD");
  EXPECT_TRUE(info.is_special(info.vocabulary.size() - 1));
  EXPECT_FALSE(info.is_special(0));
}

}  // namespace
}  // namespace lockstep::testing
