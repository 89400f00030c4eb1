// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Values that are not there: HDF5 would deliver fill values without an error.
#include <sys/resource.h>

#include "io/hdf5_handle.h"
#include "unit/data/hdf5_files.h"

namespace lockstep::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Hdf5StoredTest : public Hdf5Files {
 protected:
  /// Dataset "x" of data.h5.
  std::unique_ptr<ReaderDataset> open(Options options = {}) const {
    options.emplace_back("path", "data.h5");
    options.emplace_back("features", "x");
    return open_dataset("hdf5", params_for("hdf5", options), folder_);
  }
  void expect_missing(int record, const std::string& what, Options options = {}) const {
    expect_data_error([&] { open(options); },
                      path("data.h5") + ", dataset x, record " + std::to_string(record), what);
  }
  /// data.h5 maps 4 rows of each source to 4 rows of "x"; source k holds 10 k + 1, ....
  void make_virtual(const std::vector<std::string>& sources, hsize_t rows, const std::string& dataset = "y") {
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (sources[i] != "." && !sources[i].starts_with('/')) write_source(sources[i], static_cast<float>(i));
    add_virtual("data.h5", "x", sources, dataset, rows);
  }
  void write_source(const std::string& file, float number) {
    const float first = 10 * number;
    add<float>(file, "y", {4, 2},
               {first + 1, first + 2, first + 3, first + 4, first + 5, first + 6, first + 7, first + 8});
  }
};

TEST_F(Hdf5StoredTest, ChunksNeverWritten) {
  add<float>("data.h5", "x", {8, 3}, {}, {2, 2});
  expect_missing(0, "was never written");
  write_rows<float>("data.h5", "x", 0, 4, std::vector<float>(12, 7));
  expect_missing(4, "was never written");
  expect_missing(5, "was never written", {{"rows", "[5, 8]"}});
  EXPECT_THAT(features_of(*open({{"rows", "[0, 4]"}})), Each(7));
  const auto filled = features_of(*open({{"allow_fill", "true"}}));
  EXPECT_EQ(filled[11], 7);
  EXPECT_EQ(filled[12], 0);
  EXPECT_THAT(error_of([&] { open(); }).advice(), HasSubstr("allow_fill: true"));
}

TEST_F(Hdf5StoredTest, CompressedChunksAndLabels) {
  add<float>("data.h5", "x", {6, 2}, std::vector<float>(12, 1), {2, 2}, true);
  add<std::int32_t>("data.h5", "label", {6}, {}, {4}, true);
  EXPECT_EQ(open()->size(), 6);
  expect_data_error(
      [&] {
        open({{"labels", "label"}});
      },
      path("data.h5") + ", dataset label, record 0", "was never written");
  EXPECT_THAT(labels_of<std::int32_t>(*open({{"labels", "label"}, {"allow_fill", "true"}})), Each(0));
}

TEST_F(Hdf5StoredTest, ContiguousNeverWritten) {
  add<float>("data.h5", "x", {4, 2}, {});
  expect_missing(0, "was never written");
  EXPECT_EQ(features_of(*open({{"allow_fill", "true"}})), std::vector<float>(8, 0));
}

// Found by data_fuzz.py under AddressSanitizer: HDF5 reads beyond the values.
TEST_F(Hdf5StoredTest, CompactWithTooLargeExtents) {
  add_compact("data.h5", "x", {8, 4}, std::vector<float>(32, 5));
  EXPECT_THAT(features_of(*open()), Each(5));
  std::string bytes = read("data.h5");
  const std::string extents("\x08\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0", 16);
  std::size_t changed = 0;  // the extents, and the largest ones
  for (std::size_t at = bytes.find(extents); at != std::string::npos; at = bytes.find(extents, at + 1)) {
    bytes[at + 1] = 16;
    ++changed;
  }
  ASSERT_GT(changed, 0U);
  write("data.h5", bytes);
  expect_missing(8, "is not there: the dataset stores 128 bytes, but its extents need 65664");
  expect_missing(9, "is not there", {{"rows", "[9, 4104]"}, {"allow_fill", "true"}});
  EXPECT_THAT(features_of(*open({{"rows", "[0, 8]"}})), Each(5));
}

TEST_F(Hdf5StoredTest, ExternalFileCutShort) {
  const std::string raw = path("raw.bin");
  write("raw.bin", std::string(8 + 6 * 8, '\1'));
  add_external("data.h5", "x", {6, 2}, raw, 8);
  EXPECT_EQ(open()->size(), 6);
  write("raw.bin", std::string(8 + 3 * 8 + 5, '\1'));
  expect_missing(3, "raw.bin ends early");
  EXPECT_EQ(open({{"rows", "[0, 3]"}})->size(), 3);
  std::filesystem::remove(raw);
  expect_missing(0, "raw.bin is missing", {{"allow_fill", "true"}});
}

TEST_F(Hdf5StoredTest, VirtualSources) {
  make_virtual({"a.h5", "b.h5", "c.h5"}, 12);
  EXPECT_THAT(features_of(*open(), {0, 4, 11}), ElementsAre(1, 2, 11, 12, 27, 28));
  std::filesystem::rename(path("b.h5"), path("b2.h5"));
  expect_missing(4, "comes from b.h5, dataset y, which cannot be opened: No such file",
                 {{"allow_fill", "true"}});
  expect_missing(5, "b.h5", {{"rows", "[5, 12]"}});
  EXPECT_EQ(open({{"rows", "[8, 12]"}})->size(), 4);
  write("b.h5", "damaged");
  expect_missing(4, "b.h5, dataset y, which cannot be opened: cannot open as HDF5");
  std::filesystem::remove(path("b.h5"));
  add<float>("b.h5", "z", {4, 2}, std::vector<float>(8, 1));
  expect_missing(4, "dataset y, which cannot be opened");
  add<float>("b.h5", "y", {3, 2}, std::vector<float>(6, 1));
  expect_missing(4, "b.h5, dataset y, which has another size than its mapping");
}

