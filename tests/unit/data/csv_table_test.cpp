// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The reader csv for tables with names, texts, quotes and missing values.
#include "config/yaml_node.h"
#include "data/data_options.h"
#include "data/table_info.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kPeople =
    "id,name,age,fare,\"port, from\",class\n"
    "1,\"Braund, Mr. Owen\",22,7.25,S,third\n"
    "2,\"Cumings \"\"Flo\"\"\",38,71.5,C,first\n"
    "3,\"two\nlines\",26,\"8\",S,third\n";

class CsvTableTest : public FolderTest {
 protected:
  /// With names, unless the options say otherwise.
  Params params(const std::string& yaml) const {
    const std::string header = yaml.find("header:") == std::string::npos ? "header: true, " : "";
    return Params(parse_yaml("{path: data.csv, " + header + yaml + "}", "c.yaml"), find_reader("csv").table,
                  "csv");
  }
  std::unique_ptr<ReaderDataset> open(const std::string& text, const std::string& yaml) const {
    write("data.csv", text);
    return open_dataset("csv", params(yaml), folder_);
  }
  std::unique_ptr<ReaderDataset> open(const std::string& yaml) const { return open(kPeople, yaml); }
  std::unique_ptr<ReaderDataset> predict(const ReaderDataset& trained, const std::string& text,
                                         const std::string& yaml, bool labels = false) const {
    write("input.csv", text);
    return open_input("csv", params(yaml),
                      {.paths = {path("input.csv")},
                       .feature_shape = trained.stored_shape(),
                       .table = trained.table(),
                       .class_names = trained.class_names(),
                       .labels = labels});
  }
  std::string line(int number, const std::string& name = "data.csv") const {
    return path(name) + ", line " + std::to_string(number);
  }
  void expect_error(const std::string& yaml, const std::string& where, const std::string& what) const {
    SCOPED_TRACE(yaml);
    expect_data_error([&] { open(yaml); }, where, what);
  }
  void expect_config_error(const std::string& yaml, const std::string& what) const {
    SCOPED_TRACE(yaml);
    const Error error = error_of([&] { open(yaml); });
    EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(what));
    EXPECT_THAT(error.where(), HasSubstr("c.yaml:1"));
  }
};

TEST_F(CsvTableTest, ColumnsByNameNumberAndPatternInTheOrderOfTheOption) {
  EXPECT_THAT(features_of(*open("columns: [fare, age], label_column: null")),
              ElementsAre(7.25, 22, 71.5, 38, 8, 26));
  EXPECT_THAT(features_of(*open("columns: [3, 0], label_column: null")), ElementsAre(7.25, 1, 71.5, 2, 8, 3));
  EXPECT_THAT(features_of(*open("columns: \"[af]*\", label_column: null")),
              ElementsAre(22, 7.25, 38, 71.5, 26, 8));
  EXPECT_THAT(features_of(*open("columns: [fare, \"*a[rg]e\"], label_column: null")),
              ElementsAre(7.25, 22, 71.5, 38, 8, 26))
      << "a column that is named twice is one feature";
  EXPECT_THAT(features_of(*open("ignore: [name, 4, class], labels: id")),
              ElementsAre(22, 7.25, 38, 71.5, 26, 8));
  EXPECT_THAT(features_of(*open("3,x\n4,y\n", "header: false, columns: 0, label_column: null")),
              ElementsAre(3, 4));
  EXPECT_THAT(features_of(*open("a,1\n5,7\n", "columns: \"1\", label_column: null")), ElementsAre(7))
      << "a number in quotes is a name";
}

