// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The reader hdf5: what is no file of samples, locks, and files other than those of training.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include "data/sample_stream.h"
#include "io/hdf5_handle.h"
#include "support/test_folders.h"
#include "unit/data/hdf5_reader_fixture.h"

namespace lockstep::testing {
namespace {

class Hdf5FilesTest : public Hdf5ReaderTest {};

TEST_F(Hdf5FilesTest, RowsBeyondTheEnd) {
  add<float>("x", H5T_IEEE_F32LE, {3}, {1, 2, 3});
  expect_data_error(
      [&] {
        open({{"rows", "[1, 4]"}});
      },
      where("x"), "[1, 4) were requested, but there are 3 rows");
}

TEST_F(Hdf5FilesTest, MissingDatasetListsTheOthers) {
  add<float>("train/image", H5T_IEEE_F32LE, {3}, {1, 2, 3});
  add<float>("train/label", H5T_IEEE_F32LE, {3}, {1, 2, 3});
  expect_data_error([&] { open(); }, where("x"), "no such dataset");
  EXPECT_THAT(error_of([&] { open(); }).advice(), HasSubstr("It holds: train/image, train/label."));
  const auto group = params_for("hdf5", {{"path", "data.h5"}, {"features", "train"}});
  expect_data_error([&] { open_dataset("hdf5", group, folder_); }, where("train"), "no such dataset");
}

TEST_F(Hdf5FilesTest, RejectsInvalidFeatures) {
  add<std::uint8_t>("x", H5T_C_S1, {3}, {});
  expect_data_error([&] { open(); }, where("x"), "type that cannot be read");
  std::filesystem::remove(path("data.h5"));
  add<float>("x", H5T_IEEE_F32LE, {}, {});
  expect_data_error([&] { open(); }, where("x"), "has 0 axes");
  std::filesystem::remove(path("data.h5"));
  add<float>("x", H5T_IEEE_F32LE, {0, 3}, {});
  expect_data_error([&] { open(); }, path("data.h5"), "no samples");
  std::filesystem::remove(path("data.h5"));
  add<float>("x", H5T_IEEE_F32LE, {2, 0}, {});
  expect_data_error([&] { open(); }, path("data.h5"), "samples are empty");
  std::filesystem::remove(path("data.h5"));
  add<float>("x", H5T_IEEE_F32LE, {3, 1}, {1, INFINITY, 2});
  expect_data_error([&] { open(); }, path("data.h5") + ", record 1", "not a finite number");
}

TEST_F(Hdf5FilesTest, NotHdf5) {
  expect_data_error([&] { open(); }, path("data.h5"), "No such file");
  write("data.h5", "text, not HDF5");
  expect_data_error([&] { open(); }, path("data.h5"), "cannot open as HDF5");
  write("data.h5", "");
  expect_data_error([&] { open(); }, path("data.h5"), "cannot open as HDF5");
}

TEST_F(Hdf5FilesTest, TruncatedAndDamagedFiles) {
  std::mt19937 generator(2);
  std::vector<std::int32_t> values(64 * 256);
  for (std::int32_t& value : values) value = static_cast<std::int32_t>(generator());
  add<std::int32_t>("x", H5T_STD_I32LE, {64, 256}, values, {8, 256}, true);
  const std::string whole = read("data.h5");
  ::testing::internal::CaptureStderr();
  for (std::size_t part = 1; part < 10; ++part) {
    write("data.h5", whole.substr(0, whole.size() * part / 10));
    EXPECT_EQ(error_of([&] { open(); }).kind(), ErrorKind::data) << part;
  }
  std::string damaged = whole;
  for (std::size_t i = 0; i < 64; ++i) damaged[damaged.size() / 2 + i] = '\x55';
  write("data.h5", damaged);
  const Error error = error_of([&] { open(); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_THAT(error.what(),
              HasSubstr(where("x") + ", record 24: a chunk is damaged: gzip cannot decompress it"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "HDF5 prints nothing";
}

TEST_F(Hdf5FilesTest, ReadsALockedFile) {
  add<float>("x", H5T_IEEE_F32LE, {3}, {1, 2, 3});
  const int descriptor = ::open(path("data.h5").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(::flock(descriptor, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(open()->size(), 3);
  ::close(descriptor);
}

// HDF5 may not be thread-safe: while this thread holds the lock, the other one must not open its file.
TEST_F(Hdf5FilesTest, WaitsForTheProcessWideLock) {
  add<float>("x", H5T_IEEE_F32LE, {3}, {1, 2, 3});
  auto lock = std::make_unique<Hdf5Lock>();
  std::thread reader([&] { EXPECT_EQ(open()->size(), 3); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // enough to open the file without waiting
  EXPECT_EQ(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_FILE), 0);
  lock.reset();
  reader.join();
}

TEST_F(Hdf5FilesTest, FeaturesOfAnotherFile) {
  add<float>("x", H5T_IEEE_F32LE, {2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  std::filesystem::rename(path("data.h5"), path("other.h5"));
  const Params params = params_for("hdf5", {{"path", "none.h5"},
                                            {"features", "x"},
                                            {"labels", "y"},
                                            {"layout", "channels_first"},
                                            {"rows", "[0, 1]"}});
  const auto open = [&](const Shape& shape, bool labels) {
    return open_input("hdf5", params,
                      {.paths = {path("other.h5")}, .feature_shape = shape, .labels = labels});
  };
  for (const bool labels : {false, true}) {
    const auto data = open({2, 2}, labels);
    EXPECT_EQ(data->label_kind(), LabelKind::none) << "the file has none";
    EXPECT_THAT(features_of(*data), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  }
  expect_data_error([&] { open({4}, false); }, path("other.h5") + ", dataset x",
                    "have the shape 2x2, but the model takes 4");
}

TEST_F(Hdf5FilesTest, InputWithItsLabels) {
  for (const std::string name : {"a", "b"}) {
    add<float>("x", H5T_IEEE_F32LE, {2, 1}, {0, 1});
    add<int>("set/y", H5T_STD_I32LE, {2}, {name == "a" ? 5 : 6, -1});
    std::filesystem::rename(path("data.h5"), path(name + ".h5"));
  }
  const auto open = [&](const std::string& dataset, std::vector<std::string> names, bool labels = true) {
    for (std::string& name : names) name = path(name);
    return open_input("hdf5",
                      params_for("hdf5", {{"path", "none.h5"}, {"features", "x"}, {"labels", dataset}}),
                      {.paths = std::move(names), .feature_shape = {1}, .labels = labels});
  };
  for (const char* const name : {"set/y", "/set//y"})
    EXPECT_THAT(labels_of<std::int32_t>(*open(name, {"a.h5"})), ElementsAre(5, -1)) << name;
  EXPECT_THAT(labels_of<std::int32_t>(*open("set/y", {"b.h5", "a.h5"})), ElementsAre(6, -1, 5, -1));
  for (const char* const name : {"set/z", "other/y", "x/y"})
    EXPECT_EQ(open(name, {"a.h5"})->label_kind(), LabelKind::none) << name;
  EXPECT_EQ(open("set/y", {"a.h5"}, false)->label_kind(), LabelKind::none);
}

// Sums come from h5dump and Python.

}  // namespace
}  // namespace lockstep::testing
