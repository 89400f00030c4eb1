// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include "data/sample_stream.h"
#include "support/test_folders.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The bytes of an IDX file with values of type T, big-endian.
template <typename T>
std::string idx(unsigned char type, const std::vector<std::uint32_t>& extents, const std::vector<T>& values) {
  const auto append = [](std::string& bytes, auto value) {
    std::string text(sizeof(value), '\0');
    std::memcpy(text.data(), &value, sizeof(value));
    if constexpr (std::endian::native == std::endian::little) std::reverse(text.begin(), text.end());
    bytes += text;
  };
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) append(bytes, extent);
  for (const T value : values) append(bytes, value);
  return bytes;
}

class IdxReaderTest : public FolderTest {
 protected:
  std::unique_ptr<ReaderDataset> open(Options options = {}) const {
    options.emplace_back("folder", "set");
    options.emplace_back("images", "images");
    return open_dataset("idx", params_for("idx", options), folder_);
  }
  std::unique_ptr<ReaderDataset> open_labelled(Options options = {}) const {
    options.emplace_back("labels", "labels");
    return open(std::move(options));
  }
  std::string images() const { return path("set/images"); }
  std::string labels() const { return path("set/labels"); }

  void SetUp() override {
    std::filesystem::create_directory(path("set"));
    std::vector<std::uint8_t> pixels(4 * 2 * 3);
    std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
    image_bytes_ = idx<std::uint8_t>(0x08, {4, 2, 3}, pixels);
    label_bytes_ = idx<std::uint8_t>(0x08, {4}, {7, 8, 9, 255});
    write("set/images", image_bytes_);
    write("set/labels", label_bytes_);
  }

  std::string image_bytes_, label_bytes_;
};

TEST_F(IdxReaderTest, ImagesGetOneChannel) {
  const auto data = open_labelled();
  EXPECT_EQ(data->size(), 4);
  EXPECT_EQ(data->feature_shape(), Shape({2, 3, 1}));
  EXPECT_EQ(data->feature_dtype(), DType::u8);
  EXPECT_THAT(features_of(*data, {1}), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(7, 8, 9, 255));
  EXPECT_EQ(data->where(2), images() + ", record 2");
  EXPECT_EQ(open()->label_kind(), LabelKind::none);
}

TEST_F(IdxReaderTest, Rows) {
  const auto data = open_labelled({{"rows", "[1, 3]"}});
  EXPECT_EQ(data->size(), 2);
  EXPECT_THAT(features_of(*data, {0}), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(8, 9));
  EXPECT_EQ(data->where(0), images() + ", record 1");
  expect_data_error([&] { open({{"rows", "[1, 5]"}}); }, images(), "there are 4 rows");
}

