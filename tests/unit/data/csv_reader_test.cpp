// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "support/test_folders.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvReaderTest : public FolderTest {
 protected:
  /// data.csv of the test's folder.
  std::unique_ptr<ReaderDataset> open(Options options = {}) const {
    options.emplace_back("path", "data.csv");
    return open_dataset("csv", params_for("csv", options), folder_);
  }
  std::unique_ptr<ReaderDataset> open_text(const std::string& text, Options options = {}) const {
    write("data.csv", text);
    return open(std::move(options));
  }
  std::string line(int number) const { return path("data.csv") + ", line " + std::to_string(number); }
  void expect_error(const std::string& text, const std::string& where, const std::string& what,
                    const Options& options = {}) const {
    SCOPED_TRACE(text.substr(0, 60));
    expect_data_error([&] { open_text(text, options); }, where, what);
  }
};

TEST_F(CsvReaderTest, LastColumnIsTheLabel) {
  const auto data = open_text("1,2.5,0\n-3,4e1,7\n");
  EXPECT_EQ(data->size(), 2);
  EXPECT_EQ(data->feature_shape(), Shape({2}));
  EXPECT_EQ(data->feature_dtype(), DType::f32);
  EXPECT_EQ(data->label_kind(), LabelKind::indices);
  EXPECT_EQ(data->num_label_columns(), 1);
  EXPECT_THAT(features_of(*data), ElementsAre(1, 2.5, -3, 40));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(0, 7));
  EXPECT_THAT(labels_of<float>(*data), ElementsAre(0, 7));
  EXPECT_EQ(data->where(1), line(2));
}

TEST_F(CsvReaderTest, LabelColumnMayBeAnyOrNone) {
  const auto first = open_text("9,1,2\n8,3,4\n", {{"label_column", "0"}});
  EXPECT_THAT(features_of(*first), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(labels_of<std::int32_t>(*first), ElementsAre(9, 8));
  const auto middle = open({{"label_column", "1"}});
  EXPECT_THAT(features_of(*middle), ElementsAre(9, 2, 8, 4));
  EXPECT_THAT(labels_of<std::int32_t>(*middle), ElementsAre(1, 3));
  const auto none = open({{"label_column", "null"}});
  EXPECT_EQ(none->label_kind(), LabelKind::none);
  EXPECT_EQ(none->num_label_columns(), 0);
  EXPECT_THAT(features_of(*none), ElementsAre(9, 1, 2, 8, 3, 4));
}

TEST_F(CsvReaderTest, FractionalLabelsAreTargets) {
  const auto data = open_text("1,2\n1,2.5\n");
  EXPECT_EQ(data->label_kind(), LabelKind::rows);
  EXPECT_THAT(labels_of<float>(*data), ElementsAre(2, 2.5));
  EXPECT_EQ(open_text("1,3000000000\n")->label_kind(), LabelKind::rows) << "beyond int32";
  EXPECT_THAT(labels_of<std::int32_t>(*open_text("1,2147483647\n1,-2147483648\n")),
              ElementsAre(2147483647, -2147483648));
}

TEST_F(CsvReaderTest, AcceptsCommonVariations) {
  for (const std::string text : {"1,2,3\n4,5,6\n", "1,2,3\r\n4,5,6\r\n", "1,2,3\n4,5,6",
                                 "1,2,3\n4,5,6\n\n\r\n  \n", " 1,\t2 , +3\n4 ,5,6 \n",
                                 "\xEF\xBB\xBF"
                                 "1,2,3\n4,5,6\n",
                                 "1.0,2e0,3\n.4e1,50E-1,6.\n"}) {
    SCOPED_TRACE(text);
    const auto data = open_text(text);
    EXPECT_THAT(features_of(*data), ElementsAre(1, 2, 4, 5));
    EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(3, 6));
  }
}

TEST_F(CsvReaderTest, Delimiters) {
  for (const std::string delimiter : {";", "\t", " ", "|"}) {
    SCOPED_TRACE(delimiter);
    const auto data = open_text("1" + delimiter + "2" + delimiter + "3\n", {{"delimiter", delimiter}});
    EXPECT_THAT(features_of(*data), ElementsAre(1, 2));
  }
  for (const std::string delimiter : {";;", "e", "-", ".", "5", "\n"}) {
    const Error error = error_of([&] { open({{"delimiter", "" + delimiter}}); });
    EXPECT_EQ(error.kind(), ErrorKind::config) << delimiter;
  }
}

