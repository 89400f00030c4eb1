// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequences of different lengths (pad_to), as readers make samples of them. Those of HDF5 are written by h5py
// in tests/e2e/sequences_test.py.
#include <cmath>

#include "data/normalization.h"
#include "io/example.h"
#include "io/tfrecord_writer.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SequenceReaderTest : public FolderTest {
 protected:
  std::unique_ptr<ReaderDataset> open(const char* format, const std::string& file, Options options) const {
    options.emplace_back("path", file);
    options.emplace_back("features", "x");
    return open_dataset(format, params_for(format, options), folder_);
  }
  void expect_error(const std::string& last, const Options& options, const std::string& what) const {
    write("bad", "{\"x\": [1, 2]}\n{\"x\": [3, 4]}\n" + last + "\n");
    expect_data_error([&] { open("jsonl", "bad", options); }, path("bad") + ", line 3", what);
  }
  std::string refused(const Options& options) const {
    return error_of([&] { open("jsonl", "lines", options); }).what();
  }
};

TEST_F(SequenceReaderTest, ListsArePaddedAfterScalingAndTheirLengthsAreKnown) {
  write("lines", "{\"x\": [4, 6, 8]}\n{\"x\": []}\n{\"x\": [2]}\n");
  const auto data =
      open("jsonl", "lines",
           {{"pad_to", "4"}, {"pad_value", "-1"}, {"min_length", "0"}, {"scale", "2"}, {"mean", "1"}});
  EXPECT_EQ(data->feature_shape(), Shape({4}));
  EXPECT_THAT(features_of(*data), ElementsAre(7, 11, 15, -1, -1, -1, -1, -1, 3, -1, -1, -1));
  EXPECT_THAT(sequence_lengths(*data), ElementsAre(3, 0, 1));
  const auto lengths =
      open("jsonl", "lines", {{"pad_to", "4"}, {"lengths", "true"}, {"min_length", "0"}, {"scale", "1"}});
  EXPECT_EQ(lengths->feature_shape(), Shape({1}));
  EXPECT_THAT(features_of(*lengths), ElementsAre(3, 0, 1));
  EXPECT_EQ(lengths->sequence(), nullptr);
}

TEST_F(SequenceReaderTest, StepsMayBeArrays) {
  write("lines", "{\"x\": []}\n{\"x\": [[1, 2], [3, 4]]}\n{\"x\": [[5, 6]]}\n");
  const auto data = open("jsonl", "lines", {{"pad_to", "3"}, {"min_length", "0"}});
  EXPECT_EQ(data->feature_shape(), Shape({3, 2}));
  EXPECT_THAT(features_of(*data, {1, 2}), ElementsAre(1, 2, 3, 4, 0, 0, 5, 6, 0, 0, 0, 0));
  EXPECT_THAT(sequence_lengths(*data), ElementsAre(0, 2, 1));
}

TEST_F(SequenceReaderTest, LongOnesLoseTheirEndOrTheirBeginning) {
  write("lines", "{\"x\": [1, 2, 3, 4]}\n{\"x\": [5]}\n");
  EXPECT_THAT(features_of(*open("jsonl", "lines", {{"pad_to", "3"}, {"truncate", "back"}})),
              ElementsAre(1, 2, 3, 5, 0, 0));
  EXPECT_THAT(features_of(*open("jsonl", "lines", {{"pad_to", "3"}, {"truncate", "front"}})),
              ElementsAre(2, 3, 4, 5, 0, 0));
  EXPECT_THAT(
      features_of(*open("jsonl", "lines", {{"pad_to", "3"}, {"truncate", "front"}, {"lengths", "true"}})),
      ElementsAre(3, 1));
}

TEST_F(SequenceReaderTest, TextsAreBytes) {
  write("lines", "{\"x\": \"ab\"}\n{\"x\": \"\\u00fc\"}\n{\"x\": \"c\"}\n");
  EXPECT_THAT(features_of(*open("jsonl", "lines", {{"pad_to", "3"}})),
              ElementsAre(97, 98, 0, 0xC3, 0xBC, 0, 99, 0, 0));
}

TEST_F(SequenceReaderTest, NormalisationCountsNoPadding) {
  write("lines", "{\"x\": [1, 3]}\n{\"x\": [5]}\n");
  const auto data = open("jsonl", "lines", {{"pad_to", "9"}, {"normalize", "channels"}, {"pad_value", "7"}});
  const Normalization values = computed_normalization(*data, nullptr, 1);
  EXPECT_THAT(values.mean, ElementsAre(3));
  EXPECT_FLOAT_EQ(values.std[0], std::sqrt(8.0F / 3.0F));
  const ReaderDataset normal = data->fitted({.normalization = std::make_shared<const Normalization>(values)});
  EXPECT_EQ(features_of(normal, {0})[2], 7);
  EXPECT_EQ(features_of(normal, {1})[0], 2 / values.std[0]);
}

