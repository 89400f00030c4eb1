// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <optional>

#include "checkpoint_testing.h"
#include "core/cpu.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/event_queue.h"
#include "io/event_reader.h"
#include "io/event_trim.h"
#include "io/event_writer.h"

namespace lockstep {
namespace {

using testing::CheckpointFolder;
using ::testing::HasSubstr;

std::vector<EventRecord> read_all(const std::string& path, std::string* note = nullptr) {
  EventReader reader(path);
  std::vector<EventRecord> records;
  while (auto record = reader.next()) records.push_back(*record);
  EXPECT_FALSE(reader.next().has_value());
  if (note != nullptr) *note = reader.note();
  return records;
}

std::string write_three(const std::string& folder) {
  EventWriter writer(folder);
  writer.scalar("train/loss", 1, 0.5);
  writer.scalar("train/accuracy", 2, 0.25);
  writer.scalar("train/loss", std::int64_t{1} << 40, std::nan(""));
  writer.close();
  EXPECT_EQ(writer.error(), "");
  return writer.path();
}

TEST(Events, RoundTrip) {
  const CheckpointFolder folder;
  const double before = static_cast<double>(std::time(nullptr));
  const std::string path = write_three(folder / "eval");
  EXPECT_THAT(path, HasSubstr(folder / "eval/events.out.tfevents."));
  EXPECT_THAT(path, ::testing::EndsWith(fmt::format(".{}.{}", host_name(), ::getpid())));
  std::string note;
  const std::vector<EventRecord> records = read_all(path, &note);
  EXPECT_EQ(note, "");
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0].file_version, "brain.Event:2");
  EXPECT_TRUE(records[0].values.empty());
  for (const EventRecord& record : records) {
    EXPECT_GE(record.wall_time, before);
    EXPECT_LE(record.wall_time, before + 600);
    EXPECT_FALSE(record.restart);
  }
  ASSERT_EQ(records[1].values.size(), 1U);
  EXPECT_EQ(records[1].values[0].tag, "train/loss");
  EXPECT_EQ(records[1].values[0].kind, "scalar");
  EXPECT_EQ(records[1].values[0].number, 0.5);
  EXPECT_EQ(records[1].step, 1);
  EXPECT_EQ(records[2].values.at(0).tag, "train/accuracy");
  EXPECT_EQ(records[2].values.at(0).number, 0.25);
  EXPECT_EQ(records[3].step, std::int64_t{1} << 40);
  EXPECT_TRUE(std::isnan(records[3].values.at(0).number));
}

