// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/prediction_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "checkpoint_testing.h"
#include "io/atomic_file.h"
#include "io/hdf5_handle.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::CheckpointFolder;

/// Three samples of two heads: two positions of two named classes, and one number.
PredictionInfo two_heads() {
  return {.heads = {{.name = "pixel",
                     .shape = {2, 2},
                     .quantity = "probability",
                     .has_classes = true,
                     .class_names = {"a,b", "c\"d"}},
                    {.name = "size", .shape = {1}}},
          .samples = 3,
          .global_step = 7,
          .checkpoint = "run/checkpoints/step-00000007.h5",
          .checkpoint_digest = "00ff",
          .input = "in.csv"};
}
constexpr std::array<float, 12> kPixels = {0.25F, 0.75F, 1,      0,      0.5F,   0.5F,
                                           0,     1,     0.125F, 0.875F, 0.875F, 0.125F};
constexpr std::array<float, 3> kSizes = {-1.5F, 0.1F, 3e20F};

std::string written(const std::string& path, std::string_view ending, const PredictionInfo& info,
                    std::vector<std::span<const float>> rows, std::span<const std::int32_t> indices = {},
                    std::span<const float> values = {}) {
  OutputFile output(path, {});
  const auto writer = make_prediction_writer(ending, output, info);
  // In two batches, of two samples and of the rest.
  for (const std::int64_t n : {std::int64_t{2}, info.samples - 2}) {
    std::vector<PredictedRows> batch;
    const auto take = [&](auto& all, std::int64_t per_sample) {
      const auto first = all.first(std::min(all.size(), static_cast<std::size_t>(n * per_sample)));
      all = all.subspan(first.size());
      return first;
    };
    for (std::size_t h = 0; h < rows.size(); ++h) {
      const PredictedHead& head = info.heads[h];
      batch.push_back({.outputs = take(rows[h], head.values())});
      PredictedRows& own = batch.back();
      if (head.labels_are_indices)
        own.label_indices = take(indices, head.labels);
      else
        own.label_values = take(values, head.labels);
    }
    writer->add(n, batch);
  }
  writer->finish();
  output.publish();
  return read_whole_file(path);
}

TEST(PredictionFile, CsvNamesColumnsForWhatTheyAre) {
  const CheckpointFolder folder;
  EXPECT_EQ(written(folder / "out.csv", ".csv", two_heads(), {kPixels, kSizes}),
            "pixel/class_0,pixel/class_name_0,pixel/class_1,pixel/class_name_1,\"pixel/probability_0_a,b\","
            "\"pixel/probability_0_c\"\"d\",\"pixel/probability_1_a,b\",\"pixel/probability_1_c\"\"d\",size/"
            "value_0\n"
            "1,\"c\"\"d\",0,\"a,b\",0.25,0.75,1,0,-1.5\n"
            "0,\"a,b\",1,\"c\"\"d\",0.5,0.5,0,1,0.1\n"
            "1,\"c\"\"d\",0,\"a,b\",0.125,0.875,0.875,0.125,3e+20\n");
  PredictionInfo logits = two_heads();
  logits.heads = {{.shape = {3}, .quantity = "logit"}};
  EXPECT_THAT(written(folder / "logits.csv", ".csv", logits, {std::span(kPixels).first(9)}),
              ::testing::StartsWith("logit_0,logit_1,logit_2\n0.25,0.75,1\n"));
}

TEST(PredictionFile, NpyIsOneArray) {
  const CheckpointFolder folder;
  PredictionInfo info = two_heads();
  EXPECT_THAT(
      [&] {
        written(folder / "out.npy", ".npy", info, {kPixels, kSizes});
      },
      ::testing::ThrowsMessage<Error>(HasSubstr("the model has 2 heads")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nothing is left of a file that was not published";
  info.heads.resize(1);
  const std::string bytes = written(folder / "out.npy", ".npy", info, {kPixels});
  ASSERT_EQ(bytes.size(), 128 + sizeof kPixels);
  EXPECT_THAT(bytes.substr(0, 128),
              HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 2,), }"));
  EXPECT_EQ(std::memcmp(bytes.data() + 128, kPixels.data(), sizeof kPixels), 0);
}

TEST(PredictionFile, Hdf5HasAGroupPerHead) {
  const CheckpointFolder folder;
  const std::string path = folder / "out.h5";
  PredictionInfo info = two_heads();
  info.heads[0].labels = 2;  // one per position
  info.heads[0].labels_are_indices = true;
  info.heads[1].labels = 2;
  constexpr std::array<std::int32_t, 6> truth = {1, 0, -1, 1, 1, 0};
  constexpr std::array<float, 6> targets = {-1.25F, 0, 1, 2, 3, 4.5F};
  written(path, ".h5", info, {kPixels, kSizes}, truth, targets);
  const Hdf5Lock lock;
  const Hdf5Context context{ErrorKind::data, path, ""};
  const Hdf5Handle file = hdf5_open_file(path, context);
  const auto read = [&](const char* name, hid_t type, auto& to) {
    const Hdf5Handle dataset(hdf5_checked(H5Dopen2(file.get(), name, H5P_DEFAULT), context, name), H5Dclose);
    hdf5_checked(H5Dread(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to.data()), context, name);
  };
  std::array<float, 12> pixels{};
  std::array<float, 3> sizes{};
  std::array<std::int32_t, 6> classes{};
  std::array<std::int64_t, 3> samples{};
  read("pixel/outputs", H5T_NATIVE_FLOAT, pixels);
  read("pixel/class", H5T_NATIVE_INT32, classes);
  read("size/outputs", H5T_NATIVE_FLOAT, sizes);
  read("sample", H5T_NATIVE_INT64, samples);
  EXPECT_EQ(pixels, kPixels);
  EXPECT_EQ(sizes, kSizes);
  EXPECT_THAT(classes, ::testing::ElementsAre(1, 0, 0, 1, 1, 0));
  EXPECT_THAT(samples, ::testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(H5Lexists(file.get(), "pixel/class_names", H5P_DEFAULT), 1);
  EXPECT_EQ(H5Lexists(file.get(), "size/class", H5P_DEFAULT), 0);
  const auto extents = [&](const char* name) {
    const Hdf5Handle dataset(hdf5_checked(H5Dopen2(file.get(), name, H5P_DEFAULT), context, name), H5Dclose);
    const Hdf5Handle space(H5Dget_space(dataset.get()), H5Sclose);
    std::vector<hsize_t> found(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.get())));
    H5Sget_simple_extent_dims(space.get(), found.data(), nullptr);
    return found;
  };
  std::array<std::int32_t, 6> labels{};
  std::array<float, 6> values{};
  read("pixel/labels", H5T_NATIVE_INT32, labels);
  read("size/labels", H5T_NATIVE_FLOAT, values);
  EXPECT_EQ(labels, truth);
  EXPECT_EQ(values, targets);
  EXPECT_EQ(extents("pixel/labels"), extents("pixel/class"));
  EXPECT_THAT(extents("size/labels"), ::testing::ElementsAre(3, 2)) << "other than outputs: 3 x 1";
}

}  // namespace
}  // namespace lockstep
