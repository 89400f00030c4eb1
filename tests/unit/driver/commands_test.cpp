// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep inspect` and `lockstep events`, as functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "driver/commands/events.h"
#include "driver/commands/inspect.h"
#include "io/atomic_file.h"
#include "io/checkpoint_store.h"
#include "io/event_writer.h"
#include "tools/events/events_export.h"
#include "unit/io/checkpoint_testing.h"

namespace lockstep {
namespace {

using nlohmann::json;
using testing::CheckpointFolder;
using ::testing::HasSubstr;
using testing::test_header;
using testing::test_tensors;
using testing::TestTensors;

std::string output_of(const CheckpointFolder& folder, const std::function<int(std::FILE*)>& command) {
  const std::string path = folder / "output";
  std::FILE* out = std::fopen(path.c_str(), "w");
  if (out == nullptr) throw std::runtime_error("cannot open " + path);
  try {
    EXPECT_EQ(command(out), 0);
  } catch (...) {
    std::fclose(out);
    throw;
  }
  EXPECT_EQ(std::fclose(out), 0);
  std::string text = read_whole_file(path);
  std::filesystem::remove(path);
  return text;
}

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> records;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) records.push_back(json::parse(line));
  return records;
}

template <typename T>
json inspected(DType type, std::vector<T> values) {
  const CheckpointFolder folder;
  const std::vector<CheckpointTensor> tensors = {
      {"variables/a", Tensor(values.data(), type, {static_cast<std::int64_t>(values.size())})}};
  write_checkpoint(folder / "a.h5", test_header(), tensors);
  const std::string text = output_of(
      folder, [&](std::FILE* out) { return inspect_checkpoint(folder / "a.h5", false, true, out); });
  return json::parse(text).at("tensors").at(0);
}

TEST(InspectCommand, StatisticsExcludeNan) {
  const float nan = std::nanf("");
  const json row = inspected<float>(DType::f32, {1, nan, 4, -2, nan, 1});
  EXPECT_EQ(row.at("path"), "variables/a");
  EXPECT_EQ(row.at("dtype"), name_of(DType::f32));
  EXPECT_EQ(row.at("shape"), json({6}));
  EXPECT_EQ(row.at("min"), -2.0);
  EXPECT_EQ(row.at("max"), 4.0);
  EXPECT_EQ(row.at("mean"), 1.0);
  EXPECT_NEAR(row.at("std").get<double>(), std::sqrt(4.5), 1e-15);
  EXPECT_EQ(row.at("nan"), 2);
}

TEST(InspectCommand, EmptyStatisticsAndInfinitiesAreNull) {
  for (const json& row : {inspected<float>(DType::f32, {}), inspected<double>(DType::f64, {std::nan("")})}) {
    EXPECT_TRUE(row.at("min").is_null() && row.at("max").is_null() && row.at("mean").is_null() &&
                row.at("std").is_null());
  }
  EXPECT_TRUE(
      inspected<double>(DType::f64, {1, std::numeric_limits<double>::infinity()}).at("max").is_null());
}

TEST(InspectCommand, EveryDtype) {
  EXPECT_EQ(inspected<std::uint16_t>(DType::bf16, {0x3FC0, 0xC000}).at("mean"), -0.25);  // 1.5, -2
  EXPECT_EQ(inspected<std::uint16_t>(DType::f16, {0x3E00, 0xC000}).at("mean"), -0.25);   // 1.5, -2
  EXPECT_EQ(inspected<std::uint16_t>(DType::f16, {0x0001}).at("max"),
            std::ldexp(1, -24));  // smallest subnormal
  EXPECT_EQ(inspected<std::uint16_t>(DType::f16, {0x7BFF}).at("max"), 65504.0);
  EXPECT_EQ(inspected<std::uint16_t>(DType::f16, {0x7E00, 0x3C00}).at("nan"), 1);
  EXPECT_EQ(inspected<std::int32_t>(DType::i32, {-7, 5}).at("min"), -7.0);
  EXPECT_EQ(inspected<std::int64_t>(DType::i64, {-7, 5}).at("min"), -7.0);
  EXPECT_EQ(inspected<std::int8_t>(DType::i8, {-7, 5}).at("min"), -7.0);
  EXPECT_EQ(inspected<std::uint8_t>(DType::u8, {250, 5}).at("max"), 250.0);
  EXPECT_EQ(inspected<std::int16_t>(DType::i16, {-7, 5}).at("min"), -7.0);
  EXPECT_EQ(inspected<std::uint16_t>(DType::u16, {65530, 5}).at("max"), 65530.0);
}

