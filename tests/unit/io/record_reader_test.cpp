// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/record_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "core/end_of_input.h"
#include "core/error.h"
#include "io/example.h"
#include "io/tfrecord_writer.h"
#include "support/test_folders.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RecordReaderTest : public ::testing::Test {
 protected:
  RecordReaderTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-records-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = pattern;
  }
  ~RecordReaderTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::vector<std::string> values_of(RecordReader& reader) {
    std::vector<std::string> values;
    while (const auto record = reader.next()) values.push_back(record->value);
    return values;
  }
  std::string folder_;
};

TEST_F(RecordReaderTest, TheEndOfInputIsAnOutcomeThatStays) {
  TextLineReader reader({write("a", "1\n2\n"), write("b", "3")});
  EXPECT_EQ(reader.read().key, path("a") + ":0");
  const Record second = reader.read();
  EXPECT_EQ(second.key, path("a") + ":1");
  EXPECT_EQ(second.value, "2");
  EXPECT_EQ(reader.read().key, path("b") + ":0");
  EXPECT_EQ(reader.num_records(), 3);
  EXPECT_THROW(reader.read(), EndOfInput);
  EXPECT_EQ(reader.next(), std::nullopt);
  reader.reset();
  EXPECT_EQ(reader.read_up_to(2).size(), 2U);
  EXPECT_EQ(reader.read_up_to(2).size(), 1U);
}

TEST_F(RecordReaderTest, LinesOfTextOfAnyEndAndLength) {
  const std::string long_line(600000, 'y');
  TextLineReader reader({write("a", "header\nx\r\n\n" + long_line + "\nz"), write("b", "header\n")}, 1);
  EXPECT_THAT(values_of(reader), ElementsAre("x", "", long_line, "z"));
  gzFile file = gzopen(path("c").c_str(), "wb");
  gzwrite(file, "p\nq\n", 4);
  gzclose(file);
  TextLineReader packed({path("c")});
  EXPECT_THAT(values_of(packed), ElementsAre("p", "q"));
}

TEST_F(RecordReaderTest, RecordsOfAFixedLength) {
  FixedLengthRecordReader reader({write("a", "Haabbcc.")},
                                 {.record_bytes = 2, .header_bytes = 1, .footer_bytes = 1});
  EXPECT_THAT(values_of(reader), ElementsAre("aa", "bb", "cc"));
  FixedLengthRecordReader overlapping({write("b", "abcd")}, {.record_bytes = 3, .hop_bytes = 1});
  EXPECT_THAT(values_of(overlapping), ElementsAre("abc", "bcd"));
  FixedLengthRecordReader cut({write("c", "abc")}, {.record_bytes = 2});
  EXPECT_THROW(cut.next(), Error);
}

TEST_F(RecordReaderTest, WholeFilesHaveTheirPathAsKey) {
  WholeFileReader reader({write("a", "one\ntwo"), write("b", "")});
  const Record first = reader.read();
  EXPECT_EQ(first.key, path("a"));
  EXPECT_EQ(first.value, "one\ntwo");
  EXPECT_EQ(reader.read().value, "");
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST_F(RecordReaderTest, WhatTheWriterWritesTheReaderReads) {
  const std::string large(700000, 'z');
  using enum TfrecordCompression;
  for (const auto compression : {none, gzip, zlib}) {
    TfrecordWriter writer(path("x"), compression);
    for (const std::string& record : {std::string("abc"), std::string(), large}) writer.write(record);
    writer.close();
    EXPECT_EQ(writer.num_records(), 3);
    const auto first = static_cast<unsigned char>(bytes_of(path("x"))[0]);
    EXPECT_EQ(first, compression == none ? 3 : compression == gzip ? 0x1F : 0x78);
    TfrecordReader reader({path("x")});
    EXPECT_THAT(values_of(reader), ElementsAre("abc", "", large));
  }
}

TEST_F(RecordReaderTest, TheBytesAreTensorFlows) {
  const float values[] = {12, 13, 14, 15};
  TfrecordWriter writer(path("x"));
  writer.write(ExampleBuilder().add_integer("label", 2).add_floats("floats", values).serialized());
  writer.close();
  EXPECT_EQ(bytes_of(path("x")), bytes_of(test_vectors("records/other.tfrecord")));
}

TEST_F(RecordReaderTest, WithoutCloseTheOldFileStays) {
  write("x", "old");
  { TfrecordWriter(path("x")).write("new"); }
  EXPECT_EQ(bytes_of(path("x")), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(RecordReaderTest, ATruncatedOrChangedRecordIsNamed) {
  TfrecordWriter writer(path("x"));
  writer.write("abc");
  writer.write("defg");
  writer.close();
  const std::string whole = bytes_of(path("x"));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    const std::string cut = whole.substr(0, at);
    for (const std::string& bytes : {changed, cut}) {
      if (bytes.size() == 19 || bytes.empty()) continue;  // between the records
      TfrecordReader reader({write("bad", bytes)});
      try {
        values_of(reader);
        ADD_FAILURE() << at;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data);
        EXPECT_THAT(error.where(), HasSubstr(path("bad") + (at < 19 ? ", record 0" : ", record 1"))) << at;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