TEST_F(IdxReaderTest, AStreamHasTheValuesOfTheSetInMemory) {
  std::vector<std::int16_t> pixels(50 * 6);
  std::iota(pixels.begin(), pixels.end(), std::int16_t{-100});
  std::vector<std::uint8_t> classes(50);
  std::iota(classes.begin(), classes.end(), std::uint8_t{0});
  write("set/images", idx<std::int16_t>(0x0B, {50, 2, 3}, pixels));
  write("set/labels", idx<std::uint8_t>(0x08, {50}, classes));
  const Options small{{"memory_gb", "4.2e-7"}, {"block_samples", "3"}, {"reader_threads", "1"}};
  for (const char* const rows : {"[0, 50]", "[7, 49]"}) {
    const auto memory = open_labelled({{"rows", rows}});
    Options options = small;
    options.emplace_back("rows", rows);
    const auto stream = open_labelled(options);
    EXPECT_EQ(memory->stream(), nullptr);
    ASSERT_NE(stream->stream(), nullptr);
    EXPECT_EQ(stream->fingerprint(), memory->fingerprint());
    EXPECT_EQ(features_of(*stream), features_of(*memory));
    EXPECT_EQ(labels_of<std::int32_t>(*stream), labels_of<std::int32_t>(*memory));
    EXPECT_EQ(stream->where(5), memory->where(5));
  }
  write_gzip("set/images", read("set/images"));
  const Error error = error_of([&] { open_labelled(small); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_THAT(error.what_happened(), HasSubstr("compressed as a whole"));
}

TEST_F(IdxReaderTest, EveryType) {
  write("set/images", idx<std::int8_t>(0x09, {2, 2}, {-1, 2, -128, 127}));
  EXPECT_THAT(features_of(*open()), ElementsAre(-1, 2, -128, 127));
  write("set/images", idx<std::int16_t>(0x0B, {2, 2}, {-300, 2, 30000, 5}));
  EXPECT_THAT(features_of(*open()), ElementsAre(-300, 2, 30000, 5));
  write("set/images", idx<std::int32_t>(0x0C, {2, 2}, {-70000, 2, 1 << 20, 5}));
  EXPECT_THAT(features_of(*open()), ElementsAre(-70000, 2, 1 << 20, 5));
  write("set/images", idx<float>(0x0D, {2, 2}, {-1.25F, 2, 1e30F, 5}));
  EXPECT_THAT(features_of(*open()), ElementsAre(-1.25F, 2, 1e30F, 5));
  write("set/images", idx<double>(0x0E, {2, 2}, {-1.25, 2, 1e30, 5}));
  EXPECT_THAT(features_of(*open()), ElementsAre(-1.25F, 2, 1e30F, 5));
  EXPECT_EQ(open()->feature_shape(), Shape({2}));
  write("set/images", idx<std::uint8_t>(0x08, {2, 1, 1, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(open()->feature_shape(), Shape({1, 1, 3})) << "N,H,W,C is unchanged";
  write("set/images", idx<std::uint8_t>(0x08, {2}, {1, 2}));
  EXPECT_EQ(open()->feature_shape(), Shape({1}));
}

TEST_F(IdxReaderTest, LabelTypes) {
  write("set/labels", idx<std::int32_t>(0x0C, {4}, {70000, -1, 2, 3}));
  EXPECT_THAT(labels_of<std::int32_t>(*open_labelled()), ElementsAre(70000, -1, 2, 3));
  write("set/labels", idx<std::int16_t>(0x0B, {4}, {700, -1, 2, 3}));
  EXPECT_THAT(labels_of<std::int32_t>(*open_labelled()), ElementsAre(700, -1, 2, 3));
  write("set/labels", idx<std::int8_t>(0x09, {4, 2}, {0, 1, 2, 3, 4, 5, 6, -7}));
  EXPECT_THAT(labels_of<std::int32_t>(*open_labelled()), ElementsAre(0, 1, 2, 3, 4, 5, 6, -7));
  EXPECT_EQ(open_labelled()->num_label_columns(), 2);
  write("set/labels", idx<float>(0x0D, {4}, {0, 1, 2, 3}));
  expect_data_error([&] { open_labelled(); }, labels(), "labels of type float32");
}

TEST_F(IdxReaderTest, FindsFilesWithOrWithoutGz) {
  write_gzip("set/images.gz", image_bytes_);
  std::filesystem::remove(images());
  EXPECT_EQ(open_labelled()->size(), 4);
  EXPECT_EQ(open_dataset(
                "idx", params_for("idx", {{"folder", "set"}, {"images", "images"}, {"labels", "labels.gz"}}),
                folder_)
                ->size(),
            4);
  std::filesystem::remove(path("set/images.gz"));
  expect_data_error([&] { open(); }, images(), "neither does images.gz");
}

TEST_F(IdxReaderTest, NotIdx) {
  for (const std::string& bytes :
       {std::string("PNG image"), std::string("\0\0\x07\x03", 4) + std::string(40, '\0'),
        std::string("\0\0\x08\0", 4), std::string("\0\0", 2), std::string("\0\1\x08\3", 4)}) {
    write("set/images", bytes);
    expect_data_error([&] { open(); }, images(), "is not an IDX file");
  }
  write("set/images", "");
  expect_data_error([&] { open(); }, images(), "empty");
  write("set/images", idx<std::uint8_t>(0x08, {0, 2, 3}, {}));
  expect_data_error([&] { open(); }, images(), "no records");
  write("set/images", idx<std::uint8_t>(0x08, {1, 1, 1, 1, 1, 1, 1, 1}, {1}));
  expect_data_error([&] { open(); }, images(), "has 8 axes");
}

TEST_F(IdxReaderTest, DetectsTruncationAtEveryLength) {
  for (std::size_t bytes = 4; bytes < image_bytes_.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    write("set/images", image_bytes_.substr(0, bytes));
    const Error error = error_of([&] { open(); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_THAT(error.what_happened(), HasSubstr("truncated"));
  }
  // Compressed after the truncation, so only the content shows it.
  write_gzip("set/images", image_bytes_.substr(0, 16 + 6 * 2 + 1));
  expect_data_error([&] { open(); }, images() + ", record 2", "ends early, its header announces 4 records");
  EXPECT_EQ(open({{"rows", "[0, 2]"}})->size(), 2) << "the existing records can be read";
  expect_data_error([&] { open({{"rows", "[3, 4]"}}); }, images() + ", record 3", "ends early");
}

TEST_F(IdxReaderTest, TruncatedGzip) {
  write_gzip("set/images", image_bytes_);
  const std::string whole = read("set/images");
  for (std::size_t bytes = 2; bytes < whole.size(); ++bytes) {
    write("set/images", whole.substr(0, bytes));
    const Error error = error_of([&] { open(); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_THAT(error.what_happened(), HasSubstr("truncated")) << bytes;
  }
}

TEST_F(IdxReaderTest, HugeHeaderSizesAllocateNothing) {
  write("set/images", idx<std::uint8_t>(0x08, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {1}));
  expect_data_error([&] { open(); }, images(), "announces more data");
  write_gzip("set/images", idx<std::uint8_t>(0x08, {0x00FFFFFF, 100, 100}, {1}));
  expect_data_error([&] { open(); }, images(), "announces more data");
  // A product beyond 64 bits, in a sparse file that is large enough for the first axis.
  write("set/images", idx<std::uint8_t>(0x08, {0xFFFFFFFF, 0xFFFFFFFF}, {1}));
  std::filesystem::resize_file(images(), std::uintmax_t{1} << 33);
  expect_data_error([&] { open(); }, images(), "announces more data");
}

TEST_F(IdxReaderTest, RejectsExtraBytes) {
  write("set/images", image_bytes_ + "x");
  expect_data_error([&] { open(); }, images(), "continues after the 4 records");
}

TEST_F(IdxReaderTest, CountsMustMatch) {
  write("set/labels", idx<std::uint8_t>(0x08, {3}, {7, 8, 9}));
  expect_data_error([&] { open_labelled(); }, labels(),
                    "holds 3 labels, but " + images() + " holds 4 images");
  EXPECT_THROW(open_labelled({{"rows", "[0, 2]"}}), Error);
}

TEST_F(IdxReaderTest, FeaturesOfAnotherFile) {
  write("other", idx<std::uint8_t>(0x08, {1, 2, 3}, {1, 2, 3, 4, 5, 6}));
  const Params params = params_for(
      "idx",
      {{"folder", "set"}, {"images", "images"}, {"labels", "labels"}, {"rows", "[2, 4]"}, {"scale", "2"}});
  const auto open = [&](const Shape& shape) {
    return open_input("idx", params, {.paths = {path("other")}, .feature_shape = shape, .labels = true});
  };
  const auto data = open({2, 3, 1});
  EXPECT_THAT(features_of(*data), ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_EQ(data->label_kind(), LabelKind::none);
  expect_data_error(
      [&] {
        open({3, 3, 1});
      },
      path("other"), "have the shape 2x3x1, but the model takes 3x3x1");
  const Error several = error_of([&] {
    open_input("idx", params, {.paths = {path("other"), path("more")}, .feature_shape = {2, 3, 1}});
  });
  EXPECT_EQ(several.kind(), ErrorKind::config);
  EXPECT_EQ(several.what_happened(), "the reader idx takes one file, but 2 were given");
}

// Counts and sums come from Python.
TEST(IdxMnist, TestSet) {
  const std::string folder = extra_data() + "/mnist";
  if (extra_data().empty() || !std::filesystem::exists(folder))
    GTEST_SKIP() << "no mnist/ in LOCKSTEP_EXTRA_DATA";
  const auto data = open_dataset(
      "idx", params_for("idx", {{"images", "t10k-images-idx3-ubyte"}, {"labels", "t10k-labels-idx1-ubyte"}}),
      folder);
  ASSERT_EQ(data->size(), 10000);
  EXPECT_EQ(data->feature_shape(), Shape({28, 28, 1}));
  const std::vector<float> pixels = features_of(*data), eighth = features_of(*data, {7});
  EXPECT_EQ(std::accumulate(pixels.begin(), pixels.end(), 0.0), 264923200.0);
  EXPECT_EQ(std::accumulate(eighth.begin(), eighth.end(), 0.0), 21062.0);
  std::vector<int> counts(10);
  for (const std::int32_t label : labels_of<std::int32_t>(*data))
    ++counts.at(static_cast<std::size_t>(label));
  EXPECT_THAT(counts, ElementsAre(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009));
}

}  // namespace
}  // namespace lockstep::testing
