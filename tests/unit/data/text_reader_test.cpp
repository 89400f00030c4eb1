// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The readers of text: text_tsv, text_windows, skip_gram.
#include <algorithm>
#include <map>

#include "data/text_info.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TextTsvTest : public FolderTest {
 protected:
  static constexpr const char* kText =
      "train\tgrain,wheat\tWheat up, wheat down\n"
      "test\twheat\tunseen wheat\n"
      "train\tcorn\tcorn down\n"
      "train\t\t...\n";
  std::unique_ptr<ReaderDataset> open(Options options = {}, const char* labels = "multi_label") const {
    const Options common = {{"path", "a.tsv"},      {"split_column", "0"}, {"label_column", "1"},
                            {"text_column", "2"},   {"max_length", "3"},   {"vocabulary_split", "train"},
                            {"lower_case", "true"}, {"labels", labels}};
    for (const auto& option : common)
      if (std::none_of(options.begin(), options.end(),
                       [&](const auto& own) { return own.first == option.first; }))
        options.push_back(option);
    return open_dataset("text_tsv", params_for("text_tsv", options), folder_);
  }
  std::string line(int number) const { return path("a.tsv") + ", line " + std::to_string(number); }
};

TEST_F(TextTsvTest, IdsFollowTrainingFrequency) {
  write("a.tsv", kText);
  const auto train = open({{"split", "train"}});
  // wheat and down occur twice each, in word order; then corn and up.
  EXPECT_EQ(train->text()->vocabulary.file_text(), "<pad>\t0\n<unk>\t0\ndown\t2\nwheat\t2\ncorn\t1\nup\t1\n");
  EXPECT_EQ(train->feature_shape(), Shape({3}));
  EXPECT_EQ(train->feature_dtype(), DType::u8);
  // Truncated at the end, padded at the end. A text without words is one unknown word.
  EXPECT_THAT(features_of(*train), ElementsAre(3, 5, 3, 4, 2, 0, 1, 0, 0));
  EXPECT_THAT(train->class_names(), ElementsAre("corn", "grain", "wheat"));
  EXPECT_EQ(train->label_kind(), LabelKind::rows);
  EXPECT_THAT(labels_of<float>(*train), ElementsAre(0, 1, 1, 1, 0, 0, 0, 0, 0));
  EXPECT_EQ(train->where(1), line(3));

  const auto test = open({{"split", "test"}});
  EXPECT_THAT(features_of(*test), ElementsAre(1, 3, 0));
  EXPECT_THAT(labels_of<float>(*test), ElementsAre(0, 0, 1));
  EXPECT_EQ(test->text()->vocabulary.digest(), train->text()->vocabulary.digest());
}

TEST_F(TextTsvTest, TruncateFrontKeepsTheEnd) {
  write("a.tsv", kText);
  EXPECT_THAT(features_of(*open({{"split", "train"}, {"rows", "[0, 1]"}, {"truncate", "front"}})),
              ElementsAre(5, 3, 2));
}

TEST_F(TextTsvTest, CountAndSizeLimitTheVocabulary) {
  write("a.tsv", kText);
  EXPECT_EQ(open({{"min_count", "2"}})->text()->vocabulary.file_text(),
            "<pad>\t0\n<unk>\t2\ndown\t2\nwheat\t2\n");
  EXPECT_EQ(open({{"max_vocabulary", "3"}})->text()->vocabulary.file_text(), "<pad>\t0\n<unk>\t4\ndown\t2\n");
  expect_data_error([&] { open({{"min_count", "9"}}); }, path("a.tsv"), "no token is frequent enough");
}

