// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables that are read again while they are used, or into memory that processes share: the values, names and
// fingerprint of the same table in memory.
#include <algorithm>
#include <fstream>

#include "config/yaml_node.h"
#include "data/kept_index.h"
#include "data/sample_stream.h"
#include "data/table_info.h"
#include "data/values_in_memory.h"
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
  std::unique_ptr<ReaderDataset> open(const std::string& more) const {
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
    OpenedSamples opened(find_reader("csv").make(params, folder_));
    auto place =
        std::make_shared<std::vector<char>>(static_cast<std::size_t>(bytes_in_memory(opened.parts()) + 64));
    void* const at = place->data() + (64 - reinterpret_cast<std::uintptr_t>(place->data()) % 64) % 64;
    for (const int part : {2, 0, 1}) fill_memory(opened, at, part, 3, 2);
    take_memory(opened, at, place);
    const ReaderDataset data(
        std::make_shared<const StoredSamples>(std::move(opened), DatasetMemory{.bytes = 0}));
    expect_same(*whole, data);
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
  EXPECT_EQ(memory->stored().parts().num_left_out, 2);
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

// What a run keeps of its tables takes the place of reading all rows (kept_index.h).
TEST_F(CsvStoreTest, ATableIsOpenedByWhatWasKept) {
  write("a.csv", rows(0, 20000, false));
  write("b.csv", rows(20000, 45000, true));
  const std::string stream = "memory_gb: 2e-4, reader_threads: 2, block_samples: 16";
  const auto plain = open(stream);
  {
    const IndexFolder index(path("index"), true);
    expect_same(*open(stream), *plain);
  }
  const IndexFolder index(path("index"), false);
  expect_same(*open(stream), *plain);
  expect_same(*open("memory_gb: 1"), *plain);
  expect_same(*open(stream + ", rows: [19000, 21000]"), *open("memory_gb: 1, rows: [19000, 21000]"));
  // The key of a row in the middle, where no hash looks: rows are not read for what was kept.
  const auto changed = std::filesystem::last_write_time(path("b.csv"));
  std::string text = read("b.csv");
  text.replace(text.find("\n24077,") + 1, 5, "99999");
  write("b.csv", text);
  std::filesystem::last_write_time(path("b.csv"), changed);
  const auto keys = [&](const std::string& more) { return open(stream + more)->table()->keys; };
  EXPECT_EQ(keys(""), plain->table()->keys);
  // Another option, or another time of change: all rows are read.
  EXPECT_NE(keys(", missing_values: [NA, nothing]"), plain->table()->keys);
  std::filesystem::last_write_time(path("b.csv"), changed + std::chrono::seconds(1));
  EXPECT_NE(keys(""), plain->table()->keys);
}

TEST_F(CsvStoreTest, BadRowsAreKept) {
  std::string text = rows(0, 40000, false);
  const std::size_t row = text.find("\n31003,");
  text.replace(row + 1, 5, "x,y,z");
  write("a.csv", text);
  write("b.csv", rows(40000, 40010, false));
  const std::string skip = "memory_gb: 2e-4, reader_threads: 1, block_samples: 16, bad_records: skip";
  const auto plain = open(skip);
  ASSERT_EQ(plain->size(), 40009);
  {
    const IndexFolder index(path("index"), true);
    expect_same(*open(skip), *plain);
  }
  const IndexFolder index(path("index"), false);
  const auto again = open(skip);
  expect_same(*again, *plain);
  EXPECT_EQ(again->stored().parts().bad, plain->stored().parts().bad);
}

}  // namespace
}  // namespace lockstep::testing
