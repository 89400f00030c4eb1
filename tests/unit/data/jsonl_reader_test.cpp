// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JsonlReaderTest : public FolderTest {
 protected:
  std::unique_ptr<ReaderDataset> open(const std::string& file, Options options) const {
    options.emplace_back("path", file);
    return open_dataset("jsonl", params_for("jsonl", options), folder_);
  }
  /// The error for this text, read with features x and labels y.
  void expect_error(const std::string& text, const std::string& place, const std::string& what,
                    const Options& more = {}) const {
    write("bad", text);
    Options options{{"features", "x"}, {"labels", "y"}};
    options.insert(options.end(), more.begin(), more.end());
    expect_data_error([&] { open("bad", options); }, path("bad") + place, what);
  }
};

TEST_F(JsonlReaderTest, ReadsNumbersArraysAndNamesOfClasses) {
  for (const char* name : {"lines.jsonl", "lines.jsonl.gz"}) {
    const auto data = open(record_vector(name), {{"features", "x"}, {"labels", "y"}});
    EXPECT_EQ(data->feature_shape(), Shape({2, 2})) << name;
    EXPECT_EQ(features_of(*data), counted(12));
    EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(2, 0, 1));
    EXPECT_EQ(data->where(1), record_vector(name) + ", line 2");
    const auto names =
        open(record_vector(name), {{"features", "x"}, {"labels", "name"}, {"classes", "[a, b, c]"}});
    EXPECT_THAT(labels_of<std::int32_t>(*names), ElementsAre(2, 0, 1));
    const auto rows = open(record_vector(name), {{"features", "[flag, x]"}, {"labels", "target"}});
    EXPECT_EQ(rows->feature_shape(), Shape({5}));
    EXPECT_THAT(features_of(*rows, {1}), ElementsAre(1, 4, 5, 6, 7));
    EXPECT_THAT(labels_of<float>(*rows), ElementsAre(0, 0, 0.5, -1, 1, -2));
  }
}

TEST_F(JsonlReaderTest, LinesMayEndInAnyWayAndTheLastNotAtAll) {
  for (const char* text :
       {"{\"x\":1}\r\n{\"x\":2}\r\n", "\xEF\xBB\xBF{\"x\":1}\n{\"x\":2}", "{\"x\":1}\n {\"x\":2} \n\n \n"}) {
    write("x", text);
    EXPECT_THAT(features_of(*open("x", {{"features", "x"}})), ElementsAre(1, 2)) << text;
  }
}

TEST_F(JsonlReaderTest, RowsAndSeveralFiles) {
  write("a", "{\"x\":0}\n{\"x\":1}\n");
  write("b", "{\"x\":2}\n{\"x\":3}\n");
  const auto data = open("[a, b]", {{"features", "x"}, {"rows", "[1, 3]"}});
  EXPECT_THAT(features_of(*data), ElementsAre(1, 2));
  EXPECT_EQ(data->where(0), path("a") + ", line 2");
  EXPECT_EQ(data->where(1), path("b") + ", line 1");
}

TEST_F(JsonlReaderTest, AStreamHasTheValuesAndTheFingerprintOfMemory) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += bytes_of(record_vector("lines.jsonl"));
  write("long", lines);
  const Options options{{"features", "x"}, {"labels", "y"}, {"block_samples", "2"}};
  auto small = options;
  small.emplace_back("memory_gb", "1.5e-6");
  const auto memory = open("long", options), stream = open("long", small);
  ASSERT_NE(stream->stream(), nullptr);
  EXPECT_EQ(features_of(*memory), features_of(*stream));
  EXPECT_EQ(labels_of<std::int32_t>(*memory), labels_of<std::int32_t>(*stream));
  EXPECT_EQ(memory->fingerprint(), stream->fingerprint());
}

TEST_F(JsonlReaderTest, AFeatureIsNoLabel) {
  write("x", "{\"x\":1,\"y\":2}\n");
  try {
    open("x", {{"features", "[y, x]"}, {"labels", "x"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_THAT(error.what(), HasSubstr("names 'x', which is a feature, too"));
  }
}

TEST_F(JsonlReaderTest, BadLinesAreNamed) {
  const std::string good = "{\"x\":[1,2],\"y\":0}\n";
  expect_error("", "", "holds no lines");
  expect_error("\n\n", "", "holds no lines");
  expect_error(good + "\n" + good, ", line 2, column 1", "is not JSON");
  expect_error(good + "{\"x\":[1,2],\"y\":0", ", line 2, column 17", "is not JSON");
  expect_error(good + "{\"x\":[1,2],\"y\":0}}\n", ", line 2, column 18", "is not JSON");
  expect_error(good + "[1, 2]\n", ", line 2", "is an array, not an object");
  expect_error("3\n", ", line 1", "is not an object");
  expect_error(good + "{\"y\":0}\n", ", line 2", "has no field 'x'");
  expect_error(good + "{\"x\":[1,2]}\n", ", line 2", "has no field 'y'");
  expect_error(good + "{\"x\":[1,2,3],\"y\":0}\n", ", line 2",
               "'x' has the shape [3], but [2] in the first line");
  expect_error("{\"x\":[[1],[1,2]],\"y\":0}\n", ", line 1", "arrays of different lengths");
  expect_error("{\"x\":[1,[2]],\"y\":0}\n", ", line 1", "arrays beside numbers");
  expect_error("{\"x\":[[2],1],\"y\":0}\n", ", line 1", "numbers beside arrays");
  expect_error("{\"x\":[1,null],\"y\":0}\n", ", line 1", "is null");
  expect_error("{\"x\":[1,{}],\"y\":0}\n", ", line 1", "is an object");
  expect_error("{\"x\":[1,\"a\"],\"y\":0}\n", ", line 1", "has a text in an array");
  expect_error("{\"x\":[],\"y\":0}\n", ", line 1", "0 values");
  expect_error("{\"x\":1,\"x\":1,\"y\":0}\n", ", line 1", "is there twice");
  expect_error("{\"x\":[1,1e39],\"y\":0}\n", ", line 1", "is beyond float32");
  expect_error("{\"x\":[1,2],\"y\":\"cat\"}\n" + good, ", line 2", "'y' is no text");
  expect_error("{\"x\":[1,2],\"y\":\"cat\"}\n", ", line 1", "'cat' is none of the 2 classes",
               {{"classes", "[a, b]"}});
  expect_error(good + "{\"x\":[1,2],\"y\":0.5}\n", ", line 2", "label 0.5 is no class index");
  expect_error(good + "{\"x\":[1,2],\"y\":3000000000}\n", ", line 2", "is no class index");
  expect_error(good, ", line 1", "2 feature values, but the shape 3 needs 3", {{"shape", "[3]"}});
  EXPECT_THAT(error_of([&] {
                open("bad", {{"features", "x"}, {"classes", "[a, a]"}});
              }).what(),
              HasSubstr("names a class twice"));
}

}  // namespace
}  // namespace lockstep::testing