TEST_F(TextTsvTest, ColumnsByNameGzipAndOneClassPerLine) {
  write_gzip("a.tsv", "topic\tbody\nspam\tbuy now\nham\tsee you\nspam\tbuy buy\n");
  const auto data = open({{"header", "true"},
                          {"split_column", "null"},
                          {"vocabulary_split", "null"},
                          {"label_column", "topic"},
                          {"text_column", "body"}},
                         "class");
  EXPECT_EQ(data->label_kind(), LabelKind::indices);
  EXPECT_THAT(data->class_names(), ElementsAre("ham", "spam"));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(1, 0, 1));
  EXPECT_EQ(data->where(0), line(2));
  expect_data_error(
      [&] {
        open({{"header", "true"},
              {"split_column", "null"},
              {"vocabulary_split", "null"},
              {"label_column", "colour"},
              {"text_column", "body"}});
      },
      line(1), "no column named 'colour'");
}

TEST_F(TextTsvTest, VocabularyFileIsUsedUnchanged) {
  write("a.tsv", kText);
  write("words.txt", "wheat\t7\nup\n");
  EXPECT_THAT(features_of(*open({{"split", "train"}, {"rows", "[0, 2]"}, {"vocabulary", "words.txt"}})),
              ElementsAre(2, 3, 2, 1, 1, 0));
  write("words.txt", "wheat\nwheat\n");
  expect_data_error([&] { open({{"vocabulary", "words.txt"}}); }, path("words.txt") + ", line 2", "twice");
  write("words.txt", "wheat\tseven\n");
  expect_data_error(
      [&] {
        open({{"vocabulary", "words.txt"}});
      },
      path("words.txt") + ", line 1", "'seven' is not a count");
}

TEST_F(TextTsvTest, DamageIsReportedWithItsLine) {
  const auto expect = [&](const std::string& text, int number, const std::string& what, const char* labels) {
    SCOPED_TRACE(text);
    write("a.tsv", text);
    expect_data_error([&] { open({}, labels); }, line(number), what);
  };
  expect("train\ta\tx\ntrain\ta\n", 2, "has 2 columns, but 3 are needed", "multi_label");
  expect("train\ta\tx\ntrain\ta\tx\xff\n", 2, "byte 10 (0xFF) is not UTF-8", "multi_label");
  expect("train\ta\tx\ntest\tb\tx\n", 2, "'b'", "multi_label");
  expect("train\ta\tx\ntrain\t\tx\n", 2, "has no label", "class");
  write("a.tsv", "test\ta\tx\n");
  expect_data_error([&] { open(); }, path("a.tsv"), "no line whose split is 'train'");
  write("a.tsv", kText);
  expect_data_error([&] { open({{"split", "dev"}}); }, path("a.tsv"), "no line whose split is 'dev'");
}

TEST_F(TextTsvTest, PredictionAcceptsLinesOfTextOnly) {
  write("a.tsv", kText);
  const Options options = {{"path", "a.tsv"},    {"split_column", "0"}, {"label_column", "1"},
                           {"text_column", "2"}, {"max_length", "3"},   {"labels", "none"}};
  const Params params = params_for("text_tsv", options);
  const auto data = open_dataset("text_tsv", params, folder_);
  write("new.txt", "down\nx\ty\tdown down\n");
  const auto features = open_input("text_tsv", params,
                                   {.paths = {path("new.txt")},
                                    .feature_shape = {3},
                                    .text = data->text(),
                                    .class_names = data->class_names()});
  const auto down = static_cast<float>(data->text()->vocabulary.id("down"));
  EXPECT_THAT(features_of(*features), ElementsAre(down, 0, 0, down, down, 0));
  EXPECT_EQ(features->label_kind(), LabelKind::none);
}