TEST_F(CsvReaderTest, SkipsTheHeader) {
  const auto data = open_text("width,height,class\n1,2,3\n", {{"header", "true"}});
  EXPECT_EQ(data->size(), 1);
  EXPECT_EQ(data->where(0), line(2));
  const Error error = error_of([&] { open(); });
  EXPECT_THAT(error.advice(), HasSubstr("header: true"));
}

TEST_F(CsvReaderTest, DetectsGzipByContent) {
  write_gzip("data.csv", "1,2,3\n");
  EXPECT_THAT(features_of(*open()), ElementsAre(1, 2));
  write("plain.csv.gz", "4,5,6\n");
  EXPECT_THAT(features_of(*open_dataset("csv", params_for("csv", {{"path", "plain.csv.gz"}}), folder_)),
              ElementsAre(4, 5));
}

TEST_F(CsvReaderTest, ShapeOfASample) {
  EXPECT_EQ(open_text("1,2,3,4,0\n", {{"shape", "[2, 2, 1]"}})->feature_shape(), Shape({2, 2, 1}));
  expect_error("1,2,3,0\n", line(1), "has 3 feature columns, but the shape 2x2x1 needs 4",
               {{"shape", "[2, 2, 1]"}});
  // The product is 3 modulo 2^64.
  expect_error("1,2,3,0\n", line(1), "needs more than 2^59", {{"shape", "[1056175639, 998034439, 35]"}});
  for (const std::string shape : {"[0, 3]", "[-1, -3]", "[]", "[1, 1, 1, 1, 1, 1, 1, 3]"})
    EXPECT_EQ(error_of([&] { open({{"shape", shape}}); }).kind(), ErrorKind::config) << shape;
}

TEST_F(CsvReaderTest, Rows) {
  const std::string text = "0,10\n1,11\n2,12\n3,13\n";
  const auto data = open_text(text, {{"rows", "[1, 3]"}});
  EXPECT_THAT(features_of(*data), ElementsAre(1, 2));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(11, 12));
  EXPECT_EQ(data->where(0), line(2));
  EXPECT_EQ(open({{"rows", "[3, 4]"}})->size(), 1);
  EXPECT_EQ(open_text("a,b\n" + text, {{"rows", "[1, 3]"}, {"header", "true"}})->where(0), line(3));
  expect_error(text, path("data.csv"), "[2, 5) were requested, but there are 4 rows", {{"rows", "[2, 5]"}});
  expect_error(text, path("data.csv"), "[4, 5) were requested, but there are 4 rows", {{"rows", "[4, 5]"}});
  for (const std::string rows : {"[2, 2]", "[3, 1]", "[-1, 2]", "[1]", "[1, 2, 3]"})
    EXPECT_EQ(error_of([&] { open({{"rows", rows}}); }).kind(), ErrorKind::config) << rows;
}

TEST_F(CsvReaderTest, BadNumberIsReportedWithLineAndColumn) {
  expect_error("1,2,3\n4,x5,6\n", line(2), "column 1 (from 0): 'x5' is not a number");
  expect_error("1,2,3\n4,5x,6\n", line(2), "column 1 (from 0): '5x' is not a number");
  expect_error("1,2,3\n4,0x10,6\n", line(2), "column 1 (from 0): '0x10' is not a number");
  expect_error("1,2,3\n4,5 6,6\n", line(2), "column 1 (from 0): '5 6' is not a number");
  expect_error("1,2,3\n4,+-5,6\n", line(2), "column 1 (from 0): '+-5' is not a number");
  expect_error("1,2,3\n4,5,cat\n", line(2), "column 2 (from 0): 'cat' is not a number");
  expect_error("1;2;3\n", line(1), "column 0 (from 0): '1;2;3' is not a number",
               {{"label_column", "null"}, {"delimiter", ","}});
  expect_error("1;2;3\n", line(1), "has one column only", {{"delimiter", ","}});
  expect_error("1,2,3\n1,,3\n", line(2), "column 1 (from 0) is empty");
  expect_error("1,2,3\n1,2, \n", line(2), "column 2 (from 0) is empty");
  expect_error("1,2,3\n,2,3\n", line(2), "column 0 (from 0) is empty");
  for (const std::string value : {"nan", "NaN", "-nan"})
    expect_error("1,2,3\n1," + value + ",3\n", line(2),
                 "column 1 (from 0): '" + value + "' means a missing value");
  for (const std::string value : {"inf", "-Inf", "infinity", "1e60", "-1e39", "1e5000"}) {
    expect_error("1,2,3\n1," + value + ",3\n", line(2),
                 value == "1e5000" ? "column 1 (from 0)" : "is not a finite number");
  }
  expect_error("1,2,3\n1,2,nan\n", line(2), "column 2 (from 0): 'nan' means a missing value");
  expect_error("1,2,3\n1,2,1e400\n", line(2), "column 2 (from 0)");
}