TEST_F(Hdf5StoredTest, VirtualSourceNeverWritten) {
  make_virtual({"a.h5"}, 4);
  add<float>("b.h5", "y", {4, 2}, {}, {1, 2});
  write_rows<float>("b.h5", "y", 0, 2, std::vector<float>(4, 3));
  std::filesystem::remove(path("data.h5"));
  add_virtual("data.h5", "x", {"a.h5", "b.h5"}, "y", 10);
  expect_missing(6, "b.h5, dataset y, whose record 2 was never written");
  expect_missing(8, "is covered by no source", {{"rows", "[8, 10]"}});
  EXPECT_EQ(open({{"rows", "[0, 6]"}})->size(), 6);
  EXPECT_THAT(features_of(*open({{"allow_fill", "true"}}), {5, 6, 9}), ElementsAre(3, 3, 0, 0, 0, 0));
  std::filesystem::remove(path("a.h5"));
  expect_missing(0, "a.h5", {{"allow_fill", "true"}});
}

TEST_F(Hdf5StoredTest, VirtualSourcesAreFoundAsHdf5Does) {
  write_source("a.h5", 0);
  add_virtual("data.h5", "x", {"/nowhere/a.h5", "."}, "y", 8);  // a moved file; the same file
  expect_missing(4, "dataset y, which cannot be opened");
  write_source("data.h5", 5);
  EXPECT_THAT(features_of(*open(), {0, 4}), ElementsAre(1, 2, 51, 52));
}

TEST_F(Hdf5StoredTest, VirtualCycle) {
  add_virtual("data.h5", "x", {"."}, "x", 4);
  expect_missing(0, "over more than 8 levels");
}

TEST_F(Hdf5StoredTest, MoreSourcesThanFilesMayBeOpen) {
  std::vector<std::string> sources;
  for (int i = 0; i < 40; ++i) sources.push_back("s" + std::to_string(i) + ".h5");
  make_virtual(sources, 160);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{24, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto values = features_of(*open());
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(values[2 * 159 + 1], 398) << "not a fill value";
}

TEST_F(Hdf5StoredTest, GrowingVirtualDataset) {
  for (int i = 0; i < 4; ++i) write_source("part" + std::to_string(i) + ".h5", static_cast<float>(i));
  add_growing("data.h5", "x", "part%b.h5", "y");
  EXPECT_EQ(open()->size(), 16);
  std::filesystem::remove(path("part3.h5"));
  EXPECT_EQ(open()->size(), 12) << "the last one may still come";
  std::filesystem::remove(path("part1.h5"));
  write_source("part3.h5", 3);
  expect_missing(4, "a source is missing");
}

TEST_F(Hdf5StoredTest, ExternalLink) {
  add<float>("other.h5", "y", {2, 2}, {1, 2, 3, 4});
  add_link("data.h5", "x", "other.h5", "y");
  EXPECT_THAT(features_of(*open()), ElementsAre(1, 2, 3, 4));
  std::filesystem::remove(path("other.h5"));
  expect_data_error([&] { open(); }, path("data.h5") + ", dataset x", "other.h5");
}

TEST_F(Hdf5StoredTest, HugeExtents) {
  const hsize_t huge = hsize_t{1} << 60;
  for (const std::vector<hsize_t>& extents :
       {std::vector<hsize_t>{huge, 16}, {huge, 4}, {4, huge}, {huge, huge}}) {
    std::filesystem::remove(path("data.h5"));
    add<float>("data.h5", "x", extents, {}, std::vector<hsize_t>(extents.size(), 4));
    for (const char* allowed : {"false", "true"}) {
      const Error error = error_of([&] { open({{"allow_fill", allowed}}); });
      EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
      EXPECT_THAT(error.where(), HasSubstr(path("data.h5") + ", dataset x"));
      EXPECT_NE(error.advice(), "");
    }
  }
  std::filesystem::remove(path("data.h5"));
  add<float>("data.h5", "x", {hsize_t{1} << 40, 4}, {}, {1024, 4});
  expect_data_error(
      [&] {
        open({{"allow_fill", "true"}, {"memory_gb", "1e9"}});
      },
      path("data.h5"), "1099511627776 records take 17592.2 GB of memory, but this process may use");
}

TEST_F(Hdf5StoredTest, HalfPrecision) {
  const std::vector<std::uint16_t> half = {0x3C00, 0xC000, 0x0001, 0x7BFF},
                                   brain = {0x3F80, 0xC000, 0x0001, 0x7F7F};
  for (const bool big_endian : {false, true}) {
    std::filesystem::remove(path("data.h5"));
    add_half("data.h5", "x", DType::f16, half, big_endian);
    EXPECT_EQ(open()->feature_dtype(), DType::f16);
    EXPECT_THAT(features_of(*open()), ElementsAre(1, -2, 0x1p-24F, 65504));
    std::filesystem::remove(path("data.h5"));
    add_half("data.h5", "x", DType::bf16, brain, big_endian);
    EXPECT_EQ(open()->feature_dtype(), DType::bf16);
    EXPECT_THAT(features_of(*open()), ElementsAre(1, -2, 0x1p-133F, 0x1.FEp127F));
  }
  std::filesystem::remove(path("data.h5"));
  add_half("data.h5", "x", DType::f16, {0x3C00, 0x7C00}, false);
  expect_data_error([&] { open(); }, path("data.h5") + ", record 1", "not a finite number");
}

}  // namespace
}  // namespace lockstep::testing