TEST_F(TextTsvTest, InputWithItsLabels) {
  write("a.tsv", "train\ta\tx y\ntrain\tb\ty\n");
  const Params params = params_for("text_tsv", {{"path", "a.tsv"},
                                                {"split_column", "0"},
                                                {"label_column", "1"},
                                                {"text_column", "2"},
                                                {"max_length", "2"}});
  const auto data = open_dataset("text_tsv", params, folder_);
  const auto read = [&](const std::string& text, bool labels) {
    write("new.tsv", text);
    return open_input("text_tsv", params,
                      {.paths = {path("new.tsv")},
                       .feature_shape = {2},
                       .text = data->text(),
                       .class_names = data->class_names(),
                       .labels = labels});
  };
  EXPECT_THAT(labels_of<std::int32_t>(*read("t\tb\ty\nt\ta\tx\n", true)), ElementsAre(1, 0));
  for (const char* const text : {"x\ny\n", "x\nt\tb\ty\n", "t\t\tx\nt\tb\ty\n"})
    EXPECT_EQ(read(text, true)->label_kind(), LabelKind::none) << "the first line decides: " << text;
  expect_data_error([&] { read("t\tb\ty\nx\n", true); }, path("new.tsv") + ", line 2",
                    "has no column of labels");
  expect_data_error([&] { read("t\tc\ty\n", true); }, path("new.tsv") + ", line 1", "'c'");
  EXPECT_EQ(read("t\tc\ty\nx\n", false)->label_kind(), LabelKind::none);
}

class TextWindowsTest : public FolderTest {
 protected:
  std::unique_ptr<ReaderDataset> open(Options options = {}) const {
    options.emplace_back("path", "a.txt");
    options.emplace_back("tokens", "characters");
    return open_dataset("text_windows", params_for("text_windows", options), folder_);
  }
};

TEST_F(TextWindowsTest, LabelsAreTheNextTokens) {
  write("a.txt", "aab\nba\n");  // a 3, b 2, \n 2 -> a 1, \n 2, b 3
  const auto data = open({{"length", "3"}});
  EXPECT_EQ(data->text()->vocabulary.file_text(), "<unk>\t0\na\t3\n\\n\t2\nb\t2\n");
  EXPECT_THAT(features_of(*data), ElementsAre(1, 1, 3, 2, 3, 1));
  EXPECT_EQ(data->num_label_columns(), 3);
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(1, 3, 2, 3, 1, 2));
  EXPECT_THAT(labels_of<float>(*data), ElementsAre(1, 3, 2, 3, 1, 2));
  data->check_labels(classes(4, data->num_label_columns()));
  EXPECT_THAT(error_of([&] { data->check_labels(classes(3, data->num_label_columns())); }).where(),
              HasSubstr("window 0"));
}

TEST_F(TextWindowsTest, StrideMakesWindowsOverlap) {
  write("a.txt", "abcdef\r\n");
  const auto data = open({{"length", "3"}, {"stride", "2"}});  // 7 tokens: windows at 0 and 2
  EXPECT_EQ(data->size(), 2);
  const std::vector<float> f = features_of(*data);
  const std::vector<std::int32_t> l = labels_of<std::int32_t>(*data);
  EXPECT_EQ(f[2], f[3]);
  for (std::size_t i : {0, 1, 3, 4}) EXPECT_EQ(static_cast<float>(l[i]), f[i + 1]);
  EXPECT_EQ(f, features_of(*open({{"length", "3"}, {"stride", "2"}, {"rows", "[0, 2]"}})));
  const auto second = open({{"length", "3"}, {"stride", "2"}, {"rows", "[1, 2]"}});
  EXPECT_EQ(features_of(*second), std::vector<float>(f.begin() + 3, f.end()));
  EXPECT_NE(second->fingerprint(), data->fingerprint());
}

TEST_F(TextWindowsTest, PartsShareNoTokens) {
  write("a.txt", "aaaaaaaaabbbbbbbbbbb");  // 9 a, 11 b, and the end of the line: 21 tokens
  const auto train = open({{"length", "2"}, {"stride", "1"}, {"part", "[0, 0.45]"}});
  const auto eval = open({{"length", "2"}, {"stride", "1"}, {"part", "[0.45, 1]"}});
  const auto a = static_cast<float>(train->text()->vocabulary.id("a"));
  EXPECT_THAT(features_of(*train), Each(a));
  EXPECT_THAT(labels_of<float>(*train), Each(a));
  EXPECT_THAT(features_of(*eval), Each(::testing::Ne(a)));
  EXPECT_EQ(train->size(), 7);  // of 9 tokens
  EXPECT_EQ(train->text()->vocabulary.digest(), eval->text()->vocabulary.digest());
}

