// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "data/sample_stream.h"
#include "io/hdf5_handle.h"
#include "support/test_folders.h"
#include "unit/data/hdf5_reader_fixture.h"

namespace lockstep::testing {
namespace {

TEST_F(Hdf5ReaderTest, EveryTypeAndByteOrder) {
  const auto check = [&](auto value, hid_t little, hid_t big) {
    using T = decltype(value);
    for (const hid_t type : {little, big}) {
      std::filesystem::remove(path("data.h5"));
      add<T>("x", type, {2, 2}, {1, 2, 3, value});
      const auto data = open();
      EXPECT_EQ(data->feature_dtype(), dtype_of<T>);
      EXPECT_THAT(features_of(*data), ElementsAre(1, 2, 3, static_cast<float>(value)));
    }
  };
  check(std::uint8_t{200}, H5T_STD_U8LE, H5T_STD_U8BE);
  check(std::int8_t{-100}, H5T_STD_I8LE, H5T_STD_I8BE);
  check(std::int16_t{-30000}, H5T_STD_I16LE, H5T_STD_I16BE);
  check(std::uint16_t{60000}, H5T_STD_U16LE, H5T_STD_U16BE);
  check(std::int32_t{-100000}, H5T_STD_I32LE, H5T_STD_I32BE);
  check(std::int64_t{-100000}, H5T_STD_I64LE, H5T_STD_I64BE);
  check(-1.5e30F, H5T_IEEE_F32LE, H5T_IEEE_F32BE);
  check(0.1, H5T_IEEE_F64LE, H5T_IEEE_F64BE);
}

TEST_F(Hdf5ReaderTest, BitfieldsOfWholeBytesAreUnsignedNumbers) {
  const auto check = [&](auto value, hid_t little, hid_t big, DType type) {
    using T = decltype(value);
    for (const hid_t bits : {little, big}) {
      std::filesystem::remove(path("data.h5"));
      add<std::uint8_t>("x", bits, {3, 2}, {}, {2, 2}, true);  // compressed: read outside of HDF5
      add<std::uint8_t>("y", bits, {3}, {});
      const std::vector<T> values{1, 2, 3, value, 0, 1};
      for (const char* name : {"x", "y"}) {
        const Hdf5Lock lock;
        const Hdf5Handle file(H5Fopen(path("data.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
        const Hdf5Handle data(H5Dopen2(file.get(), name, H5P_DEFAULT), H5Dclose);
        // Bits of a little-endian machine.
        ASSERT_GE(H5Dwrite(data.get(), little, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
      }
      const auto data = open({{"labels", "y"}});
      EXPECT_EQ(data->feature_dtype(), type);
      EXPECT_THAT(features_of(*data), ElementsAre(1, 2, 3, static_cast<float>(value), 0, 1));
      EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(1, 2, 3));
    }
  };
  check(std::uint8_t{200}, H5T_STD_B8LE, H5T_STD_B8BE, DType::u8);
  check(std::uint16_t{60000}, H5T_STD_B16LE, H5T_STD_B16BE, DType::u16);
  check(std::uint32_t{4000000000}, H5T_STD_B32LE, H5T_STD_B32BE, DType::i64);
  check(std::uint64_t{1} << 62, H5T_STD_B64LE, H5T_STD_B64BE, DType::i64);
}

TEST_F(Hdf5ReaderTest, KnownFiltersInAnyOrder) {
  using Add = herr_t (*)(hid_t);
  const Add shuffle = H5Pset_shuffle, checksum = H5Pset_fletcher32;
  const Add deflate = [](hid_t creation) { return H5Pset_deflate(creation, 6); };
  const std::vector<std::vector<Add>> pipelines = {{deflate},
                                                   {shuffle},
                                                   {checksum},
                                                   {shuffle, deflate},
                                                   {deflate, shuffle},
                                                   {checksum, deflate},
                                                   {deflate, checksum},
                                                   {checksum, shuffle},
                                                   {shuffle, checksum},
                                                   {checksum, shuffle, deflate},
                                                   {shuffle, deflate, checksum},
                                                   {deflate, checksum, shuffle}};
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    std::filesystem::remove(path("data.h5"));
    const auto values = counting<std::int16_t>(37 * 5);
    add<std::int16_t>("x", H5T_STD_I16LE, {37, 5}, values, {8, 5}, false, false, pipelines[i]);
    EXPECT_EQ(features_of(*open()), std::vector<float>(values.begin(), values.end())) << i;
    EXPECT_EQ(features_of(*open({{"rows", "[11, 30]"}})),
              std::vector<float>(values.begin() + 55, values.begin() + 150))
        << i;
    // Through few places, as a set that is larger than its memory.
    auto stream = open({{"memory_gb", "0.0000003"}, {"block_samples", "2"}, {"reader_threads", "1"}});
    ASSERT_NE(stream->stream(), nullptr);
    EXPECT_EQ(features_of(*stream), std::vector<float>(values.begin(), values.end())) << i;
    stream.reset();
    // With a checksum wrong values are never silent.
    if (std::ranges::find(pipelines[i], checksum) == pipelines[i].end()) continue;
    const std::string whole = read("data.h5");
    const auto [first, size] = last_chunk();
    for (std::size_t byte = first; byte < first + size; ++byte) {
      std::string damaged = whole;
      damaged[byte] = static_cast<char>(damaged[byte] ^ 0x5A);
      write("data.h5", damaged);
      EXPECT_EQ(error_of([&] { open(); }).kind(), ErrorKind::data) << i << " " << byte;
    }
  }
}

TEST_F(Hdf5ReaderTest, LabelsByType) {
  add<float>("x", H5T_IEEE_F32LE, {3, 1}, {1, 2, 3});
  add<std::int64_t>("train/i64", H5T_STD_I64LE, {3}, {5, 6, 2147483647});
  add<std::uint8_t>("train/u8", H5T_STD_U8LE, {3, 2}, {1, 2, 3, 4, 5, 255});
  add<double>("train/f64", H5T_IEEE_F64LE, {3, 1}, {1, 2, 3});
  EXPECT_EQ(open()->label_kind(), LabelKind::none);
  EXPECT_THAT(labels_of<std::int32_t>(*open({{"labels", "train/i64"}})), ElementsAre(5, 6, 2147483647));
  const auto two = open({{"labels", "train/u8"}, {"rows", "[1, 3]"}});
  EXPECT_EQ(two->num_label_columns(), 2);
  EXPECT_THAT(labels_of<std::int32_t>(*two), ElementsAre(3, 4, 5, 255));
  const auto targets = open({{"labels", "train/f64"}});
  EXPECT_EQ(targets->label_kind(), LabelKind::rows);
  EXPECT_THAT(labels_of<float>(*targets), ElementsAre(1, 2, 3));
}

TEST_F(Hdf5ReaderTest, BadLabels) {
  add<float>("x", H5T_IEEE_F32LE, {3, 1}, {1, 2, 3});
  add<std::int64_t>("large", H5T_STD_I64LE, {3}, {5, std::int64_t{1} << 31, 7});
  add<std::int32_t>("two", H5T_STD_I32LE, {2}, {5, 6});
  add<std::uint8_t>("links", H5T_STD_REF_OBJ, {3}, {});
  add<double>("nan", H5T_IEEE_F64LE, {3}, {1, 2, std::numeric_limits<double>::quiet_NaN()});
  expect_data_error(
      [&] {
        open({{"labels", "large"}});
      },
      where("large") + ", record 1", "label 2147483648 does not fit");
  expect_data_error(
      [&] {
        open({{"labels", "two"}});
      },
      where("two"), "holds 2 labels, but x holds 3 samples");
  expect_data_error(
      [&] {
        open({{"labels", "links"}});
      },
      where("links"), "holds an object reference, a type that cannot be read");
  expect_data_error([&] { open({{"labels", "nan"}}); }, path("data.h5") + ", record 2", "the label is not");
}

TEST_F(Hdf5ReaderTest, ChunkedAndCompressedInAnyShape) {
  const Extents extents = {101, 6, 5, 3};
  std::mt19937 generator(1);
  std::vector<float> values(101 * 6 * 5 * 3);
  for (float& value : values) value = static_cast<float>(generator() % 1000) / 8;
  int number = 0;
  for (const Extents& chunk :
       {Extents{}, Extents{1, 6, 5, 3}, Extents{7, 6, 5, 3}, Extents{16, 3, 2, 2}, Extents{101, 6, 5, 3}})
    for (const bool compressed : {false, true}) {
      if (chunk.empty() && compressed) continue;
      std::filesystem::remove(path("data.h5"));
      add<float>("x", H5T_IEEE_F32LE, extents, values, chunk, compressed);
      EXPECT_EQ(features_of(*open()), values) << number;
      const auto part = open({{"rows", "[10, 95]"}});
      EXPECT_EQ(part->size(), 85);
      EXPECT_EQ(part->where(0), path("data.h5") + ", record 10");
      EXPECT_EQ(features_of(*part), std::vector<float>(values.begin() + 900, values.begin() + 95 * 90))
          << number++;
    }
}

// Chunks without filters that are read past HDF5's cache: whole, in part, the last one beyond the end, and in
// another byte order, which HDF5 converts.
TEST_F(Hdf5ReaderTest, LargePlainChunks) {
  const auto values = counting<std::int16_t>(std::size_t{101} * 2048);
  for (const hid_t type : {H5T_STD_I16LE, H5T_STD_I16BE}) {
    std::filesystem::remove(path("data.h5"));
    add<std::int16_t>("x", type, {101, 2048}, values, {16, 2048});
    EXPECT_EQ(features_of(*open()), std::vector<float>(values.begin(), values.end()));
    EXPECT_EQ(features_of(*open({{"rows", "[10, 99]"}})),
              std::vector<float>(values.begin() + 10 * 2048, values.begin() + 99 * 2048));
    EXPECT_EQ(features_of(*open({{"channels", "[7, 2]"}, {"rows", "[30, 33]"}})),
              (std::vector<float>{
                  static_cast<float>(values[30 * 2048 + 7]), static_cast<float>(values[30 * 2048 + 2]),
                  static_cast<float>(values[31 * 2048 + 7]), static_cast<float>(values[31 * 2048 + 2]),
                  static_cast<float>(values[32 * 2048 + 7]), static_cast<float>(values[32 * 2048 + 2])}));
  }
  std::filesystem::remove(path("data.h5"));
  add<std::int16_t>("x", H5T_STD_I16LE, {40, 2048}, {}, {16, 2048});  // nothing is written
  expect_data_error([&] { open(); }, where("x") + ", record 0", "was never written");
  EXPECT_EQ(features_of(*open({{"allow_fill", "true"}})), std::vector<float>(std::size_t{40} * 2048, 0.0F));
}

// Chunks are larger than HDF5's cache, so a second access to a chunk would read it again.
TEST_F(Hdf5ReaderTest, EveryChunkIsReadOnce) {
  const hsize_t row = 300000;
  const auto values = counting<std::uint8_t>(50 * row);
  add<std::uint8_t>("x", H5T_STD_U8LE, {50, row}, values, {7, row}, false, true);
  chunks_read = 0;
  EXPECT_EQ(open()->size(), 50);
  EXPECT_EQ(chunks_read, 8);
  chunks_read = 0;
  EXPECT_EQ(features_of(*open({{"rows", "[5, 45]"}}), {39})[1], static_cast<float>(values[44 * row + 1]));
  EXPECT_EQ(chunks_read, 7);
}

template <typename T>
std::vector<T> channels_last(const std::vector<T>& in, std::size_t n, std::size_t c, std::size_t positions) {
  std::vector<T> out(in.size());
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < c; ++k)
      for (std::size_t p = 0; p < positions; ++p)
        out[(i * positions + p) * c + k] = in[(i * c + k) * positions + p];
  return out;
}

TEST_F(Hdf5ReaderTest, ChannelsFirstIsConverted) {
  const Options first = {{"layout", "channels_first"}};
  const auto check = [&](auto value, hid_t type) {
    using T = decltype(value);
    std::filesystem::remove(path("data.h5"));
    const auto values = counting<T>(9 * 3 * 4 * 5);
    add<T>("x", type, {9, 3, 4, 5}, values, {2, 3, 4, 5}, true);
    const auto data = open(first);
    EXPECT_EQ(data->feature_shape(), Shape({4, 5, 3}));
    const auto expected = channels_last(values, 9, 3, 20);
    EXPECT_EQ(features_of(*data), std::vector<float>(expected.begin(), expected.end()));
  };
  check(std::uint8_t{}, H5T_STD_U8LE);
  check(std::int16_t{}, H5T_STD_I16LE);
  check(float{}, H5T_IEEE_F32LE);
  check(double{}, H5T_IEEE_F64LE);
  std::filesystem::remove(path("data.h5"));
  add<float>("x", H5T_IEEE_F32LE, {2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(open(first)->feature_shape(), Shape({2, 2}));
  EXPECT_THAT(features_of(*open(first)), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(features_of(*open()), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  add<float>("flat", H5T_IEEE_F32LE, {2, 2}, {0, 1, 2, 3});
  expect_data_error(
      [&] {
        open_dataset(
            "hdf5",
            params_for("hdf5", {{"path", "data.h5"}, {"features", "flat"}, {"layout", "channels_first"}}),
            folder_);
      },
      where("flat"), "at least two axes");
}

// Several slabs with a smaller last one.
TEST_F(Hdf5ReaderTest, ChannelsFirstOverManySlabs) {
  const auto values = counting<std::uint8_t>(1000 * 3 * 6000);
  add<std::uint8_t>("x", H5T_STD_U8LE, {1000, 3, 6000}, values, {64, 3, 6000});
  const auto expected = channels_last(values, 1000, 3, 6000);
  EXPECT_EQ(features_of(*open({{"layout", "channels_first"}})),
            std::vector<float>(expected.begin(), expected.end()));
}

TEST_F(Hdf5ReaderTest, OneValuePerSample) {
  add<float>("x", H5T_IEEE_F32LE, {3}, {1, 2, 3});
  EXPECT_EQ(open()->feature_shape(), Shape({1}));
  EXPECT_THAT(features_of(*open()), ElementsAre(1, 2, 3));
}

TEST(Hdf5Cifar, TrainingSubset) {
  const std::string folder = extra_data();
  if (folder.empty() || !std::filesystem::exists(folder + "/cifar10-subset.h5"))
    GTEST_SKIP() << "no cifar10-subset.h5 in LOCKSTEP_EXTRA_DATA";
  const auto data = open_dataset(
      "hdf5",
      params_for("hdf5",
                 {{"path", "cifar10-subset.h5"}, {"features", "train/image"}, {"labels", "train/label"}}),
      folder);
  ASSERT_EQ(data->size(), 10000);
  EXPECT_EQ(data->feature_shape(), Shape({32, 32, 3}));
  EXPECT_EQ(data->feature_dtype(), DType::u8);
  const std::vector<float> pixels = features_of(*data), last = features_of(*data, {9999});
  EXPECT_EQ(std::accumulate(pixels.begin(), pixels.end(), 0.0), 3717219661.0);
  EXPECT_EQ(std::accumulate(last.begin(), last.end(), 0.0), 335918.0);
  const std::vector<std::int32_t> labels = labels_of<std::int32_t>(*data);
  EXPECT_THAT(std::vector<std::int32_t>(labels.begin(), labels.begin() + 5), ElementsAre(9, 0, 2, 5, 2));
  for (int label = 0; label < 10; ++label) EXPECT_EQ(std::count(labels.begin(), labels.end(), label), 1000);
}

}  // namespace
}  // namespace lockstep::testing