TEST(InspectCommand, HeaderAndTable) {
  const CheckpointFolder folder;
  write_checkpoint(folder / "a.h5", test_header(), test_tensors().get());
  const std::string table = output_of(
      folder, [&](std::FILE* out) { return inspect_checkpoint(folder / "a.h5", false, false, out); });
  for (const char* part : {"global step       200", "640 samples of it consumed", "variables/conv1/kernel",
                           "3x1x5x7", "scalar", "5 tensors, 225 values"})
    EXPECT_THAT(table, HasSubstr(part));
  const json object = json::parse(output_of(
      folder, [&](std::FILE* out) { return inspect_checkpoint(folder / "a.h5", false, true, out); }));
  EXPECT_EQ(object.at("global_step"), 200);
  EXPECT_EQ(object.at("epoch"), 3);
  EXPECT_EQ(object.at("seed"), 0xFEDCBA9876543210U);
  EXPECT_EQ(object.at("config"), test_header().config);
  EXPECT_EQ(object.at("digest"), checkpoint_digest(test_header(), test_tensors().get()));
  EXPECT_EQ(object.at("tensors").size(), 5U);
}

TEST(InspectCommand, DigestOfTheNewestIntactCheckpoint) {
  const CheckpointFolder folder;
  CheckpointStore store(folder.path(), 0);
  for (unsigned step : {1U, 2U, 3U}) store.save(test_header(step), test_tensors(step).get());
  const auto digest = [&](const std::string& path) {
    return output_of(folder, [&](std::FILE* out) { return inspect_checkpoint(path, true, false, out); });
  };
  EXPECT_EQ(digest(folder.path()), checkpoint_digest(test_header(3), test_tensors(3).get()) + "\n");
  std::string bytes = read_whole_file(store.path_of(3));
  write_file_atomically(store.path_of(3), bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(digest(folder.path()), checkpoint_digest(test_header(2), test_tensors(2).get()) + "\n");
  EXPECT_THROW(digest(store.path_of(3)), Error);

  const TestTensors tensors = test_tensors(3);
  const Tensor& bias = tensors.get()[1].tensor;
  const std::size_t at = bytes.find(std::string(static_cast<const char*>(bias.raw()), bias.size_bytes()));
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  write_file_atomically(store.path_of(3), bytes);
  EXPECT_THROW(digest(store.path_of(3)), Error);
}

TEST(InspectCommand, FolderWithoutCheckpoints) {
  const CheckpointFolder folder;
  try {
    inspect_checkpoint(folder.path(), true, false, stdout);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::checkpoint);
    EXPECT_THAT(error.what(), HasSubstr(folder.path()));
  }
}