TEST_F(TextWindowsTest, CharactersAreCodePoints) {
  write("a.txt", "\xEF\xBB\xBF\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\n");
  const auto data = open({{"length", "3"}});
  EXPECT_EQ(data->size(), 1);
  EXPECT_EQ(data->text()->vocabulary.size(), 5);
  write("a.txt", "ok\n\xC3(\n");
  expect_data_error(
      [&] {
        open({{"length", "1"}});
      },
      path("a.txt") + ", line 2", "byte 1 (0xC3) is not UTF-8");
}

TEST_F(TextWindowsTest, RejectsTooShortTexts) {
  write("a.txt", "abc");
  expect_data_error([&] { open({{"length", "4"}}); }, path("a.txt"), "needs 5");
  write("a.txt", "");
  expect_data_error(
      [&] {
        open({{"length", "4"}, {"vocabulary_part", "[0, 1]"}});
      },
      path("a.txt"), "no token");
  write("a.txt", "abc");
  EXPECT_EQ(error_of([&] { open({{"length", "1"}, {"part", "[0.5, 0.5]"}}); }).kind(), ErrorKind::config);
}

class SkipGramTest : public FolderTest {
 protected:
  std::unique_ptr<ReaderDataset> open(Options options = {}) const {
    options.emplace_back("path", "a.txt");
    return open_dataset("skip_gram", params_for("skip_gram", options), folder_);
  }
};

TEST_F(SkipGramTest, PairsWordsWithTheirWindow) {
  write("a.txt", "c a b\nb a rare\n");  // a 1, b 2, c 3 without rare
  write("words.txt", "a\nb\nc\n");
  const auto data =
      open({{"window", "1"}, {"random_window", "false"}, {"subsample", "0"}, {"vocabulary", "words.txt"}});
  EXPECT_EQ(data->feature_shape(), Shape({2}));
  EXPECT_EQ(data->label_kind(), LabelKind::none);
  // The words are: c a b b a.
  EXPECT_THAT(features_of(*data), ElementsAre(3, 1, 1, 3, 1, 2, 2, 1, 2, 2, 2, 2, 2, 1, 1, 2));
}

TEST_F(SkipGramTest, SubsamplesFrequentWords) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += i % 10 == 0 ? "rare\n" : "often\n";  // shares 0.1 and 0.9
  write("a.txt", text);
  // Pairs of (i, i + 1) and back, so the number of pairs shows how many words are left.
  const auto left = [&](const char* seed) {
    const auto data =
        open({{"window", "1"}, {"random_window", "false"}, {"subsample", "0.1"}, {"seed", seed}});
    std::map<float, int> count;
    const std::vector<float> values = features_of(*data);
    for (std::size_t i = 0; i < values.size(); i += 2) ++count[values[i]];
    return count;
  };
  auto count = left("1");
  // often: 3600 * sqrt(0.1 / 0.9) = 1200 with a standard deviation of 28; rare: all 400. Two pairs per word.
  EXPECT_NEAR(count[1], 2400, 240);
  EXPECT_NEAR(count[2], 800, 2);
  EXPECT_EQ(count, left("1"));
  EXPECT_NE(count, left("2"));
}

TEST_F(SkipGramTest, RandomWindowSizesAreUniform) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += fmt::format("w{} ", i);
  write("a.txt", text);
  const auto data = open({{"window", "3"}, {"subsample", "0"}});
  // Window sizes 1, 2, 3 yield 2, 4, 6 pairs: 4 on average.
  EXPECT_NEAR(static_cast<double>(data->size()), 12000, 400);
  EXPECT_EQ(data->feature_dtype(), DType::u16);
}

TEST_F(SkipGramTest, OneWordYieldsNoPairs) {
  write("a.txt", "word\n");
  expect_data_error([&] { open(); }, path("a.txt"), "no pairs");
}

}  // namespace
}  // namespace lockstep::testing