// The bytes as any reader of TFRecords sees them. The first record has 8 + 1 bytes of time, and the version:
// 13 characters with tag and length.
TEST(Events, FirstRecordByByte) {
  const CheckpointFolder folder;
  const std::string text = read_whole_file(write_three(folder.path()));
  EXPECT_EQ(text.substr(0, 8), std::string("\x18\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(text.substr(8, 4), "\xa3\x7f\x4b\x22");
  EXPECT_EQ(text[12], '\x09');
  EXPECT_EQ(text.substr(21, 15),
            "\x1a\x0d"
            "brain.Event:2");
}

TEST(Events, FlushedRecordsAreReadable) {
  const CheckpointFolder folder;
  EventWriter writer(folder.path());
  EXPECT_EQ(read_all(writer.path()).size(), 1U);
  writer.restart_from(7);
  writer.flush();
  const std::vector<EventRecord> records = read_all(writer.path());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_TRUE(records[1].restart);
  EXPECT_EQ(records[1].step, 7);
}

TEST(Events, TwoWritersInOneSecondUseTwoFiles) {
  const CheckpointFolder folder;
  EventWriter first(folder.path()), second(folder.path());
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(first.error() + second.error(), "");
}

TEST(Events, TruncationAtEveryLengthEndsCleanly) {
  const CheckpointFolder folder;
  const std::string text = read_whole_file(write_three(folder.path()));
  std::size_t whole = 0;
  for (std::size_t length = 0; length <= text.size(); ++length) {
    testing::write_file(folder / "cut", text.substr(0, length));
    std::string note;
    const std::size_t count = read_all(folder / "cut", &note).size();
    const bool at_an_end = count > whole || length == 0;
    EXPECT_EQ(note.empty(), at_an_end) << length << ": " << note;
    whole = count;
  }
  EXPECT_EQ(whole, 4U);
}

TEST(Events, DetectsEveryFlippedByte) {
  const CheckpointFolder folder;
  const std::string text = read_whole_file(write_three(folder.path()));
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    testing::write_file(folder / "flipped", flipped);
    try {
      read_all(folder / "flipped");
      ADD_FAILURE() << "byte " << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_THAT(error.what(), AllOf(HasSubstr(folder / "flipped"), HasSubstr("at byte ")));
    }
  }
}

TEST(Events, ErrorIsRememberedAndDoesNotThrow) {
  const CheckpointFolder folder;
  testing::write_file(folder / "file", "not a folder");
  EventWriter writer(folder / "file");
  EXPECT_THAT(writer.error(), HasSubstr(folder / "file"));
  EXPECT_EQ(writer.path(), "");
  writer.scalar("loss", 1, 0.5);
  writer.flush();
  writer.close();
}

TEST(Events, ADiskThatHasRoomAgainGetsEveryEvent) {
  const CheckpointFolder folder;
  EventWriter writer(folder.path());
  writer.scalar("loss", 1, 0.5);
  writer.flush();
  {
    const testing::FileSizeLimit limit(100);
    for (int step = 2; step < 20; ++step) writer.scalar("loss", step, 0.5);
    writer.flush();
    EXPECT_THAT(writer.error(), AllOf(HasSubstr(writer.path()), HasSubstr("File too large")));
    for (int step = 20; step < 30; ++step) {
      writer.scalar("loss", step, 0.5);
      writer.flush();
    }
  }
  writer.scalar("loss", 30, 0.5);
  writer.flush();
  EXPECT_EQ(writer.error(), "");
  writer.close();
  const std::vector<EventRecord> records = read_all(writer.path());
  ASSERT_EQ(records.size(), 31U) << "with the version of the file";
  for (std::size_t i = 1; i < records.size(); ++i) EXPECT_EQ(records[i].step, static_cast<std::int64_t>(i));
}

TEST(Events, FileStaysReadableOnADiskThatStaysFull) {
  const CheckpointFolder folder;
  std::optional<testing::FileSizeLimit> limit;  // longer than the writer, which tries again at its end
  EventWriter writer(folder.path());
  writer.scalar("loss", 1, 0.5);
  writer.flush();
  limit.emplace(100);
  for (int step = 2; step < 20; ++step) writer.scalar("loss", step, 0.5);
  writer.close();
  EXPECT_THAT(writer.error(), HasSubstr("File too large"));
  const std::vector<EventRecord> records = read_all(writer.path());
  ASSERT_GE(records.size(), 2U);
  EXPECT_LT(records.back().step, 20);
}

TEST(Events, MissingFileIsAnError) { EXPECT_THROW(EventReader("/nonexistent/events"), Error); }

/// Tag and step of all values in the event files of a folder.
std::vector<std::pair<std::string, std::int64_t>> values_in(const std::string& folder) {
  std::vector<std::pair<std::string, std::int64_t>> values;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    for (const EventRecord& record : read_all(entry.path().string()))
      for (const EventValue& value : record.values) values.emplace_back(value.tag, record.step);
  std::sort(values.begin(), values.end());
  return values;
}

TEST(Events, WhatARunWritesAgainIsDropped) {
  const CheckpointFolder folder;
  std::string torn;
  {
    EventWriter first(folder.path());
    for (std::int64_t step = 1; step <= 5; ++step) first.scalar("loss", step, 1);
    EventWriter later(folder.path());
    later.restart_from(4);
    for (std::int64_t step = 4; step <= 9; ++step) later.scalar("rate", step, 2);
    later.flush();
    torn = later.path();
  }
  std::filesystem::resize_file(torn, std::filesystem::file_size(torn) - 3);
  EXPECT_TRUE(drop_events_after(folder.path(), 4));
  using Values = std::vector<std::pair<std::string, std::int64_t>>;
  EXPECT_EQ(values_in(folder.path()),
            (Values{{"loss", 1}, {"loss", 2}, {"loss", 3}, {"loss", 4}, {"rate", 4}}));
  EXPECT_FALSE(drop_events_after(folder.path(), 4)) << "nothing is left to drop";
  EXPECT_TRUE(drop_events_after(folder.path(), 0));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Events, LinksAndDamagedFilesStayAsTheyAre) {
  const CheckpointFolder folder, other;
  const std::string target = write_three(other.path());
  const std::string damaged = write_three(folder.path());
  std::string text = read_whole_file(damaged);
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  write_file_atomically(damaged, text);
  std::filesystem::create_symlink(target, folder / "events.out.tfevents.1.link");
  const std::string before = read_whole_file(target);
  EXPECT_FALSE(drop_events_after(folder.path(), 0));
  EXPECT_EQ(read_whole_file(target), before);
  EXPECT_EQ(read_whole_file(damaged), text);
}

TEST(Events, EveryKindOfValueIsReadBack) {
  const CheckpointFolder folder;
  EventWriter writer(folder.path());
  const HistogramData counted{-1, 2, 3, 1, 5, {-0.5, 0.5, 2.5}, {1, 0, 2}};
  const SummaryMetadata text{"text", "content", "Notes", "what was seen"};
  for (const int step : {1, 2})
    writer.add(step, {{"loss", 0.5F},
                      {"weights", counted},
                      {"input", ImageData{2, 3, 1, "png"}},
                      {"noise", AudioData{8000, 2, 5, "RIFF", "audio/x"}},
                      {"notes", TensorData{SummaryDType::text, {2}, {}, {"a", "b"}}, text},
                      {"table", TensorData{SummaryDType::i32, {1, 1}, std::string("\1\0\0\0", 4), {}}}});
  writer.close();
  const std::vector<EventRecord> records = read_all(writer.path());
  ASSERT_EQ(records.size(), 3U);
  for (const std::size_t at : {std::size_t{1}, std::size_t{2}}) {
    const std::vector<EventValue>& values = records[at].values;
    ASSERT_EQ(values.size(), 6U);
    std::vector<std::string> kinds;
    for (const EventValue& value : values) kinds.push_back(value.tag + " " + value.kind);
    EXPECT_THAT(kinds, ::testing::ElementsAre("loss scalar", "weights histogram", "input image",
                                              "noise audio", "notes tensor", "table tensor"));
    EXPECT_EQ(std::get<float>(values[0].data), 0.5F);
    const auto& histogram = std::get<HistogramData>(values[1].data);
    EXPECT_EQ(
        std::vector({histogram.min, histogram.max, histogram.num, histogram.sum, histogram.sum_squares}),
        std::vector({counted.min, counted.max, counted.num, counted.sum, counted.sum_squares}));
    EXPECT_EQ(histogram.limits, counted.limits);
    EXPECT_EQ(histogram.counts, counted.counts);
    const auto& image = std::get<ImageData>(values[2].data);
    EXPECT_EQ(std::vector({image.height, image.width, image.channels}), std::vector({2, 3, 1}));
    EXPECT_EQ(image.png, "png");
    const auto& sound = std::get<AudioData>(values[3].data);
    EXPECT_EQ(sound.sample_rate, 8000);
    EXPECT_EQ(sound.channels * 100 + sound.frames, 205);
    EXPECT_EQ(sound.encoded + sound.content_type, "RIFFaudio/x");
    const auto& words = std::get<TensorData>(values[4].data);
    EXPECT_EQ(words.dtype, SummaryDType::text);
    EXPECT_EQ(words.shape, std::vector<std::int64_t>{2});
    EXPECT_EQ(words.strings, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(std::get<TensorData>(values[5].data).bytes, std::string("\1\0\0\0", 4));
    // The metadata is there with the first value only.
    const SummaryMetadata& metadata = values[4].metadata;
    EXPECT_EQ(metadata.plugin + metadata.content + metadata.display_name + metadata.description,
              at == 1 ? "textcontentNoteswhat was seen" : "");
  }
}

TEST(Events, WhatDoesNotFitIsLeftOutAndCounted) {
  const CheckpointFolder folder;
  EventWriter writer(folder.path(), {.queue_bytes = 2000});
  writer.add(1, {{"large", ImageData{1, 1, 1, std::string(3000, 'x')}}, {"small", 1.0F}});
  writer.scalar("loss", 1, 0.5);
  writer.session_log(SessionStatus::stop, 1);
  writer.close();
  EXPECT_EQ(writer.dropped(), 1);
  EXPECT_EQ(writer.error(), "");
  const std::vector<EventRecord> records = read_all(writer.path());
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[1].values.at(0).tag, "small");
  EXPECT_EQ(records[2].values.at(0).tag, "loss");
  EXPECT_EQ(records[3].session, SessionStatus::stop);
}

TEST(EventQueue, LargeValuesLeaveRoomForNumbers) {
  EventQueue queue(100000);
  const auto image = [] {
    return QueuedEvent{0, 1,
                       std::vector<SummaryValue>{{"image", ImageData{1, 1, 1, std::string(9000, 'x')}}}};
  };
  int images = 0;
  while (queue.push(image())) ++images;
  EXPECT_EQ(images, 8) << "three quarters of the queue";
  int numbers = 0;
  while (queue.push("loss", numbers, 0, 1)) ++numbers;
  EXPECT_GT(numbers, 500);
  EXPECT_EQ(queue.dropped(), 2);
  EventQueue::Batch batch;
  queue.take(batch);
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.push("loss", 1, 0, 1)) << "bytes that are being written count";
  std::vector<std::int64_t> steps;
  int events = 0;
  batch.each(
      [&](std::int64_t step, double, std::string_view tag, float) {
        EXPECT_EQ(tag, "loss");
        steps.push_back(step);
      },
      [&](const QueuedEvent&) { ++events; });
  EXPECT_EQ(events, images);
  EXPECT_EQ(static_cast<int>(steps.size()), numbers);
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  queue.done(batch);
  EXPECT_TRUE(queue.push(image()));
}

