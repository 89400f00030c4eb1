// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/text_info.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TextFilesTest : public FolderTest {
 protected:
  TextFilesTest() {
    for (const char* folder : {"train/spam", "train/ham/old", "test/ham", "test/spam"})
      std::filesystem::create_directories(path(folder));
    write("train/spam/2.txt", "buy now\nbuy");
    write("train/spam/1.txt", "buy");
    write("train/ham/notes.md", "none of these");
    write_gzip("train/ham/old/3.txt.gz", "see you now");
    write("train/ham/.hidden.txt", "no");
    write("test/ham/9.txt", "you buy trees");
  }
  static Params params(Options options) {
    options.insert(options.end(), {{"max_length", "3"}, {"extension", "txt"}});
    return params_for("text_files", options);
  }
  std::unique_ptr<ReaderDataset> open(const Options& options) const {
    return open_dataset("text_files", params(options), folder_);
  }
};

TEST_F(TextFilesTest, FilesAreSamplesAndFoldersAreClasses) {
  const auto data = open({{"path", "train"}});
  EXPECT_THAT(data->class_names(), ElementsAre("ham", "spam"));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(0, 1, 1));
  EXPECT_EQ(data->where(0), path("train/ham/old/3.txt.gz"));
  EXPECT_EQ(data->where(2), path("train/spam/2.txt"));
  // By frequency, then by bytes: buy now see you.
  EXPECT_EQ(data->text()->vocabulary.file_text(), "<pad>\t0\n<unk>\t0\nbuy\t3\nnow\t2\nsee\t1\nyou\t1\n");
  EXPECT_THAT(features_of(*data), ElementsAre(4, 5, 3, 2, 0, 0, 2, 3, 2));
}

TEST_F(TextFilesTest, TheEvaluationSetHasTheVocabularyAndClassesOfTheTrainingSet) {
  const auto eval =
      open_evaluation_dataset("text_files", params({{"path", "test"}}), params({{"path", "train"}}), folder_);
  EXPECT_THAT(eval->class_names(), ElementsAre("ham", "spam"));
  EXPECT_THAT(features_of(*eval), ElementsAre(5, 2, 1));
  std::filesystem::create_directories(path("test/eggs"));
  write("test/eggs/1.txt", "buy");
  expect_data_error(
      [&] {
        open_evaluation_dataset("text_files", params({{"path", "test"}}), params({{"path", "train"}}),
                                folder_);
      },
      path("test/eggs/1.txt"), "its folder 'eggs' is none of the classes");
}

TEST_F(TextFilesTest, OptionsChooseClassesFilesAndRows) {
  EXPECT_THAT(labels_of<std::int32_t>(*open({{"path", "train"}, {"classes", "[spam, ham]"}})),
              ElementsAre(1, 0, 0));
  EXPECT_EQ(open({{"path", "train"}, {"classes", "[spam]"}})->size(), 2);
  const auto plain = open({{"path", "train"}, {"labels", "none"}, {"rows", "[1, 2]"}, {"truncate", "front"}});
  EXPECT_EQ(plain->label_kind(), LabelKind::none);
  EXPECT_EQ(plain->where(0), path("train/spam/1.txt"));
  const auto files = open({{"path", "[train/spam/1.txt, train/ham/*.md]"}});
  EXPECT_THAT(labels_of<std::int32_t>(*files), ElementsAre(1, 0));
}

TEST_F(TextFilesTest, MistakesNameTheFile) {
  write("train/spam/1.txt", "ok\nbad \xFF");
  expect_data_error([&] { open({{"path", "train"}}); }, path("train/spam/1.txt") + ", line 2", "not UTF-8");
  expect_data_error([&] { open({{"path", "train/spam"}}); }, path("train/spam"), "holds no files of texts");
  EXPECT_EQ(error_of([&] {
              open({{"path", "train"}, {"labels", "none"}, {"classes", "[spam]"}});
            }).kind(),
            ErrorKind::config);
}

TEST_F(TextFilesTest, PredictionReadsFoldersWithAndWithoutClasses) {
  const auto data = open({{"path", "train"}});
  const auto input = [&](const std::string& of, bool labels) {
    return open_input("text_files", params({{"path", "train"}}),
                      {.paths = {path(of)},
                       .feature_shape = Shape({3}),
                       .text = data->text(),
                       .class_names = data->class_names(),
                       .labels = labels});
  };
  EXPECT_THAT(labels_of<std::int32_t>(*input("train", true)), ElementsAre(0, 1, 1));
  EXPECT_EQ(input("train", false)->label_kind(), LabelKind::none);
  write("new.txt", "you now");
  EXPECT_THAT(features_of(*input("new.txt", true)), ElementsAre(5, 3, 0));
}

}  // namespace
}  // namespace lockstep::testing