TEST_F(CsvTableTest, RowsOfNumbersAloneFollowTheOptionToo) {
  const std::string text = "a,b,c,d\n1,2,3,4\n5,6,7,8\n";
  EXPECT_THAT(features_of(*open(text, "columns: [c, a], label_column: null")), ElementsAre(3, 1, 7, 5));
  EXPECT_THAT(features_of(*open(text, "columns: [a, c], labels: b")), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(labels_of<std::int32_t>(*open(text, "columns: a, labels: [d, b]")), ElementsAre(4, 2, 8, 6));
}

TEST_F(CsvTableTest, RowsOfSeveralLinesHaveTheLineInWhichTheyBegin) {
  const auto data = open(std::string(kPeople) + "4,d,1,2,C,first\n", "columns: age, labels: id");
  EXPECT_EQ(data->where(2), line(4));
  EXPECT_EQ(data->where(3), line(6));
}

TEST_F(CsvTableTest, QuotesAreThoseOfRfc4180) {
  const std::string text = "x,y\n\"1\",\"2\"\n \"3\" ,\"a\"\"b,\nc\"\n";
  const auto data = open(text, "columns: x, labels: y, classes: auto");
  EXPECT_THAT(features_of(*data), ElementsAre(1, 3));
  EXPECT_THAT(data->class_names(), ElementsAre("2", "a\"b,\nc"));
  EXPECT_THAT(open("x,y\n1,5\"\"x\n", "columns: x, labels: y, classes: auto")->class_names(),
              ElementsAre("5\"\"x"))
      << "a quote within a field is a character";
  EXPECT_THAT(open("x,y\n1,\"a\n", "quote: null, columns: x, labels: y, classes: auto")->class_names(),
              ElementsAre("\"a"));
  EXPECT_THAT(open("x,y\n1,'a,b'\n", "quote: \"'\", columns: x, labels: y, classes: auto")->class_names(),
              ElementsAre("a,b"));
  expect_data_error([&] { open("x,y\n1,2\n1,\"a\n1,2\n", "columns: x, labels: y"); }, line(3),
                    "does not end");
  expect_data_error([&] { open("x,y\n1,\"a\"b\n", "columns: x, labels: y"); }, line(2),
                    "column y: text follows the closing quote");
  expect_data_error([&] { open("x,y\n1,2\n\"1,2\"\n", "columns: x, labels: y"); }, line(3), "has 1 columns");
  expect_data_error([&] { open("x,y\n\"1,5\",2\n", "labels: y"); }, line(2), "'1,5' is not a number");
}

TEST_F(CsvTableTest, QuotedFieldsAreTheSameAtEveryPlaceOfTheReadBuffer) {
  for (const std::size_t longer : {0, 1, 2, 3}) {
    std::string text = "x,t,y\n", sum;
    std::vector<float> expected;
    for (int i = 0; text.size() < 600000; ++i) {
      text += std::to_string(i) + ",\"" + std::string(longer + static_cast<std::size_t>(i % 3000), 'a') +
              "\n\"\"\"," + std::to_string(i % 5) + "\r\n";
      expected.push_back(static_cast<float>(i));
    }
    EXPECT_EQ(features_of(*open(text, "columns: x")), expected);
  }
}

constexpr const char* kPort = "\"port, from\"";

TEST_F(CsvTableTest, CategoriesAreOneFeatureForEachValue) {
  const auto listed = open(std::string("columns: [age, ") + kPort + "], label_column: null, categories: {" +
                           kPort + ": [Q, S, C]}");
  EXPECT_EQ(listed->feature_shape(), Shape({4}));
  EXPECT_THAT(features_of(*listed), ElementsAre(22, 0, 1, 0, 38, 0, 0, 1, 26, 0, 1, 0));
  const auto learned =
      open(std::string("columns: [4, age], label_column: null, categories: {") + kPort + ": auto}");
  EXPECT_THAT(features_of(*learned), ElementsAre(0, 1, 22, 1, 0, 38, 0, 1, 26)) << "sorted: C, S";
  EXPECT_EQ(learned->table()->categories_text(), "port, from\tC\nport, from\tS\n");
  expect_error(std::string("columns: 4, label_column: null, categories: {4: [C, Q]}"), line(2),
               "column port, from: 'S' is none of the 2 values (C, Q)");
  expect_error("columns: age, label_column: null, categories: {4: auto}", line(2),
               "column port, from is no feature, but in option categories");
  expect_config_error("categories: {4: [C, C]}", "names a value twice");
  expect_config_error("categories: {4: C}", "must be auto, or a list");
  expect_config_error("categories: [4]", "must be a map of columns");
}

TEST_F(CsvTableTest, TextLabelsAreClassIndices) {
  const auto learned = open("columns: age, labels: class, classes: auto");
  EXPECT_THAT(learned->class_names(), ElementsAre("first", "third"));
  EXPECT_THAT(labels_of<std::int32_t>(*learned), ElementsAre(1, 0, 1));
  const auto listed = open("columns: age, classes: [third, second, first]");
  EXPECT_THAT(listed->class_names(), ElementsAre("third", "second", "first"));
  EXPECT_THAT(labels_of<std::int32_t>(*listed), ElementsAre(0, 2, 0));
  expect_error("columns: age, classes: [third]", line(3),
               "column class: 'first' is none of the 1 classes (third)");
  const Error error = error_of([&] { open("columns: age"); });
  EXPECT_THAT(error.advice(), HasSubstr("classes: auto"));
  expect_config_error("columns: age, labels: [id, class], classes: auto", "needs one label column");
  expect_config_error("columns: age, label_column: null, classes: auto", "needs a label column");
  expect_config_error("columns: age, label_column: 0, labels: class", "says the same as label_column");
}

TEST_F(CsvTableTest, SeveralLabelColumnsAreTargets) {
  const auto data = open("columns: id, labels: [fare, age]");
  EXPECT_EQ(data->num_label_columns(), 2);
  EXPECT_EQ(data->label_kind(), LabelKind::rows);
  EXPECT_THAT(labels_of<float>(*data), ElementsAre(7.25, 22, 71.5, 38, 8, 26));
}

TEST_F(CsvTableTest, AColumnIsAFeatureOrALabel) {
  expect_error("columns: [age, class]", line(2), "column class is a feature (option columns) and the label");
  EXPECT_THAT(features_of(*open("id,age\n1,2\n", "columns: [\"*\"], labels: id")), ElementsAre(2))
      << "a pattern leaves labels out";
  expect_error("columns: \"x*\"", line(1), "has no column named 'x*' (option columns)");
  expect_error("columns: agee", line(1), "has no column named 'agee'");
  EXPECT_THAT(error_of([&] { open("columns: agee"); }).advice(), HasSubstr("Did you mean 'age'?"));
  expect_error("columns: 6", line(2), "names column 6, but there are 6 columns");
  expect_error("ignore: \"*\", label_column: null", line(2), "has no features");
  expect_data_error([&] { open("a,a\n1,2\n", "columns: a, label_column: null"); }, line(1),
                    "names 2 columns 'a'");
  expect_data_error([&] { open("a,b\n1,2,3\n", "columns: a"); }, line(2),
                    "has 3 columns, but the header has 2 names");
  const Error error = error_of([&] { open("1,2\n", "header: false, columns: a"); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_THAT(error.advice(), HasSubstr("names need header: true"));
}

TEST_F(CsvTableTest, WhatIsIgnoredMayHoldAnything) {
  EXPECT_THAT(features_of(*open("d,x,y\n2020-01-02,1,0\n,2,1\n\"a,\nb\",3,1\n", "ignore: d")),
              ElementsAre(1, 2, 3));
}

TEST_F(CsvTableTest, MissingValues) {
  const std::string text = "a,b,c,y\n1,,red,0\nNA,2,?,1\nnan,n/a,,1\n";
  expect_data_error([&] { open(text, "columns: [a, b]"); }, line(2), "column b is empty");
  EXPECT_THAT(features_of(*open(text, "columns: [a, b], missing: -1")), ElementsAre(1, -1, -1, 2, -1, -1));
  EXPECT_THAT(features_of(*open(text, "columns: [a, b], missing: {a: 0.5, b: 7}")),
              ElementsAre(1, 7, 0.5, 2, 0.5, 7));
  expect_data_error([&] { open(text, "columns: [a, b], missing: {b: 7}"); }, line(3),
                    "column a: 'NA' means a missing value");
  EXPECT_THAT(features_of(*open(text, "columns: c, categories: {c: auto}, missing: {c: none}")),
              ElementsAre(0, 1, 1, 0, 1, 0))
      << "none, red";
  expect_data_error([&] { open(text, "columns: c, categories: {c: auto}, missing: 0"); }, line(3),
                    "column c: '?' means a missing value");
  EXPECT_THAT(features_of(*open("c,y\n?,0\nred,1\n", "categories: {c: [\"?\", red]}")),
              ElementsAre(1, 0, 0, 1))
      << "a listed value is not missing";
  EXPECT_THAT(features_of(*open("a,y\n-999,0\n3,1\n", "missing: 0, missing_values: [-999]")),
              ElementsAre(0, 3));
  expect_data_error([&] { open("a,y\nNA,0\n", "missing: 0, missing_values: [-999]"); }, line(2),
                    "is not a number");
  expect_data_error([&] { open("a,y\n1,\n", "missing: 0"); }, line(2), "column y is empty");
  const Error error = error_of([&] { open(text, "missing: mean"); });
  EXPECT_THAT(error.what(), HasSubstr("neither error nor a finite number"));
  EXPECT_EQ(error_of([&] { open(text, "missing: {a: zero}"); }).kind(), ErrorKind::config);
}

TEST_F(CsvTableTest, TabsAreTheDelimiterOfTsvFiles) {
  write("a.tsv", "1\t2,5\t3\n");
  write_gzip("b.tsv.gz", "4\t\"5\"\t6\n");
  const auto data = open_dataset(
      "csv",
      Params(parse_yaml("{path: [a.tsv, b.tsv.gz], ignore: 1}", "c.yaml"), find_reader("csv").table, "csv"),
      folder_);
  EXPECT_THAT(features_of(*data), ElementsAre(1, 4));
  EXPECT_EQ(data->where(1), line(1, "b.tsv.gz"));
}

TEST_F(CsvTableTest, LinesAtTheStartAndComments) {
  const auto data = open("made by x\n\"\n#c\na,y\n1,2\n# more\n3,4\n", "skip_lines: 2, comment: \"#\"");
  EXPECT_THAT(features_of(*data), ElementsAre(1, 3));
  EXPECT_EQ(data->where(0), line(5));
  EXPECT_EQ(data->where(1), line(7));
  EXPECT_EQ(open("\xEF\xBB\xBF\"a\",y\r\n1,2\r\n", "columns: a")->size(), 1) << "a mark before a quoted name";
}

TEST_F(CsvTableTest, SeveralFilesNeedTheSameNames) {
  write("a.csv", "x,y\n1,2\n");
  write("b.csv", "\"x\",z\n1,2\n");
  const auto params =
      Params(parse_yaml("{path: [a.csv, b.csv], header: true}", "c.yaml"), find_reader("csv").table, "csv");
  expect_data_error([&] { open_dataset("csv", params, folder_); }, line(1, "b.csv"),
                    "column 2 is named 'z', but 'y' in");
}

TEST_F(CsvTableTest, AnInputMayHaveOtherColumnsInAnyOrder) {
  const std::string yaml =
      "columns: [age, port], labels: class, classes: auto, categories: {port: auto}, missing: {age: 5}";
  const auto trained = open("id,age,port,class\n1,20,S,b\n2,30,C,a\n", yaml);
  EXPECT_THAT(features_of(*trained), ElementsAre(20, 0, 1, 30, 1, 0));
  const auto without = predict(*trained, "port,more,age\nC,?,1\nS,,\n", yaml, true);
  EXPECT_THAT(features_of(*without), ElementsAre(1, 1, 0, 5, 0, 1));
  EXPECT_EQ(without->label_kind(), LabelKind::none);
  const std::string with = "class,port,age\na,C,1\nb,S,2\n";
  EXPECT_THAT(labels_of<std::int32_t>(*predict(*trained, with, yaml, true)), ElementsAre(0, 1));
  EXPECT_EQ(predict(*trained, with, yaml, false)->label_kind(), LabelKind::none);
  expect_data_error([&] { predict(*trained, "port,class\nC,a\n", yaml); }, line(1, "input.csv"),
                    "has no column named 'age'");
  expect_data_error([&] { predict(*trained, "port,age\nX,1\n", yaml); }, line(2, "input.csv"),
                    "column port: 'X' is none of the 2 values (C, S)");
}

TEST_F(CsvTableTest, AnInputWithoutNamesLacksItsLabelColumnsOrHasThem) {
  const std::string yaml = "header: false, columns: [0, 3], labels: 1, missing: {3: 9}";
  const auto trained = open("1,0,x,2\n3,1,y,4\n", yaml);
  EXPECT_THAT(features_of(*trained), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(features_of(*predict(*trained, "5,7,x,6\n", yaml)), ElementsAre(5, 6));
  EXPECT_THAT(features_of(*predict(*trained, "5,x,6\n5,x,\n", yaml)), ElementsAre(5, 6, 5, 9));
  expect_data_error([&] { predict(*trained, "5,6\n", yaml); }, line(1, "input.csv"),
                    "has 2 columns, but the model takes 2 features of 4 columns");
}

class CsvSetsTest : public FolderTest {
 protected:
  UsedDataset evaluation(const std::string& yaml) const {
    return open_evaluation_set(data_options(parse_yaml(yaml, "c.yaml")), folder_);
  }
};

TEST_F(CsvSetsTest, TheEvaluationSetHasTheListsOfTheTrainingSet) {
  write("train.csv", "c,y\nred,b\nblue,a\ngreen,c\n");
  write("eval.csv", "c,y\nred,c\n");
  write("other.csv", "c,y\npink,c\n");
  write("label.csv", "c,y\nred,d\n");
  const std::string data =
      "{format: csv, path: train.csv, header: true, categories: {c: auto}, classes: auto, eval: ";
  const auto eval = evaluation(data + "{path: eval.csv}}");
  EXPECT_THAT(features_of(*eval), ElementsAre(0, 0, 1));
  EXPECT_THAT(eval->class_names(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(labels_of<std::int32_t>(*eval), ElementsAre(2));
  const Error error = error_of([&] { evaluation(data + "{path: other.csv}}"); });
  EXPECT_EQ(error.where(), path("other.csv") + ", line 2");
  EXPECT_THAT(error.what_happened(), HasSubstr("'pink' is none of the 3 values (blue, green, red)"));
  EXPECT_THAT(error.advice(), HasSubstr("those of the training set"));
  EXPECT_THAT(error_of([&] { evaluation(data + "{path: label.csv}}"); }).what_happened(),
              HasSubstr("'d' is none of the 3 classes"));
  EXPECT_THAT(error_of([&] {
                evaluation(
                    "{format: csv, path: train.csv, header: true, categories: {c: auto}, "
                    "classes: auto, train: {rows: [0, 1]}, eval: {rows: [1, 3]}}");
              }).what_happened(),
              HasSubstr("'blue' is none of the 1 values (red)"));
}

}  // namespace
}  // namespace lockstep::testing
