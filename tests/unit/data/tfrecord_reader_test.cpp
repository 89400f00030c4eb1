// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/example.h"
#include "io/tfrecord_file.h"
#include "io/tfrecord_writer.h"
#include "unit/data/image_vectors.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TfrecordReaderTest : public FolderTest {
 protected:
  std::unique_ptr<ReaderDataset> open(const std::string& file, Options options) const {
    options.emplace_back("path", file);
    return open_dataset("tfrecord", params_for("tfrecord", options), folder_);
  }
  void expect_error(const Options& options, const std::string& place, const std::string& what) const {
    expect_data_error([&] { open(record_vector("plain.tfrecord"), options); },
                      record_vector("plain.tfrecord") + place, what);
  }
};

TEST_F(TfrecordReaderTest, ReadsFloatsIntegersAndBytesPackedOrNot) {
  for (const char* name : {"plain.tfrecord", "gzip.tfrecord", "zlib.tfrecord"}) {
    SCOPED_TRACE(name);
    const auto floats = open(record_vector(name), {{"features", "floats"}, {"labels", "label"}});
    EXPECT_EQ(floats->feature_dtype(), DType::f32);
    EXPECT_EQ(features_of(*floats), counted(12));
    EXPECT_EQ(floats->label_kind(), LabelKind::indices);
    EXPECT_THAT(labels_of<std::int32_t>(*floats), ElementsAre(2, 0, 1));
    const auto integers = open(record_vector(name), {{"features", "integers"}, {"labels", "target"}});
    EXPECT_EQ(integers->feature_dtype(), DType::i64);
    EXPECT_EQ(features_of(*integers), counted(12));
    EXPECT_EQ(integers->label_kind(), LabelKind::rows);
    EXPECT_THAT(labels_of<float>(*integers), ElementsAre(0, 0, 0.5, -1, 1, -2));
    const auto narrow = open(record_vector(name), {{"features", "integers"}, {"dtype", "uint8"}});
    EXPECT_EQ(narrow->feature_dtype(), DType::u8);
    EXPECT_EQ(features_of(*narrow), counted(12));
    const auto raw = open(record_vector(name), {{"features", "raw"}, {"shape", "[2, 2]"}});
    EXPECT_EQ(raw->feature_dtype(), DType::u8);
    EXPECT_EQ(raw->feature_shape(), Shape({2, 2}));
    EXPECT_EQ(features_of(*raw), counted(12));
  }
}

TEST_F(TfrecordReaderTest, NumbersInBytesHaveATypeAnOrderAndALayout) {
  const auto big = open(record_vector("plain.tfrecord"), {{"features", "big"},
                                                          {"dtype", "int16"},
                                                          {"byte_order", "big"},
                                                          {"shape", "[2, 2]"},
                                                          {"layout", "channels_first"}});
  EXPECT_EQ(big->feature_dtype(), DType::i16);
  EXPECT_THAT(features_of(*big, {1}), ElementsAre(4, 6, 5, 7));
}

