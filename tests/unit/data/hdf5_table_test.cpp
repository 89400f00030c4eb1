// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstring>

#include "config/yaml_node.h"
#include "unit/data/hdf5_files.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Event {
  std::int64_t id;
  float x0;
  double x1;
  std::int16_t spin[2];
  char kind[4];
  std::uint8_t hit;
};

/// events.h5 has the table run/events of four records, in chunks of three that are compressed, and z = 0
/// to 3.
class Hdf5TableTest : public Hdf5Files {
 protected:
  Hdf5TableTest() {
    const Hdf5Lock lock;
    const Hdf5Handle in = file("events.h5"), text(H5Tcopy(H5T_C_S1), H5Tclose),
                     row(H5Tcreate(H5T_COMPOUND, sizeof(Event)), H5Tclose);
    H5Tset_size(text.get(), sizeof(Event::kind));
    const hsize_t two = 2;
    const Hdf5Handle pair(H5Tarray_create2(H5T_NATIVE_INT16, 1, &two), H5Tclose);
    const auto insert = [&](const char* name, std::size_t offset, hid_t type) {
      checked(H5Tinsert(row.get(), name, offset, type));
    };
    insert("id", offsetof(Event, id), H5T_NATIVE_INT64);
    insert("x0", offsetof(Event, x0), H5T_NATIVE_FLOAT);
    insert("x1", offsetof(Event, x1), H5T_NATIVE_DOUBLE);
    insert("spin", offsetof(Event, spin), pair.get());
    insert("kind", offsetof(Event, kind), text.get());
    insert("hit", offsetof(Event, hit), H5T_NATIVE_UINT8);
    std::vector<Event> events(4);
    for (std::size_t i = 0; i < events.size(); ++i) {
      const auto n = static_cast<float>(i);
      events[i] = {.id = 70 + std::int64_t(i), .x0 = n + 0.5F, .x1 = -n, .spin = {}, .kind = {}, .hit = 0};
      events[i].spin[0] = static_cast<std::int16_t>(10 * i);
      events[i].spin[1] = -1;
      events[i].hit = i % 2;
      std::strcpy(events[i].kind, i < 2 ? "mu" : "e");
    }
    const hsize_t extent = 4, chunk = 3;
    const Hdf5Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose),
        creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    checked(H5Pset_chunk(creation.get(), 1, &chunk));
    checked(H5Pset_deflate(creation.get(), 4));
    checked(H5Pset_create_intermediate_group(links.get(), 1));
    const Hdf5Handle data(checked(H5Dcreate2(in.get(), "run/events", row.get(), space.get(), links.get(),
                                             creation.get(), H5P_DEFAULT)),
                          H5Dclose);
    checked(H5Dwrite(data.get(), row.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, events.data()));
  }
  Params params(const std::string& more) const {
    return Params(parse_yaml("{path: events.h5, " + more + "}", "test"), find_reader("hdf5").table, "hdf5");
  }
  std::unique_ptr<ReaderDataset> opened(const std::string& more) const {
    return open_dataset("hdf5", params(more), folder_);
  }
};

TEST_F(Hdf5TableTest, FeaturesAreAllColumnsOfNumbersButTheLabel) {
  const auto data = opened("features: run/events, labels: run/events.hit");
  EXPECT_EQ(data->feature_shape(), Shape({5}));  // id, x0, x1 and both values of spin
  EXPECT_THAT(features_of(*data, {1, 3}), ElementsAre(71, 1.5, -1, 10, -1, 73, 3.5, -3, 30, -1));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(0, 1, 0, 1));
}

TEST_F(Hdf5TableTest, ColumnsAreChosenByNameAndPatternInTheirOrder) {
  const auto data =
      opened("features: run/events, columns: [hit, 'x*'], labels: run/events.kind, rows: [1, 4]");
  EXPECT_THAT(features_of(*data), ElementsAre(1, 1.5, -1, 0, 2.5, -2, 1, 3.5, -3));
  EXPECT_EQ(data->class_names(), (std::vector<std::string>{"e", "mu"}));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(1, 0, 0));
  const auto targets = opened("features: run/events, columns: id, labels: run/events.x1");
  EXPECT_THAT(labels_of<float>(*targets), ElementsAre(0, -1, -2, -3));
}

TEST_F(Hdf5TableTest, OneColumnIsADatasetOfItsOwn) {
  add<float>("events.h5", "z", {4, 1}, {5, 6, 7, 8});
  const auto data = opened("features: run/events.spin");
  EXPECT_THAT(features_of(*data), ElementsAre(0, -1, 10, -1, 20, -1, 30, -1));
  const auto beside = opened("features: z, labels: run/events.hit");
  EXPECT_THAT(features_of(*beside), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(labels_of<std::int32_t>(*beside), ElementsAre(0, 1, 0, 1));
}

TEST_F(Hdf5TableTest, FilesToPredictMayLackTheLabel) {
  const Params trained = params("features: run/events, columns: [x0, x1], labels: run/events.hit");
  InputRequest request{.paths = {path("events.h5")}, .feature_shape = {2}, .labels = true};
  EXPECT_EQ(open_input("hdf5", trained, request)->num_label_columns(), 1);
  const Params other = params("features: run/events, columns: [x0, x1], labels: run/events.gone");
  EXPECT_EQ(open_input("hdf5", other, request)->num_label_columns(), 0);
}

TEST_F(Hdf5TableTest, WhatDoesNotFitIsRefused) {
  const auto message = [&](const std::string& more) {
    const Error error = error_of([&] { opened(more); });
    return error.what_happened() + " " + error.advice();
  };
  EXPECT_THAT(message("features: run/events, columns: [x2]"),
              ::testing::AllOf(HasSubstr("has no column 'x2'"), HasSubstr("id, x0, x1, spin, kind, hit")));
  EXPECT_THAT(message("features: run/events, columns: kind"), HasSubstr("'kind' holds no numbers"));
  EXPECT_THAT(message("features: run/events, columns: [hit], labels: run/events.hit"),
              HasSubstr("is a feature and the label"));
  EXPECT_THAT(message("features: run/events, labels: run/events.his"), HasSubstr("Did you mean 'hit'?"));
  add<float>("events.h5", "z", {4, 1}, {5, 6, 7, 8});
  EXPECT_THAT(message("features: z, columns: [x0]"), HasSubstr("is no table"));
  EXPECT_THAT(message("features: run/events, columns: [x0], channels: [0]"), HasSubstr("beside columns"));
}

}  // namespace
}  // namespace lockstep::testing
