// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_node.h"
#include "io/hdf5_attribute.h"
#include "unit/data/hdf5_files.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// runs.h5 has the groups run/s_1, s_2, s_9 and s_10: x of 2 x 1 x 3 values from 6 i on, the number y = i +
/// 0.5, and the attribute kind = i.
class Hdf5GroupsTest : public Hdf5Files {
 protected:
  Hdf5GroupsTest() {
    std::int64_t i = 0;
    for (const std::string name : {"run/s_1", "run/s_2", "run/s_9", "run/s_10"}) {
      std::vector<float> x(6);
      std::iota(x.begin(), x.end(), static_cast<float>(6 * i));
      group("runs.h5", name, i, static_cast<float>(i) + 0.5F);
      add<float>("runs.h5", name + "/x", {2, 1, 3}, x);
      ++i;
    }
    group("runs.h5", "run/other", 7, 7);
  }
  void group(const std::string& file_name, const std::string& name, std::int64_t kind, float y) const {
    const Hdf5Lock lock;
    const Hdf5Handle in = file(file_name), links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    checked(H5Pset_create_intermediate_group(links.get(), 1));
    const Hdf5Handle made(checked(H5Gcreate2(in.get(), name.c_str(), links.get(), H5P_DEFAULT, H5P_DEFAULT)),
                          H5Gclose);
    write_attribute(made.get(), "kind", kind, {ErrorKind::bug, name, ""});
    const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Hdf5Handle data(checked(H5Dcreate2(made.get(), "y", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT,
                                             H5P_DEFAULT, H5P_DEFAULT)),
                          H5Dclose);
    checked(H5Dwrite(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &y));
  }
  Params params(const std::string& more, const std::string& groups = "run/s_*") const {
    return Params(parse_yaml("{path: runs.h5, groups: '" + groups + "', features: x, " + more + "}", "test"),
                  find_reader("hdf5").table, "hdf5");
  }
  std::unique_ptr<ReaderDataset> opened(const std::string& more,
                                        const std::string& groups = "run/s_*") const {
    return open_dataset("hdf5", params(more, groups), folder_);
  }
};

TEST_F(Hdf5GroupsTest, EachGroupIsASampleInTheOrderOfTheirNumbers) {
  const auto data = opened("labels: kind");
  EXPECT_EQ(data->feature_shape(), Shape({2, 1, 3}));
  EXPECT_THAT(features_of(*data, {3, 0}), ElementsAre(18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(data->where(2), path("runs.h5") + ", group run/s_9");
  const auto targets = opened("labels: y, rows: [1, 3], layout: channels_first");
  EXPECT_EQ(targets->feature_shape(), Shape({1, 3, 2}));
  EXPECT_THAT(features_of(*targets, {0}), ElementsAre(6, 9, 7, 10, 8, 11));
  EXPECT_THAT(labels_of<float>(*targets), ElementsAre(1.5, 2.5));
}

TEST_F(Hdf5GroupsTest, GroupsAreStepsOfWindows) {
  const auto data = opened("labels: y, window: {inputs: 2, horizon: 1}");
  EXPECT_EQ(data->feature_shape(), Shape({2, 2, 1, 3}));
  EXPECT_THAT(labels_of<float>(*data), ElementsAre(2.5, 3.5));
  EXPECT_EQ(features_of(*data, {1})[0], 6);
  EXPECT_EQ(data->where(1), path("runs.h5") + ", group run/s_9");
}

TEST_F(Hdf5GroupsTest, FilesToPredictMayLackTheLabel) {
  InputRequest request{.paths = {path("runs.h5")}, .feature_shape = {2, 1, 3}, .labels = true};
  EXPECT_EQ(open_input("hdf5", params("labels: kind"), request)->num_label_columns(), 1);
  EXPECT_EQ(open_input("hdf5", params("labels: gone"), request)->num_label_columns(), 0);
}

TEST_F(Hdf5GroupsTest, WhatDoesNotFitIsNamed) {
  group("runs.h5", "run/s_11", 4, 4);
  expect_data_error([&] { opened(""); }, path("runs.h5") + ", dataset run/s_11/x",
                    "no such dataset or attribute");
  add<float>("runs.h5", "run/s_11/x", {2, 1, 2}, {1, 2, 3, 4});
  expect_data_error([&] { opened(""); }, path("runs.h5") + ", dataset run/s_11/x",
                    "float32 of extents 2x1x2, but those of run/s_1 are float32 of 2x1x3");
  expect_data_error([&] { opened("", "t_*"); }, path("runs.h5"), "has no groups 't_*'");
  EXPECT_THAT(error_of([&] { opened("channels: [0]"); }).what_happened(), HasSubstr("beside groups"));
}

}  // namespace
}  // namespace lockstep::testing
