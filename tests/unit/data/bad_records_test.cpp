// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/bad_records.h"

#include <random>

#include "data/good_samples.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GoodSamples, AreThoseThatAreNotBadForAnyBadOnes) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const std::int64_t size = 1 + random() % 40;
    std::vector<std::int64_t> bad, expected;
    for (std::int64_t i = 0; i < size; ++i) (random() % 4 < 2U ? bad : expected).push_back(i);
    const GoodSamples good(size, bad);
    ASSERT_EQ(good.size(), std::ssize(expected));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(good.at(static_cast<std::int64_t>(i)), expected[i]);
      std::size_t end = i + 1;
      while (end < expected.size() && expected[end] == expected[end - 1] + 1) ++end;
      ASSERT_EQ(good.run_from(static_cast<std::int64_t>(i)), static_cast<std::int64_t>(end - i));
    }
  }
}

TEST(BadRecordList, IsReadAsItWasWritten) {
  const std::vector<BadRecordList> lists{
      {"train", "", {{3, "a, \"b\".csv, line 4", "is bad,\nvery"}, {9, "x", ""}}},
      {"eval", "left, right", {{0, "y", "z"}}}};
  const auto read = bad_records_from_text(bad_records_text(lists), "here");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].records[0], (BadRecord{3, "a, \"b\".csv, line 4", "is bad, very"}));
  EXPECT_EQ(read[0].records[1], lists[0].records[1]);
  EXPECT_EQ(read[1].set, "eval");
  EXPECT_EQ(read[1].input, "left, right");
  const std::string text = bad_records_text(lists);
  for (std::size_t end = 0; end + 1 < text.size(); ++end)
    if (text[end] != '\n')
      expect_data_error([&] { bad_records_from_text(text.substr(0, end + 1), "here"); }, "here",
                        "is no list");
  expect_data_error(
      [&] { bad_records_from_text(text + "train,\"\",5,\"a\",\"b\"\ntrain,\"\",5,\"a\",\"b\"\n", "here"); },
      "here", "is no list");
}

class BadRecordsTest : public FolderTest {
 protected:
  std::unique_ptr<ReaderDataset> open(const std::string& format, Options options) const {
    options.insert(options.end(), {{"bad_records", "skip"}, {"max_bad_records", "5"}});
    return open_dataset(format, params_for(format, options), folder_);
  }
  static std::vector<std::string> places_of(const ReaderDataset& data) {
    std::vector<std::string> places;
    for (const BadRecord& record : data.stored().parts().left_out)
      places.push_back(record.where.substr(record.where.rfind('/') + 1));
    return places;
  }
};