TEST(Events, AThreadWritesWithoutAFlush) {
  const CheckpointFolder folder;
  EventWriter writer(folder.path());
  for (int step = 0; step < 10000; ++step) writer.scalar("loss", step, 1);
  // No time limit of its own: the test's limit ends it.
  while (std::filesystem::file_size(writer.path()) < 10000) ::usleep(1000);
  writer.request_flush();
  while (values_in(folder.path()).size() < 10000) ::usleep(1000);
}

TEST(Events, InvalidTextIsMarked) {
  const CheckpointFolder folder;
  EventWriter writer(folder.path());
  const std::string good = "caf\xc3\xa9 \xf0\x9f\x98\x80";
  writer.scalar(good, 1, 1);
  writer.scalar("a\xc3(\xed\xa0\x80\xff", 1, 1);
  writer.close();
  EXPECT_EQ(values_in(folder.path()),
            (std::vector<std::pair<std::string, std::int64_t>>{{"a?(????", 1}, {good, 1}}));
}

TEST(Events, TheLifeOfARunIsReadBack) {
  const CheckpointFolder folder;
  EventWriter writer(folder.path(), {.suffix = ".v2"});
  writer.graph("graph");
  writer.session_log(SessionStatus::checkpoint, 7, "runs/a/step-7.h5", "saved");
  writer.run_metadata("step_8", 8, "times");
  writer.close();
  EXPECT_THAT(writer.path(), ::testing::EndsWith(".v2"));
  const std::vector<EventRecord> records = read_all(writer.path());
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[1].graph_def, "graph");
  EXPECT_EQ(records[2].session, SessionStatus::checkpoint);
  EXPECT_FALSE(records[2].restart);
  EXPECT_EQ(records[2].checkpoint_path + records[2].message, "runs/a/step-7.h5saved");
  EXPECT_EQ(records[2].step, 7);
  EXPECT_EQ(records[3].run_metadata_tag + records[3].run_metadata, "step_8times");
}

TEST(Events, FlushedAndSyncedDataIsInTheFile) {
  const CheckpointFolder folder;
  EventWriter writer(folder.path());
  writer.scalar("loss", 1, 1);
  EXPECT_TRUE(values_in(folder.path()).empty());
  writer.flush();
  EXPECT_EQ(values_in(folder.path()).size(), 1U);
  writer.scalar("loss", 2, 1);
  writer.sync();
  EXPECT_EQ(values_in(folder.path()).size(), 2U);
}

}  // namespace
}  // namespace lockstep
