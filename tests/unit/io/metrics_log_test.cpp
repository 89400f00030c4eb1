// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/metrics_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "checkpoint_testing.h"
#include "io/atomic_file.h"

namespace lockstep {
namespace {

using testing::CheckpointFolder;
using Values = std::vector<std::pair<std::string, double>>;

TEST(MetricsLog, OneObjectPerRecord) {
  const CheckpointFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsLog log(path);
  log.append(1, 0, "train", Values{{"loss", 0.1}, {"accuracy", 1.0 / 3}});
  log.append(2, 0, "eval",
             Values{{"loss", std::nan("")}, {"peak", -std::numeric_limits<double>::infinity()}});
  log.append(3, 1, "a \"b\"\n", Values{});
  log.flush();
  EXPECT_EQ(log.error(), "");
  EXPECT_EQ(read_whole_file(path),
            "{\"step\":1,\"epoch\":0,\"split\":\"train\",\"loss\":0.1,\"accuracy\":0.3333333333333333}\n"
            "{\"step\":2,\"epoch\":0,\"split\":\"eval\",\"loss\":null,\"peak\":null}\n"
            "{\"step\":3,\"epoch\":1,\"split\":\"a \\\"b\\\"\\n\"}\n");
}

TEST(MetricsLog, ListsAndMatricesFollowTheValues) {
  const CheckpointFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsLog log(path);
  const std::vector<double> each{0.5, std::nan("")}, matrix{3, 1, 0, 2};
  const MetricsLog::List lists[] = {{"f1/per_class", each}, {"confusion_matrix/matrix", matrix, 2}};
  log.append(1, 1, "eval", Values{{"f1", 0.5}}, lists);
  log.flush();
  EXPECT_EQ(read_whole_file(path),
            "{\"step\":1,\"epoch\":1,\"split\":\"eval\",\"f1\":0.5,\"f1/per_class\":[0.5,null],"
            "\"confusion_matrix/matrix\":[[3.0,1.0],[0.0,2.0]]}\n");
}

TEST(MetricsLog, EvaluationsHaveASeparateLimit) {
  const CheckpointFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsLog log(path);
  for (int step = 1; step <= 3; ++step)
    for (const char* split : {"train", "eval"}) log.append(step, 0, split, Values{});
  log.drop_after(2, 1);
  EXPECT_EQ(read_whole_file(path),
            "{\"step\":1,\"epoch\":0,\"split\":\"train\"}\n"
            "{\"step\":1,\"epoch\":0,\"split\":\"eval\"}\n"
            "{\"step\":2,\"epoch\":0,\"split\":\"train\"}\n");
}

TEST(MetricsLog, ResumingDropsRepeatedRecords) {
  const CheckpointFolder folder;
  const std::string path = folder / "metrics.jsonl";
  std::string first, all;
  {
    MetricsLog log(path);
    for (int step = 1; step <= 6; ++step) {
      if (step == 5) {
        log.flush();
        first = read_whole_file(path);
      }
      log.append(step, 0, "train", Values{{"loss", 1.0 / step}});
    }
    log.flush();
    all = read_whole_file(path);
  }
  ASSERT_NE(first, all);
  MetricsLog log(path);
  log.drop_after(4);
  EXPECT_EQ(read_whole_file(path), first);
  for (int step = 5; step <= 6; ++step) log.append(step, 0, "train", Values{{"loss", 1.0 / step}});
  log.flush();
  EXPECT_EQ(read_whole_file(path), all);
  log.drop_after(6);
  EXPECT_EQ(read_whole_file(path), all);
  log.drop_after(0);  // while it is open
  EXPECT_EQ(read_whole_file(path), "");
  log.append(1, 0, "train", Values{{"loss", 0.5}});
  log.flush();
  EXPECT_EQ(read_whole_file(path), "{\"step\":1,\"epoch\":0,\"split\":\"train\",\"loss\":0.5}\n");
  EXPECT_THAT(folder.names(), ::testing::ElementsAre("metrics.jsonl"));
}

TEST(MetricsLog, RemovesATruncatedLine) {
  const CheckpointFolder folder;
  const std::string path = folder / "metrics.jsonl";
  write_file_atomically(path, "{\"step\":1}\n{\"step\":2,\"lo");
  MetricsLog log(path);
  log.append(2, 0, "train", Values{});
  log.flush();
  EXPECT_EQ(read_whole_file(path), "{\"step\":1}\n{\"step\":2,\"epoch\":0,\"split\":\"train\"}\n");
}

TEST(MetricsLog, DropAfterRemovesInvalidLines) {
  const CheckpointFolder folder;
  const std::string path = folder / "metrics.jsonl";
  write_file_atomically(path, "{\"step\":1}\nnonsense\n[1]\n{\"epoch\":1}\n{\"step\":2}\n{\"step\":3}\n");
  MetricsLog(path).drop_after(2);
  EXPECT_EQ(read_whole_file(path), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(MetricsLog, DropAfterCreatesNoFile) {
  const CheckpointFolder folder;
  MetricsLog log(folder / "metrics.jsonl");
  log.drop_after(3);
  EXPECT_TRUE(folder.names().empty());
  EXPECT_EQ(log.error(), "");
}

TEST(MetricsLog, NextRunRepairsAFailedWrite) {
  const CheckpointFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    std::optional<testing::FileSizeLimit> limit;  // longer than the log, which tries again at its end
    MetricsLog log(path);
    log.append(1, 0, "train", Values{{"loss", 0.5}});
    log.flush();
    limit.emplace(60);
    log.append(2, 0, "train", Values{{"loss", 0.5}});
    log.flush();
    EXPECT_THAT(log.error(), ::testing::HasSubstr("File too large"));
  }
  MetricsLog log(path);
  log.append(2, 0, "train", Values{});
  log.flush();
  EXPECT_EQ(read_whole_file(path),
            "{\"step\":1,\"epoch\":0,\"split\":\"train\",\"loss\":0.5}\n{\"step\":2,\"epoch\":0,\"split\":"
            "\"train\"}\n");
}

TEST(MetricsLog, ADiskThatHasRoomAgainGetsEveryRecord) {
  const CheckpointFolder folder;
  const std::string path = folder / "metrics.jsonl", whole = folder / "whole.jsonl";
  MetricsLog log(path), other(whole);
  const auto append = [&](std::int64_t step) {
    log.append(step, 0, "train", Values{{"loss", 0.5}});
    log.flush();
  };
  append(1);
  {
    const testing::FileSizeLimit limit(60);
    for (std::int64_t step = 2; step <= 6; ++step) append(step);
    EXPECT_THAT(log.error(), ::testing::HasSubstr("File too large"));
  }
  append(7);
  for (std::int64_t step = 1; step <= 7; ++step) other.append(step, 0, "train", Values{{"loss", 0.5}});
  other.flush();
  EXPECT_EQ(log.error(), "");
  EXPECT_EQ(log.dropped(), 0);
  EXPECT_EQ(read_whole_file(path), read_whole_file(whole));
}

TEST(MetricsLog, WhatDoesNotFitMeanwhileIsNamed) {
  const CheckpointFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsLog log(path, 600);
  const auto append = [&](std::int64_t step) {
    log.append(step, 0, "train", Values{{"loss", 0.5}});
    log.flush();
  };
  append(1);
  ::testing::internal::CaptureStderr();
  {
    const testing::FileSizeLimit limit(60);
    for (std::int64_t step = 2; step <= 20; ++step) append(step);
  }
  log.flush();
  append(21);
  const std::string text = read_whole_file(path);
  const std::int64_t lost = log.dropped();
  EXPECT_GT(lost, 0);
  EXPECT_EQ(std::ranges::count(text, '\n'), 21 - lost);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr(fmt::format(
                  "metrics are written again; missing: {} records of steps {} to 20", lost, 21 - lost)));
}

TEST(MetricsLog, ARecordThatDoesNotFitIsLeftOutAndCounted) {
  const CheckpointFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsLog log(path, 1000);
  const std::vector<double> many(200);
  const MetricsLog::List lists[] = {{"many", many}};
  log.append(1, 0, "train", Values{}, lists);
  log.append(2, 0, "train", Values{});
  log.flush();
  log.append(3, 0, "train", Values{});
  log.flush();
  EXPECT_EQ(log.dropped(), 1);
  EXPECT_EQ(read_whole_file(path),
            "{\"step\":2,\"epoch\":0,\"split\":\"train\"}\n{\"step\":3,\"epoch\":0,\"split\":\"train\"}\n");
}

TEST(MetricsLog, ErrorIsRememberedAndDoesNotThrow) {
  MetricsLog log("/nonexistent/metrics.jsonl");
  log.append(1, 0, "train", Values{});
  log.flush();
  EXPECT_THAT(log.error(), ::testing::HasSubstr("/nonexistent/metrics.jsonl"));
  log.append(2, 0, "train", Values{});
  log.drop_after(1);
}

}  // namespace
}  // namespace lockstep