TEST_F(BadRecordsTest, LinesOfJsonThatAreNoSamples) {
  write("a", "{\"x\": [1\n{\"x\": [1, 2]}\n{\"x\": [1e39, 2]}\n{\"x\": [3, 4]}\n");
  write("b", "{\"x\": [5, 6]}\n{\"x\": [5, 6, 7]}\n{\"x\": [7, 8]}\n{}\n");
  for (const char* memory : {"1", "0.000001"}) {
    SCOPED_TRACE(memory);
    const auto data =
        open("jsonl", {{"path", "[a, b]"}, {"features", "x"}, {"block_samples", "2"}, {"memory_gb", memory}});
    EXPECT_THAT(features_of(*data), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
    EXPECT_EQ(data->stored().parts().num_left_out, 4);
    EXPECT_THAT(places_of(*data), ElementsAre("a, line 1", "a, line 3", "b, line 2", "b, line 4"));
    EXPECT_EQ(data->where(1), path("a") + ", line 4");
    EXPECT_EQ(data->where(2), path("b") + ", line 1");
    EXPECT_EQ(data->where(3), path("b") + ", line 3");
  }
}

TEST_F(BadRecordsTest, PackedFilesAreSearchedInOrder) {
  write_gzip("a.gz", "{\"x\": 1}\n{\"x\": true, \"x\n{\"x\": 3}\n{\"x\": \"no\"}\n");
  const auto data = open("jsonl", {{"path", "a.gz"}, {"features", "x"}});
  EXPECT_THAT(features_of(*data), ElementsAre(1, 3));
  EXPECT_THAT(places_of(*data), ElementsAre("a.gz, line 2", "a.gz, line 4"));
}

TEST_F(BadRecordsTest, RowsOfATableThatAreNoSamples) {
  write("a.csv", "1,2,0\n3,4\n5,six,1\n7,8,1\n");
  write("b.csv", "9,10,2\n11,nan,0\n13,14,0\n");
  const auto data = open("csv", {{"path", "[a.csv, b.csv]"}});
  EXPECT_THAT(features_of(*data), ElementsAre(1, 2, 7, 8, 9, 10, 13, 14));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(places_of(*data), ElementsAre("a.csv, line 2", "a.csv, line 3", "b.csv, line 2"));
  EXPECT_EQ(data->where(1), path("a.csv") + ", line 4");
  EXPECT_EQ(data->where(3), path("b.csv") + ", line 3");
}

TEST_F(BadRecordsTest, ValuesThatAreNotFinite) {
  const std::vector<float> values{1, 2, 3, std::numeric_limits<float>::infinity(), 5, 6};
  write("x.bin", {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  const auto data = open("binary", {{"path", "x.bin"}, {"shape", "[2]"}, {"dtype", "float32"}});
  EXPECT_THAT(features_of(*data), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(places_of(*data), ElementsAre("x.bin, record 1"));
}

TEST_F(BadRecordsTest, MoreThanTheLimitAreAnError) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += i % 10 == 3 ? "{}\n" : "{\"x\": 1}\n";
  write("x", text);
  const auto open_with = [&](const char* limit) {
    return open_dataset(
        "jsonl",
        params_for("jsonl",
                   {{"path", "x"}, {"features", "x"}, {"bad_records", "skip"}, {"max_bad_records", limit}}),
        folder_);
  };
  EXPECT_EQ(open_with("10")->stored().parts().num_left_out, 10);
  EXPECT_EQ(open_with("0.1")->stored().parts().num_left_out, 10);
  for (const auto& [limit, most] : {std::pair{"9", "9"}, {"0.099", "9"}, {"0", "0"}}) {
    const Error error = error_of([&, limit = limit] { open_with(limit); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_THAT(error.what(), ::testing::HasSubstr(fmt::format("more than {} of 100 records are bad", most)));
    EXPECT_THAT(error.where(), ::testing::HasSubstr(", line "));
  }
  EXPECT_EQ(error_of([&] { open_with("2.5"); }).kind(), ErrorKind::config);
}

TEST_F(BadRecordsTest, AFileThatIsCutIsNoBadRecord) {
  write_gzip("a.gz", std::string(100000, ' ') + "{\"x\": 1}\n{\"x\": 2}\n");
  const std::string bytes = read("a.gz");
  write("a.gz", bytes.substr(0, bytes.size() - 9));
  const Error error = error_of([&] { open("jsonl", {{"path", "a.gz"}, {"features", "x"}}); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
}

TEST_F(BadRecordsTest, TheListIsAPartOfTheFingerprint) {
  write("a", "{\"x\": 1}\n{}\n{\"x\": 2}\n");
  write("b", "{\"x\": 1}\n{\"x\": 2}\n{}\n");
  write("c", "{\"x\": 1}\n{\"x\": 2}\n");
  const auto fingerprint = [&](const char* file) {
    return open("jsonl", {{"path", file}, {"features", "x"}})->fingerprint();
  };
  EXPECT_NE(fingerprint("a"), fingerprint("b"));
  EXPECT_NE(fingerprint("a"), fingerprint("c"));
  EXPECT_EQ(
      fingerprint("c"),
      open_dataset("jsonl", params_for("jsonl", {{"path", "c"}, {"features", "x"}}), folder_)->fingerprint());
}

}  // namespace
}  // namespace lockstep::testing
