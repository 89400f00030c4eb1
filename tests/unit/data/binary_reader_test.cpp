// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BinaryReaderTest : public FolderTest {
 protected:
  std::unique_ptr<ReaderDataset> open(Options options, const Options& more = {}) const {
    options.insert(options.end(), more.begin(), more.end());
    return open_dataset("binary", params_for("binary", options), folder_);
  }
  static Options cifar(const std::string& file) {
    return {{"path", file},
            {"features_offset", "1"},
            {"shape", "[3, 2, 2]"},
            {"layout", "channels_first"},
            {"labels_offset", "0"}};
  }
  static Options framed() {
    return {{"path", record_vector("framed.bin")},
            {"header_bytes", "4"},
            {"footer_bytes", "3"},
            {"hop_bytes", "10"},
            {"dtype", "int16"},
            {"byte_order", "big"},
            {"shape", "[2]"},
            {"labels_offset", "4"},
            {"labels_dtype", "float32"}};
  }
};

TEST_F(BinaryReaderTest, ReadsCifarPlainAndGzip) {
  for (const char* name : {"cifar.bin", "cifar.bin.gz"}) {
    const auto data = open(cifar(record_vector(name)));
    EXPECT_EQ(data->feature_shape(), Shape({2, 2, 3}));
    EXPECT_EQ(data->feature_dtype(), DType::u8);
    EXPECT_THAT(features_of(*data, {1}), ElementsAre(12, 16, 20, 13, 17, 21, 14, 18, 22, 15, 19, 23)) << name;
    EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(2, 0, 1));
    EXPECT_EQ(data->where(2), record_vector(name) + ", record 2");
  }
}

TEST_F(BinaryReaderTest, HeaderHopFooterAndBigEndianNumbers) {
  const auto data = open(framed());
  EXPECT_EQ(data->feature_dtype(), DType::i16);
  EXPECT_EQ(features_of(*data), counted(6));
  EXPECT_EQ(data->label_kind(), LabelKind::rows);
  EXPECT_THAT(labels_of<float>(*data), ElementsAre(0, 0.5, 1));
}

TEST_F(BinaryReaderTest, RecordsMayOverlap) {
  write("x", std::string("\x00\x01\x02\x03\x04", 5));
  const auto data = open({{"path", "x"}, {"shape", "[3]"}, {"hop_bytes", "1"}});
  EXPECT_THAT(features_of(*data), ElementsAre(0, 1, 2, 1, 2, 3, 2, 3, 4));
}

TEST_F(BinaryReaderTest, AStreamHasTheValuesAndTheFingerprintOfMemory) {
  std::string records;
  for (int i = 0; i < 50; ++i) records += bytes_of(record_vector("cifar.bin"));
  write("long", records);
  const auto memory = open(cifar("long"), {{"block_samples", "3"}});
  const auto stream = open(cifar("long"), {{"block_samples", "3"}, {"memory_gb", "1.5e-6"}});
  ASSERT_NE(stream->stream(), nullptr);
  EXPECT_EQ(memory->size(), 150);
  EXPECT_EQ(features_of(*memory), features_of(*stream));
  EXPECT_EQ(labels_of<std::int32_t>(*memory), labels_of<std::int32_t>(*stream));
  EXPECT_EQ(memory->fingerprint(), stream->fingerprint());
}

TEST_F(BinaryReaderTest, PredictionReadsFilesOfTheSameRecords) {
  const Params params = params_for("binary", cifar("train"));
  for (const bool labels : {false, true}) {
    const auto data =
        open_input("binary", params,
                   {.paths = {record_vector("cifar.bin")}, .feature_shape = {2, 2, 3}, .labels = labels});
    EXPECT_EQ(data->size(), 3);
    EXPECT_EQ(data->num_label_columns(), labels ? 1 : 0);
  }
}

TEST_F(BinaryReaderTest, EveryTruncationThatIsNoRecordIsRefused) {
  const std::string whole = bytes_of(record_vector("cifar.bin"));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    write("cut", whole.substr(0, bytes));
    if (bytes % 13 == 0 && bytes > 0) {
      EXPECT_EQ(open(cifar("cut"))->size(), static_cast<std::int64_t>(bytes / 13));
    } else {
      const Error error = error_of([&] { open(cifar("cut")); });
      EXPECT_EQ(error.kind(), ErrorKind::data) << bytes;
      EXPECT_THAT(error.where(), HasSubstr(path("cut"))) << bytes;
    }
  }
  write("cut", whole.substr(0, 30));
  expect_data_error([&] { open(cifar("cut")); }, path("cut") + ", record 2",
                    "4 bytes are left after 2 records");
  const std::string packed = bytes_of(record_vector("cifar.bin.gz"));
  write("cut", packed.substr(0, packed.size() - 5));
  EXPECT_THAT(error_of([&] { open(cifar("cut")); }).what(), HasSubstr("end early: truncated?"));
}

TEST_F(BinaryReaderTest, WrongOptionsAreNamed) {
  const auto advice_of = [&](const Options& options) {
    return std::string(error_of([&] { open(options); }).what());
  };
  EXPECT_THAT(advice_of({{"path", "x"}, {"shape", "[3]"}, {"record_bytes", "2"}}),
              HasSubstr("record_bytes: is 2, but the fields of a record end at byte 3"));
  EXPECT_THAT(advice_of({{"path", "x"}, {"shape", "[3]"}, {"layout", "channels_first"}}),
              HasSubstr("needs samples of at least two axes"));
  EXPECT_THAT(advice_of({{"path", "x"}, {"shape", "[1000000000000, 1000000]"}}), HasSubstr("values"));
}

}  // namespace
}  // namespace lockstep::testing