TEST_F(TfrecordReaderTest, FilesAreReadAsOneAndRowsChooseRecords) {
  const std::string both =
      "[" + record_vector("plain.tfrecord") + ", " + record_vector("other.tfrecord") + "]";
  const auto data = open(both, {{"features", "floats"}, {"labels", "label"}, {"rows", "[1, 4]"}});
  EXPECT_THAT(features_of(*data), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_EQ(data->where(0), record_vector("plain.tfrecord") + ", record 1");
  EXPECT_EQ(data->where(2), record_vector("other.tfrecord") + ", record 0");
  const Params params = params_for("tfrecord", {{"path", both}, {"features", "floats"}, {"labels", "name"}});
  EXPECT_EQ(open_input("tfrecord", params,
                       {.paths = {record_vector("other.tfrecord")}, .feature_shape = {4}, .labels = true})
                ->num_label_columns(),
            0);
}

TEST_F(TfrecordReaderTest, AStreamHasTheValuesAndTheFingerprintOfMemory) {
  std::string records;
  for (int i = 0; i < 40; ++i) records += bytes_of(record_vector("plain.tfrecord"));
  write("long.tfrecord", records);
  const Options options{{"features", "integers"}, {"labels", "label"}, {"block_samples", "2"}};
  auto small = options;
  small.emplace_back("memory_gb", "2e-6");
  const auto memory = open("long.tfrecord", options), stream = open("long.tfrecord", small);
  ASSERT_EQ(memory->stream(), nullptr);
  ASSERT_NE(stream->stream(), nullptr);
  EXPECT_EQ(memory->size(), 120);
  EXPECT_EQ(features_of(*memory), features_of(*stream));
  EXPECT_EQ(labels_of<std::int32_t>(*memory), labels_of<std::int32_t>(*stream));
  EXPECT_EQ(memory->fingerprint(), stream->fingerprint());
  write_gzip("long.gz", records);
  EXPECT_EQ(open("long.gz", options)->fingerprint(), memory->fingerprint());
  EXPECT_THAT(error_of([&] { open("long.gz", small); }).what(), HasSubstr("compressed as a whole"));
}

TEST_F(TfrecordReaderTest, EncodedImagesAreDecodedAndResized) {
  const Picture first = picture("rgb.png"), second = picture("rgb.jpg");
  const auto text_of = [](const Bytes& file) {
    return std::string(reinterpret_cast<const char*>(file.data()), file.size());
  };
  const auto write_images = [&](const std::string& name, const std::vector<std::string>& files) {
    TfrecordWriter writer(path(name));
    for (std::size_t i = 0; i < files.size(); ++i)
      writer.write(ExampleBuilder()
                       .add_bytes("image", files[i])
                       .add_integer("label", static_cast<std::int64_t>(i))
                       .serialized());
    writer.close();
  };
  const Options options{{"features", "image"}, {"labels", "label"}, {"encoding", "image"}};
  write_images("images.tfrecord", {text_of(first.file), text_of(second.file), text_of(first.file)});
  const auto data = open("images.tfrecord", options);
  EXPECT_EQ(data->feature_shape(), (Shape{first.height, first.width, 3}));
  EXPECT_EQ(data->feature_dtype(), DType::u8);
  EXPECT_EQ(features_of(*data, {2}), std::vector<float>(first.pixels.begin(), first.pixels.end()));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(0, 1, 2));
  auto small = options;
  small.emplace_back("size", "[3, 4]");
  small.emplace_back("channels", "1");
  EXPECT_EQ(open("images.tfrecord", small)->feature_shape(), (Shape{3, 4, 1}));

  std::string damaged = text_of(first.file);
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  write_images("damaged.tfrecord", {text_of(first.file), damaged});
  const Error error = error_of([&] { features_of(*open("damaged.tfrecord", options)); });
  EXPECT_THAT(error.where(), HasSubstr("damaged.tfrecord, record 1, feature 'image'"));

  auto with_shape = options;
  with_shape.emplace_back("shape", "[2, 2]");
  EXPECT_THAT(error_of([&] { open("images.tfrecord", with_shape); }).what(),
              HasSubstr("about numbers, but encoding is image"));
  EXPECT_THAT(error_of([&] {
                open("images.tfrecord", {{"features", "image"}, {"size", "3"}});
              }).what(),
              HasSubstr("about encoded images, but encoding is none"));
  EXPECT_THAT(error_of([&] {
                open("images.tfrecord", {{"features", "label"}, {"encoding", "image"}});
              }).what(),
              HasSubstr("'label' is a list of int64"));
}

TEST_F(TfrecordReaderTest, WhatCannotBeReadIsNamed) {
  expect_error({{"features", "float"}}, ", record 0", "has no feature 'float'");
  expect_error({{"features", "name"}}, ", record 0", "2 values of bytes");
  expect_error({{"features", "empty"}}, ", record 0", "is empty");
  expect_error({{"features", "raw"}, {"dtype", "int64"}}, ", record 0", "no whole number of int64");
  expect_error({{"features", "raw"}, {"shape", "[5]"}}, ", record 0", "but the shape 5 needs 5");
  expect_error({{"features", "raw"}, {"labels", "name"}}, ", record 0", "'name' has 2 values of bytes");
  expect_error({{"features", "raw"}, {"labels", "negative"}}, ", record 0",
               "label -9223372036854775808 does not fit");
  expect_error({{"features", "negative"}, {"dtype", "int32"}}, ", record 0", "does not fit into int32");
  expect_error({{"features", "raw"}, {"rows", "[2, 4]"}}, "", "there are 3 rows");
  expect_data_error(
      [&] {
        open(record_vector("version1.npy"), {{"features", "x"}});
      },
      record_vector("version1.npy") + ", record 0, byte 0", "no TFRecord file");
  const std::string both =
      "[" + record_vector("plain.tfrecord") + ", " + record_vector("other.tfrecord") + "]";
  expect_data_error(
      [&] {
        open(both, {{"features", "raw"}});
      },
      record_vector("other.tfrecord") + ", record 0", "has no feature 'raw'");
}

