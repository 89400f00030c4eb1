// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/step_window.h"

#include "config/yaml_node.h"
#include "data/data_options.h"
#include "unit/data/hdf5_files.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// series.h5 has ten steps: x = [[0, 1], [2, 3], ...] in chunks of three steps, y = 100, 101, ...
class StepWindowTest : public Hdf5Files {
 protected:
  StepWindowTest() {
    add<float>("series.h5", "x", {10, 2}, counted(20), {3, 2}, true);
    std::vector<float> later = counted(10);
    for (float& value : later) value += 100;
    add<float>("series.h5", "y", {10}, later);
  }
  Params params(const std::string& more, const std::string& files = "series.h5") const {
    return Params(parse_yaml("{path: " + files + ", features: x, " + more + "}", "test"),
                  find_reader("hdf5").table, "hdf5");
  }
  std::unique_ptr<ReaderDataset> opened(const std::string& more,
                                        const std::string& files = "series.h5") const {
    return open_dataset("hdf5", params(more, files), folder_);
  }
  DataOptions options(const std::string& yaml) const {
    return data_options(parse_yaml("{format: hdf5, path: series.h5, " + yaml + "}", "test"));
  }
};

TEST_F(StepWindowTest, SampleHasItsStepsAndTheLabelOfTheHorizon) {
  const auto data = opened("labels: y, window: {inputs: 3, horizon: 2}");
  ASSERT_EQ(data->size(), 6);  // steps 0-2 and label 4, ..., steps 5-7 and label 9
  EXPECT_EQ(data->feature_shape(), Shape({3, 2}));
  EXPECT_THAT(features_of(*data, {0}), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(features_of(*data, {5, 2}), ElementsAre(10, 11, 12, 13, 14, 15, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(labels_of<float>(*data), ElementsAre(104, 105, 106, 107, 108, 109));
  EXPECT_EQ(data->where(0), path("series.h5") + ", record 2");
}

TEST_F(StepWindowTest, AllStepsLieInTheRowsOfTheSet) {
  const auto train = opened("labels: y, rows: [0, 6], window: {inputs: 3, horizon: 1}");
  EXPECT_THAT(labels_of<float>(*train), ElementsAre(103, 104, 105));
  const auto eval = opened("labels: y, rows: [6, 10], window: {inputs: 3, horizon: 1}");
  ASSERT_EQ(eval->size(), 1);
  EXPECT_THAT(features_of(*eval), ElementsAre(12, 13, 14, 15, 16, 17));
  EXPECT_THAT(labels_of<float>(*eval), ElementsAre(109));
  EXPECT_EQ(eval->where(0), path("series.h5") + ", record 8");
  expect_data_error([&] { opened("labels: y, rows: [7, 10], window: {inputs: 3, horizon: 1}"); },
                    path("series.h5"), "has 3 steps, but a sample takes 4");
}

TEST_F(StepWindowTest, NoSampleCrossesAGapOfTime) {
  add<double>("series.h5", "time", {10}, std::vector<double>{0, 1, 2, 3, 4, 8, 9, 10, 11.4, 12});
  add<double>("series.h5", "wrong", {10}, std::vector<double>{0, 1, 2, 2, 4, 8, 9, 10, 11, 12});
  const auto data = opened("labels: y, window: {inputs: 2, horizon: 1, time: time}");
  EXPECT_THAT(labels_of<float>(*data), ElementsAre(102, 103, 104, 107, 108, 109));
  EXPECT_THAT(features_of(*data, {2, 3}), ElementsAre(4, 5, 6, 7, 10, 11, 12, 13));
  expect_data_error([&] { opened("window: {inputs: 2, time: wrong}"); }, path("series.h5") + ", record 3",
                    "its time, 2, is not after 2");
  expect_data_error([&] { opened("window: {inputs: 2, time: x}"); }, path("series.h5") + ", dataset x",
                    "is no time of each of 10 steps");
}

TEST_F(StepWindowTest, FilesFollowOneAnother) {
  add<float>("later.h5", "x", {3, 2}, {20, 21, 22, 23, 24, 25});
  const auto data = opened("window: {inputs: 2, horizon: 0}, rows: [8, 12]", "[series.h5, later.h5]");
  EXPECT_THAT(features_of(*data), ElementsAre(16, 17, 18, 19, 18, 19, 20, 21, 20, 21, 22, 23));
  EXPECT_EQ(data->where(1), path("later.h5") + ", record 0");
}

TEST_F(StepWindowTest, TargetsAreTheStepsAtTheHorizon) {
  const DataOptions both = options(
      "window: {inputs: 2, horizon: 3}, inputs: {past: {features: x}, now: {features: y, window: {inputs: 2, "
      "horizon: 3, use: last}}}, targets: {next: {features: y}}");
  const UsedDataset data = open_training_set(both, folder_);
  ASSERT_EQ(data->size(), 6);
  EXPECT_THAT(features_of(*data, {0}), ElementsAre(0, 1, 2, 3, 101));
  EXPECT_THAT(labels_of<float>(*data), ElementsAre(104, 105, 106, 107, 108, 109));
}

TEST_F(StepWindowTest, PredictionGoesUpToTheLastStep) {
  const Params trained = params("labels: y, window: {inputs: 3, horizon: 2}");
  InputRequest request{.paths = {path("series.h5")}, .feature_shape = {3, 2}};
  const auto data = open_input("hdf5", trained, request);
  ASSERT_EQ(data->size(), 8);
  EXPECT_THAT(features_of(*data, {7}), ElementsAre(14, 15, 16, 17, 18, 19));
  request.labels = true;
  EXPECT_EQ(open_input("hdf5", trained, request)->size(), 6);
  request.feature_shape = {4, 2};
  expect_data_error([&] { open_input("hdf5", trained, request); }, path("series.h5") + ", dataset x",
                    "its samples have the shape 3x2, but the model takes 4x2");
}

TEST_F(StepWindowTest, RandomPartsAreRefused) {
  const Error error =
      error_of([&] { options("features: x, labels: y, window: {inputs: 2}, holdout: 0.2, eval: {}"); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_THAT(error.what_happened(), HasSubstr("would give both sets the same steps"));
  // The advice works.
  EXPECT_NO_THROW(
      options("features: x, labels: y, window: {inputs: 2}, train: {rows: [0, 8]}, eval: {rows: [8, 10]}"));
  EXPECT_NO_THROW(options("features: x, labels: y, holdout: 0.2, eval: {}"));
}

TEST_F(StepWindowTest, WrongKeysAreRefused) {
  EXPECT_THAT(error_of([&] { opened("window: {input: 2}"); }).what_happened(),
              HasSubstr("unknown key 'input' in hdf5, window"));
  EXPECT_THAT(error_of([&] { opened("window: {inputs: 0}"); }).what_happened(), HasSubstr("inputs"));
}

}  // namespace
}  // namespace lockstep::testing