TEST_F(SequenceReaderTest, RecordsThatDoNotFitAreNamed) {
  const Options two{{"pad_to", "2"}};
  expect_error("{\"x\": [1, 2, 3]}", two, "'x' has 3 steps, more than pad_to (2)");
  expect_error("{\"x\": []}", two, "'x' is an empty sequence");
  expect_error("{\"x\": [1]}", {{"pad_to", "2"}, {"min_length", "2"}}, "'x' has 1 steps, fewer than");
  expect_error("{\"x\": [[1], [2]]}", two, "steps of the shape [1], but [] in the first line");
  expect_error("{\"x\": 7}", two, "is one number, no sequence");
  expect_error("{\"x\": \"ab\"}", two, "field 'x' is a text");
  expect_error("{\"x\": [1e300]}", two, "beyond float32");
  expect_error("{\"y\": [1]}", two, "has no field 'x'");
}

TEST_F(SequenceReaderTest, OptionsThatDoNotFitAreRefused) {
  write("lines", "{\"x\": [1]}\n");
  EXPECT_THAT(refused({{"truncate", "back"}}), HasSubstr("pad_to is not given"));
  EXPECT_THAT(refused({{"pad_to", "2"}, {"min_length", "3"}}), HasSubstr("more than pad_to (2)"));
  EXPECT_THAT(refused({{"pad_to", "2"}, {"lengths", "true"}, {"scale", "2"}}), HasSubstr("lengths: true"));
  EXPECT_THAT(refused({{"pad_to", "2"}, {"shape", "[2]"}}), HasSubstr("is given with pad_to"));
  write("lines", "{\"x\": \"ab\"}\n{\"x\": [1]}\n");
  EXPECT_THAT(refused({{"pad_to", "2"}}), HasSubstr("field 'x' is no text"));
}

class TfrecordSequenceTest : public SequenceReaderTest {
 protected:
  void add(ExampleBuilder& example) {
    if (!writer_) writer_.emplace(path("records"));
    writer_->write(example.serialized());
    example.clear();
  }
  std::unique_ptr<ReaderDataset> read(const Options& options) {
    if (writer_) writer_->close();
    writer_.reset();
    return open("tfrecord", "records", options);
  }
  std::optional<TfrecordWriter> writer_;
};

TEST_F(TfrecordSequenceTest, ListsOfEachKind) {
  ExampleBuilder example;
  add(example.add_floats("x", {}).add_integers("n", {}).add_bytes("raw", ""));
  add(example.add_floats("x", std::vector<float>{1, 2, 3, 4})
          .add_integers("n", std::vector<std::int64_t>{5})
          .add_bytes("raw", "c"));
  add(example.add_floats("x", std::vector<float>{6, 7})
          .add_integers("n", std::vector<std::int64_t>{-8, 9})
          .add_bytes("raw", "ab"));
  auto data = read({{"pad_to", "2"}, {"step_shape", "[2]"}, {"min_length", "0"}});
  EXPECT_EQ(data->feature_shape(), Shape({2, 2}));
  EXPECT_THAT(features_of(*data), ElementsAre(0, 0, 0, 0, 1, 2, 3, 4, 6, 7, 0, 0));
  EXPECT_THAT(sequence_lengths(*data), ElementsAre(0, 2, 1));
  const auto whole = [&](const char* name, const Options& more) {
    Options options{{"path", "records"}, {"features", name}, {"pad_to", "2"}, {"min_length", "0"}};
    options.insert(options.end(), more.begin(), more.end());
    return features_of(*open_dataset("tfrecord", params_for("tfrecord", options), folder_));
  };
  EXPECT_THAT(whole("n", {}), ElementsAre(0, 0, 5, 0, -8, 9));
  EXPECT_THAT(whole("raw", {{"dtype", "uint8"}}), ElementsAre(0, 0, 99, 0, 97, 98));
}

TEST_F(TfrecordSequenceTest, RecordsThatDoNotFitAreNamed) {
  ExampleBuilder example;
  add(example.add_floats("x", std::vector<float>{1, 2}));
  add(example.add_floats("x", std::vector<float>{1, 2, 3}));
  expect_data_error(
      [&] {
        read({{"pad_to", "4"}, {"step_shape", "[2]"}});
      },
      path("records") + ", record 1", "no whole steps of 2");
  expect_data_error([&] { read({{"pad_to", "2"}}); }, path("records") + ", record 1", "more than pad_to (2)");
  writer_.emplace(path("records"));
  add(example.add_floats("x", std::vector<float>{1, 2}));
  add(example.add_integers("x", std::vector<std::int64_t>{1}));
  expect_data_error(
      [&] {
        read({{"pad_to", "2"}});
      },
      path("records") + ", record 1", "is a list of int64, but of float in the first record");
}

}  // namespace
}  // namespace lockstep::testing