TEST_F(CsvReaderTest, WholeNumbersOfAnyLength) {
  EXPECT_THAT(features_of(*open_text("0,007,9999999,16777216,16777217,123456789012,-5,0\n")),
              ElementsAre(0, 7, 9999999, 16777216, 16777216, 123456789012.0F, -5));
  EXPECT_THAT(labels_of<std::int32_t>(*open_text("1,16777217\n")), ElementsAre(16777217));
}

TEST_F(CsvReaderTest, UnderflowIsZero) {
  EXPECT_THAT(features_of(*open_text("1e-60,-1e-400,1e-40,0\n")), ElementsAre(0.0F, -0.0F, 1e-40F));
}

TEST_F(CsvReaderTest, WrongNumberOfColumns) {
  expect_error("1,2,3\n4,5,6\n1,2\n", line(3), "has 2 columns, but the rows before it have 3");
  expect_error("1,2,3\n1,2,3,4\n", line(2), "has 4 columns, but the rows before it have 3");
  expect_error("1,2,3\n1,2,3,\n", line(2), "has 4 columns");
  expect_error("1\n2\n", line(1), "no features are left");
  expect_error("1,2\n", line(1), "label_column is 2, but there are 2 columns", {{"label_column", "2"}});
}

TEST_F(CsvReaderTest, BlankLinesArePassedOverUnlessTheyMayBeMissingValues) {
  EXPECT_THAT(features_of(*open_text("\n1,2\n \t\n\n3,4\n")), ElementsAre(1, 3));
  expect_error("1\n\n3\n", line(2), "is blank", {{"label_column", "null"}});
}

TEST_F(CsvReaderTest, EmptyFiles) {
  expect_error("", path("data.csv"), "no data rows");
  expect_error("\n\n", path("data.csv"), "no data rows");
  expect_error("a,b\n", path("data.csv"), "no data rows", {{"header", "true"}});
  std::filesystem::remove(path("data.csv"));
  expect_data_error([&] { open(); }, path("data.csv"), "No such file");
  std::filesystem::create_directory(path("data.csv"));
  expect_data_error([&] { open(); }, path("data.csv"), "the folder has no files");
}

TEST_F(CsvReaderTest, DetectsTruncatedGzipAtEveryLength) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += std::to_string(i * 7919 % 1000) + ",1\n";
  write_gzip("data.csv", text);
  const std::string whole = read("data.csv");
  ASSERT_GT(whole.size(), 200U);
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    write("data.csv", whole.substr(0, bytes));
    const Error error = error_of([&] { open(); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    if (bytes >= 2) {
      EXPECT_THAT(error.what_happened(), HasSubstr("truncated"));
    }
  }
  std::string damaged = whole;
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] ^ 1);  // in the checksum
  write("data.csv", damaged);
  expect_data_error([&] { open(); }, path("data.csv"), "cannot read");
}

TEST_F(CsvReaderTest, NumbersAreExact) {
  std::mt19937 generator(3);
  std::string text;
  std::vector<float> expected;
  for (int row = 0; row < 2000; ++row) {
    for (int column = 0; column < 40; ++column) {
      const float value = std::ldexp(static_cast<float>(generator()) - 2147483648.0F,
                                     static_cast<int>(generator() % 200) - 140);
      expected.push_back(value);
      text += row % 2 == 0 ? fmt::format("{},", value) : fmt::format("{:.9g},", value);
    }
    text += std::to_string(row) + (row % 3 == 0 ? "\r\n" : "\n");
  }
  ASSERT_GT(text.size(), std::size_t{3} << 18) << "several blocks";
  const auto data = open_text(text);
  EXPECT_EQ(features_of(*data), expected);
  EXPECT_EQ(labels_of<std::int32_t>(*data)[1999], 1999);
}

TEST_F(CsvReaderTest, LinesLongerThanABlock) {
  std::string row;
  for (int i = 0; i < 300000; ++i) row += std::to_string(i) + ",";
  const auto data = open_text(row + "1\n" + row + "2\n");
  EXPECT_EQ(data->feature_shape(), Shape({300000}));
  EXPECT_EQ(features_of(*data)[599999], 299999);
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(1, 2));
}