TEST_F(TfrecordReaderTest, EveryTruncationAndEveryChangedByteIsFound) {
  for (const char* name : {"plain.tfrecord", "gzip.tfrecord", "zlib.tfrecord"}) {
    const std::string whole = bytes_of(record_vector(name));
    const std::string plain = bytes_of(record_vector("plain.tfrecord"));
    const auto expect_found = [&](const std::string& bytes, const std::string& what) {
      write("bad", bytes);
      try {
        const auto data = open("bad", {{"features", "floats"}, {"labels", "label"}});
        // A gzip header has bits that nobody uses; and files may end between two records.
        EXPECT_TRUE(whole != plain || data->size() < 3) << name << what;
        EXPECT_EQ(features_of(*data), counted(static_cast<int>(data->size()) * 4)) << name << what;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data) << name << what << error.what();
        EXPECT_THAT(error.where(), HasSubstr(path("bad"))) << name << what;
      }
    };
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 3)
      expect_found(whole.substr(0, bytes), fmt::format(" cut to {}", bytes));
    for (std::size_t at = 0; at < whole.size(); at += whole == plain ? 1 : 3) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x10);
      expect_found(changed, fmt::format(" changed at {}", at));
    }
  }
  std::string changed = bytes_of(record_vector("plain.tfrecord"));
  const auto second =
      static_cast<std::size_t>(find_tfrecords(*file_bytes(record_vector("plain.tfrecord")))[1]);
  changed[second + 30] ^= 1;
  write("bad", changed);
  expect_data_error(
      [&] {
        open("bad", {{"features", "floats"}});
      },
      path("bad") + ", record 1", "the checksum of its data is wrong");
  changed[second + 1] ^= 1;
  write("bad", changed);
  expect_data_error(
      [&] {
        open("bad", {{"features", "floats"}});
      },
      path("bad") + fmt::format(", record 1, byte {}", second), "the checksum of its length is wrong");
}

TEST(Example, ABuiltExampleIsReadAgain) {
  const std::int64_t integers[] = {0, -1, 127, 128, std::numeric_limits<std::int64_t>::min()};
  const float floats[] = {0.5F, -2};
  const std::string_view texts[] = {"", "abc"};
  ExampleBuilder builder;
  builder.add_integers("i", integers).add_floats("f", floats).add_bytes("b", texts).add_integers("none", {});
  const std::string example = builder.serialized();
  EXPECT_THAT(feature_names(example), ElementsAre("b", "f", "i", "none"));
  const auto feature = find_feature(example, "i");
  std::vector<std::int64_t> read(static_cast<std::size_t>(feature->count()));
  feature->read(read);
  EXPECT_THAT(read, ::testing::ElementsAreArray(integers));
  EXPECT_THAT(find_feature(example, "b")->bytes(), ElementsAre("", "abc"));
  EXPECT_EQ(find_feature(example, "none")->count(), 0);
  EXPECT_FALSE(find_feature(example, "x").has_value());
}

TEST(Example, AFeatureThatOccursTwiceIsRefused) {
  const std::int64_t one[] = {1}, two[] = {2};
  const std::string first = ExampleBuilder().add_integers("x", one).serialized();
  const std::string second = ExampleBuilder().add_integers("x", two).add_integers("y", one).serialized();
  const std::string doubled = first + second;  // the messages of a file are joined, as protobuf defines
  const Error error = error_of([&] { find_feature(doubled, "x"); });
  EXPECT_EQ(error.what_happened(), "the feature 'x' occurs twice");
  EXPECT_THAT(error.where(), HasSubstr("byte "));
  EXPECT_TRUE(find_feature(doubled, "y").has_value());
  // One entry with two names, and with two values.
  for (const std::string& entry :
       {std::string("\x0a\x01x\x0a\x01y\x12\x00", 8), std::string("\x0a\x01x\x12\x00\x12\x00", 7)}) {
    const std::string features = std::string("\x0a") + static_cast<char>(entry.size()) + entry;
    const std::string example = std::string("\x0a") + static_cast<char>(features.size()) + features;
    EXPECT_EQ(error_of([&] { find_feature(example, "x"); }).what_happened(),
              "a feature has two names or two values");
  }
}

TEST(Example, DamageIsNamedWithTheByte) {
  const std::pair<std::string, const char*> messages[] = {
      {std::string("\x0a\x05", 2), "a field of 5 bytes is longer than its message"},
      {"\x0a", "a message ends within a number"},
      {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "a number has more than 10 bytes"},
      {"\x0b", "the wire type 3"},
      {std::string("\x00\x01", 2), "a wrong number"}};
  for (const auto& [message, what] : messages) {
    const Error error = error_of([&] { find_feature(message, "x"); });
    EXPECT_THAT(error.what_happened(), HasSubstr(what));
    EXPECT_THAT(error.where(), HasSubstr("byte "));
  }
  // A feature x with two lists; one with a list of 3 bytes of floats.
  const std::string two("\x0a\x0d\x0a\x0b\x0a\x01x\x12\x06\x0a\x01\x00\x12\x01\x00", 15);
  EXPECT_THAT(error_of([&] { find_feature(two, "x"); }).what_happened(), HasSubstr("two lists"));
  const std::string floats(
      "\x0a\x0e\x0a\x0c\x0a\x01x\x12\x07\x12\x05\x0a\x03"
      "abc",
      16);
  const auto feature = find_feature(floats, "x");
  ASSERT_TRUE(feature.has_value());
  EXPECT_THAT(error_of([&] { feature->count(); }).what_happened(), HasSubstr("has 3 bytes"));
}

}  // namespace
}  // namespace lockstep::testing