TEST(EventsCommand, OneObjectPerLine) {
  const CheckpointFolder folder;
  {
    EventWriter train(folder.path()), evaluation(folder / "eval");
    train.restart_from(5);
    train.scalar("loss", 5, 0.1);
    train.scalar("accuracy", 6, std::nan(""));
    evaluation.scalar("loss", 6, 0.25);
  }
  const auto events = [&](const std::string& path, const std::string& tag) {
    return lines_of(output_of(folder, [&](std::FILE* out) { return print_events(path, tag, out); }));
  };
  const std::vector<json> all = events(folder.path(), "");
  ASSERT_EQ(all.size(), 6U);
  EXPECT_THAT(all[0].at("file").get<std::string>(), ::testing::StartsWith("eval/events.out.tfevents."));
  EXPECT_EQ(all[0].at("file_version"), "brain.Event:2");
  EXPECT_EQ(all[1].at("value"), 0.25);
  EXPECT_EQ(all[3].at("restart"), true);
  EXPECT_EQ(all[3].at("step"), 5);
  EXPECT_EQ(all[4].at("tag"), "loss");
  EXPECT_EQ(all[4].at("value"), 0.1) << "the digits of float32";
  EXPECT_TRUE(all[5].at("value").is_null());
  EXPECT_GT(all[5].at("wall_time").get<double>(), 1.6e9);

  const std::vector<json> losses = events(folder.path(), "loss");
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[0].at("step"), 6);
  EXPECT_EQ(losses[1].at("step"), 5);
  EXPECT_EQ(events(folder / all[0].at("file").get<std::string>(), "").size(), 2U);
  EXPECT_TRUE(events(folder.path(), "none").empty());
}

TEST(EventsCommand, ExportsATableWithoutWhatARestartHasReplaced) {
  const CheckpointFolder folder;
  {
    EventWriter first(folder.path());
    for (int step = 1; step <= 3; ++step) first.scalar("loss", step, 1);
    EventWriter evaluation(folder / "eval");
    evaluation.scalar("a,b", 2, 0.1);
    evaluation.add(
        2, {{"weights", HistogramData{0, 2, 3, 4, 5, {1, 2}, {1, 2}}},
            {"notes", TensorData{.dtype = SummaryDType::text, .shape = {1}, .strings = {"x"}}},
            {"new", TensorData{.shape = {}, .bytes = std::string("\0\0\0\x40", 4)}, {.plugin = "scalars"}},
            {"new", TensorData{.shape = {}, .bytes = std::string("\0\0\x80\x3f", 4)}}});
  }
  {
    EventWriter resumed(folder.path());
    resumed.restart_from(3);
    resumed.scalar("loss", 3, std::nan(""));
  }
  const auto exported = [&](const char* format, const char* tags) {
    export_events(folder.path(), format, tags, folder / "table");
    std::vector<std::string> lines;
    std::istringstream text(read_whole_file(folder / "table"));
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  };
  const auto without_time = [](const std::string& line) {
    const std::size_t last = line.rfind(','), before = line.rfind(',', last - 1);
    return line.substr(0, before) + line.substr(last);
  };
  std::vector<std::string> rows;
  for (const std::string& line : exported("csv", "")) rows.push_back(without_time(line));
  EXPECT_THAT(rows, ::testing::ElementsAre("run,tag,step,value", ",loss,1,1", ",loss,2,1", ",loss,3,nan",
                                           "eval,\"a,b\",2,0.1", "eval,new,2,2", "eval,new,2,1"));
  EXPECT_EQ(exported("csv", "lo*,none").size(), 4U);
  const std::vector<std::string> all = exported("jsonl", "w*,notes");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(json::parse(all[0]).at("counts"), json({1, 2}));
  EXPECT_EQ(json::parse(all[0]).at("run"), "eval");
  EXPECT_EQ(json::parse(all[1]).at("values"), json({"x"}));
  try {
    export_events(folder.path(), "csv", "lass", folder / "table");
    ADD_FAILURE() << "no tag matches";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_THAT(error.what(), AllOf(::testing::HasSubstr("lass"), ::testing::HasSubstr("loss")));
  }
  write_file_atomically(folder / "events.out.tfevents.zip", "PK this is no event file");
  EXPECT_THROW(export_events(folder.path(), "csv", "", folder / "other"), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
}

TEST(EventsCommand, NoEventFiles) {
  const CheckpointFolder folder;
  EXPECT_THROW(print_events(folder.path(), "", stdout), Error);
  EXPECT_THROW(print_events(folder / "missing", "", stdout), Error);
}

}  // namespace
}  // namespace lockstep