TEST_F(CsvReaderTest, FeaturesOfAFileWithOrWithoutLabel) {
  const Options options = {{"path", "data.csv"}, {"label_column", "0"}, {"rows", "[0, 1]"}, {"scale", "0.5"}};
  const auto features = [&](const std::string& name, const Shape& shape) {
    return open_input("csv", params_for("csv", options), {.paths = {path(name)}, .feature_shape = shape});
  };
  write("with.csv", "9,2,4\n9,6,8\n");
  write("without.csv", "2,4\n6,8\n");
  write("other.csv", "2,4,6,8\n");
  for (const char* const name : {"with.csv", "without.csv"}) {
    const auto data = features(name, {1, 2});
    EXPECT_THAT(features_of(*data), ElementsAre(1, 2, 3, 4)) << name << ": rows is ignored, scale is not";
    EXPECT_EQ(data->label_kind(), LabelKind::none);
    EXPECT_EQ(data->feature_shape(), Shape({1, 2}));
  }
  expect_data_error(
      [&] {
        features("other.csv", {1, 2});
      },
      path("other.csv") + ", line 1", "has 4 columns, but the model takes 2 features");
  const auto no_label = params_for("csv", {{"path", "data.csv"}, {"label_column", "null"}});
  const InputRequest with{.paths = {path("with.csv")}, .feature_shape = {2}};
  expect_data_error([&] { open_input("csv", no_label, with); }, path("with.csv") + ", line 1",
                    "has 3 columns");
  const auto last = params_for("csv", {{"path", "data.csv"}});
  EXPECT_THAT(features_of(*open_input("csv", last, with)), ElementsAre(9, 2, 9, 6));
}

TEST_F(CsvReaderTest, InputWithItsLabels) {
  const auto params = params_for("csv", {{"path", "data.csv"}, {"label_column", "0"}});
  const auto open = [&](std::vector<std::string> paths, bool labels) {
    for (std::string& name : paths) name = path(name);
    return open_input("csv", params, {.paths = std::move(paths), .feature_shape = {2}, .labels = labels});
  };
  write("a.csv", "9,2,4\n-1,6,8\n");
  write("b.csv", "7,1,3\n");
  write("without.csv", "2,4\n");
  write("unknown.csv", "?,2,4\n");
  EXPECT_THAT(labels_of<std::int32_t>(*open({"a.csv"}, true)), ElementsAre(9, -1));
  const auto both = open({"b.csv", "a.csv"}, true);
  EXPECT_THAT(labels_of<std::int32_t>(*both), ElementsAre(7, 9, -1));
  EXPECT_THAT(features_of(*both), ElementsAre(1, 3, 2, 4, 6, 8));
  EXPECT_EQ(both->where(2), path("a.csv") + ", line 2");
  EXPECT_EQ(open({"without.csv"}, true)->label_kind(), LabelKind::none);
  expect_data_error([&] { open({"unknown.csv"}, true); }, path("unknown.csv") + ", line 1",
                    "'?' means a missing value");
  EXPECT_THAT(features_of(*open({"unknown.csv"}, false)), ElementsAre(2, 4));
  expect_data_error(
      [&] {
        open({"a.csv", "without.csv"}, true);
      },
      path("without.csv") + ", line 1", "has 2 columns, but the rows of");
}

// Counts and sums come from Python's gzip and csv.
TEST(CsvDigits, IsReadCompletely) {
  const auto data = open_dataset(
      "csv", params_for("csv", {{"path", "digits.csv.gz"}, {"shape", "[8, 8, 1]"}}), shipped_data());
  ASSERT_EQ(data->size(), 1797);
  EXPECT_EQ(data->feature_shape(), Shape({8, 8, 1}));
  const std::vector<float> pixels = features_of(*data);
  EXPECT_EQ(std::accumulate(pixels.begin(), pixels.end(), 0.0), 561718.0);
  EXPECT_THAT(std::vector<float>(pixels.begin(), pixels.begin() + 8), ElementsAre(0, 0, 5, 13, 9, 1, 0, 0));
  std::vector<int> counts(10);
  for (const std::int32_t label : labels_of<std::int32_t>(*data))
    ++counts.at(static_cast<std::size_t>(label));
  EXPECT_THAT(counts, ElementsAre(178, 182, 177, 183, 181, 182, 181, 179, 174, 180));
  EXPECT_NO_THROW(data->check_labels(classes(10)));
  EXPECT_THROW(data->check_labels(classes(9)), Error);
}

}  // namespace
}  // namespace lockstep::testing
