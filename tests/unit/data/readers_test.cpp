// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/reader_table.h"

#include <set>

#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

TEST(Readers, EveryTableIsComplete) {
  std::set<std::string_view> names;
  for (const ReaderEntry& entry : reader_table()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(&find_reader(entry.name), &entry);
    EXPECT_NE(entry.help, "");
    std::set<std::string_view> options;
    for (const ParamSpec& spec : entry.table) {
      EXPECT_TRUE(options.insert(spec.name).second) << entry.name << " " << spec.name;
      EXPECT_NE(spec.help, "") << entry.name << " " << spec.name;
    }
    EXPECT_EQ(options.contains("rows"), entry.name != "program") << entry.name;
    const bool text = options.contains("tokens");  // ids are not scaled
    for (const char* common : {"scale", "offset", "mean", "std"})
      EXPECT_EQ(options.contains(common), !text) << entry.name << " " << common;
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"binary", "csv", "hdf5", "idx", "images", "jsonl", "npy",
                                               "program", "skip_gram", "synthetic", "text_files", "text_tsv",
                                               "text_windows", "tfrecord", "webdataset"}));
}

TEST(Readers, FindsARegisteredReader) {
  static constexpr ParamSpec kOptions[] = {{"size", ParamType::integer, "2", at_least(1), "samples"}};
  const ReaderEntry counting{
      "counting", "0, 1, 2 ...", kOptions,
      [](const Params& params, const std::string&) {
        DatasetParts parts;
        parts.source = "counting";
        parts.size = params.integer("size");
        parts.feature_shape = {1};
        parts.features = Buffer(cpu_device(), static_cast<std::size_t>(parts.size) * sizeof(float));
        std::iota(parts.features.as<float>().begin(), parts.features.as<float>().end(), 0.0F);
        return parts;
      },
      nullptr};
  EXPECT_EQ(error_of([] { find_reader("counting"); }).kind(), ErrorKind::config);
  reader_table().add(counting);
  const auto data = open_dataset("counting", params_for("counting", {{"size", "3"}}), "");
  EXPECT_THAT(features_of(*data), ::testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(error_of([&] { reader_table().add(counting); }).what_happened(),
              ::testing::HasSubstr("exists already"));
}

TEST(Readers, DefaultsAreReadable) {
  const Params params = params_for("csv", {{"path", "x"}});
  EXPECT_EQ(params.real("scale"), 1.0);
  EXPECT_EQ(params.string("quote"), "\"");
  EXPECT_EQ(params.integer("label_column"), -1);
  EXPECT_FALSE(params.has("rows"));
  EXPECT_EQ(params_for("hdf5", {{"path", "x"}, {"features", "y"}}).string("layout"), "channels_last");
}

TEST(Readers, UnknownFormatSuggestsTheNearest) {
  const Error error = error_of([] { find_reader("hfd5"); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_THAT(error.advice(), ::testing::HasSubstr("Did you mean 'hdf5'?"));
  EXPECT_THAT(error_of([] { find_reader("parquet"); }).advice(), ::testing::HasSubstr("csv, hdf5, idx"));
}

TEST(Readers, BadOptionsAreConfigErrors) {
  for (const Options& options :
       {Options{{"path", "x"}, {"std", "[1, 0]"}}, Options{{"path", "x"}, {"std", "-1"}},
        Options{{"path", "x"}, {"label_column", "-2"}}, Options{{"path", "x"}, {"colour", "1"}}, Options{}})
    EXPECT_EQ(error_of([&] { params_for("csv", options); }).kind(), ErrorKind::config);
  EXPECT_EQ(error_of([] {
              params_for("hdf5", {{"path", "x"}, {"features", "y"}, {"layout", "nchw"}});
            }).kind(),
            ErrorKind::config);
}

class TransformTest : public FolderTest {};

TEST_F(TransformTest, OptionsReachTheData) {
  write("data.csv", "1,2,3,4,0\n");
  const auto open = [&](Options options) {
    options.emplace_back("path", "data.csv");
    options.emplace_back("shape", "[2, 2]");
    return open_dataset("csv", params_for("csv", options), folder_);
  };
  EXPECT_THAT(features_of(*open({{"scale", "2"}, {"offset", "-1"}})), ::testing::ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(features_of(*open({{"mean", "[1, 2]"}, {"std", "[2, 4]"}})),
              ::testing::ElementsAre(0, 0, 1, 0.5));
  EXPECT_THAT(features_of(*open({{"mean", "1"}})), ::testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(features_of(*open({{"std", "2"}})), ::testing::ElementsAre(0.5, 1, 1.5, 2));
  expect_data_error(
      [&] {
        open({{"mean", "[1, 2, 3]"}});
      },
      path("data.csv"), "has 3 values, but the data has 2 channels");
  EXPECT_EQ(error_of([&] { open({{"mean", "[]"}}); }).kind(), ErrorKind::config);
  EXPECT_NE(open({})->fingerprint(), open({{"scale", "2"}})->fingerprint());
}

}  // namespace
}  // namespace lockstep::testing
