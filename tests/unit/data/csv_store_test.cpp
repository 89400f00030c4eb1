// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables that are read again while they are used, or into memory that processes share: the values, names and
// fingerprint of the same table in memory.
#include <algorithm>
#include <fstream>

#include "data/sample_stream.h"
#include "data/table_info.h"
#include "driver/config/yaml_node.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

/// Numbers, texts in quotes over several lines, comments, missing values, both line ends.
std::string rows(int first, int last, bool fractions) {
  std::string text = "id,note,a,b,kind,y\n";
  for (int i = first; i < last; ++i) {
    const std::string end = i % 3 == 0 ? "\r\n" : "\n";
    if (i % 7 == 0) text += "# comment\n";
    const std::string note = i % 5 == 0 ? "\"two\nlines, \"\"" + std::to_string(i) + "\"\"\"" : "plain";
    text += std::to_string(i) + "," + note + "," + std::to_string(i * 0.5) + "," +
            (i % 11 == 0 ? "NA" : std::to_string(i % 4)) + "," + (i % 2 == 0 ? "x" : "y") + "," +
            std::to_string(i % 3) + (fractions && i == last - 1 ? ".5" : "") + end;
  }
  return text;
}

class CsvStoreTest : public FolderTest {
 protected:
  std::unique_ptr<Dataset> open(const std::string& more) const {
    const std::string yaml =
        "{path: [a.csv, b.csv], header: true, columns: [a, b, kind], labels: y, comment: \"#\", "
        "categories: {kind: auto}, missing: {b: -1}, key_column: id, " +
        more + "}";
    return open_dataset("csv", Params(parse_yaml(yaml, "c.yaml"), find_reader("csv").table, "csv"), folder_);
  }
  void write_files(bool fractions = false) const {
    write("a.csv", rows(0, 101, false));
    write("b.csv", rows(101, 240, fractions));
  }
  static void expect_same(const Dataset& data, const Dataset& other) {
    ASSERT_EQ(data.size(), other.size());
    EXPECT_EQ(data.fingerprint(), other.fingerprint());
    EXPECT_EQ(data.label_kind(), other.label_kind());
    EXPECT_EQ(data.table()->keys, other.table()->keys);
    std::vector<std::int64_t> samples = all_samples(data);
    for (int turn = 0; turn < 2; ++turn, std::ranges::reverse(samples))
      EXPECT_EQ(features_of(data, samples), features_of(other, samples));
    EXPECT_EQ(labels_of<float>(data), labels_of<float>(other));
    for (const std::int64_t sample : samples) EXPECT_EQ(data.where(sample), other.where(sample));
  }
};

constexpr const char* kSmall = "memory_gb: 1.5e-6, reader_threads: 1, block_samples: ";

TEST_F(CsvStoreTest, AStreamHasTheValuesOfTheTableInMemory) {
  for (const bool fractions : {false, true}) {
    write_files(fractions);
    const auto memory = open("");
    ASSERT_EQ(memory->stream(), nullptr);
    EXPECT_EQ(memory->label_kind(), fractions ? LabelKind::rows : LabelKind::indices);
    for (const char* const block : {"1", "5", "8"}) {
      SCOPED_TRACE(block);
      const auto stream = open(std::string(kSmall) + block);
      ASSERT_NE(stream->stream(), nullptr);
      expect_same(*memory, *stream);
    }
  }
}

TEST_F(CsvStoreTest, RowsOfAPartAndAWithoutALineEnd) {
  write_files();
  for (const char* const range : {"[3, 20]", "[90, 120]", "[150, 240]", "[16, 33]"}) {
    SCOPED_TRACE(range);
    const std::string part = std::string("rows: ") + range;
    expect_same(*open(part), *open(part + ", " + kSmall + "2"));
  }
  const std::string whole = read("b.csv");
  write("b.csv", whole.substr(0, whole.size() - 1));
  expect_same(*open(""), *open(std::string(kSmall) + "2"));
}

TEST_F(CsvStoreTest, MemoryThatIsSharedHasThemToo) {
  write_files();
  const auto whole = open("");
  for (const char* const memory : {"", "memory_gb: 1.5e-6"}) {  // values that the reader kept, and none
    const Params params(
        parse_yaml("{path: [a.csv, b.csv], header: true, columns: [a, b, kind], labels: y, comment: \"#\", "
                   "categories: {kind: auto}, missing: {b: -1}, key_column: id, " +
                       std::string(memory) + "}",
                   "c.yaml"),
        find_reader("csv").table, "csv");
    const auto data = find_reader("csv").make(params, folder_);
    auto place = std::make_shared<std::vector<char>>(static_cast<std::size_t>(data->shared_bytes() + 64));
    void* const at = place->data() + (64 - reinterpret_cast<std::uintptr_t>(place->data()) % 64) % 64;
    for (const int part : {2, 0, 1}) data->fill_shared(at, part, 3, 2);
    data->take_shared(at, place);
    data->prepare({.bytes = 0});
    expect_same(*whole, *data);
    EXPECT_GT(place.use_count(), 1);
  }
}

TEST_F(CsvStoreTest, BadRowsAreLeftOutOfAStream) {
  write_files();
  std::string text = read("b.csv");
  text += "240,plain,oops,1,x,1\n241,plain,7,1\n242,plain,8,1,x,2\n";
  write("b.csv", text);
  const auto memory = open("bad_records: skip, max_bad_records: 5");
  EXPECT_EQ(memory->size(), 241);
  EXPECT_EQ(memory->num_left_out(), 2);
  const auto stream = open(std::string(kSmall) + "4, bad_records: skip, max_bad_records: 5");
  ASSERT_NE(stream->stream(), nullptr);
  expect_same(*memory, *stream);
}

TEST_F(CsvStoreTest, AFileThatChangesIsNamed) {
  write_files();
  const auto stream = open(std::string(kSmall) + "4");
  std::fstream file(path("b.csv"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(read("b.csv").rfind(",plain,")) + 7);
  file << "z";
  file.close();
  const Error error = error_of([&] { features_of(*stream, {239}); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(error.where(), stream->where(239)) << error.what();
  EXPECT_THAT(error.what_happened(), ::testing::HasSubstr("is not a number"));
}

TEST_F(CsvStoreTest, APackedTableMustFit) {
  write_gzip("a.csv", rows(0, 101, false));
  write("b.csv", rows(101, 240, false));
  EXPECT_EQ(open("")->size(), 240);
  const Error error = error_of([&] { open("memory_gb: 1.5e-6"); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_THAT(error.what_happened(),
              ::testing::HasSubstr("compressed as a whole cannot be read while it is used"));
}

}  // namespace
}  // namespace lockstep::testing
