// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading metrics.jsonl while a run writes it.
#include "io/metrics_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "io/metrics_log.h"
#include "unit/io/checkpoint_testing.h"

namespace lockstep {
namespace {

using testing::CheckpointFolder;

struct Reading {
  int begins = 0;
  std::vector<MetricRecord> records;
};
bool read(MetricsReader& reader, Reading& into) {
  return reader.read([&] { ++into.begins; },
                     [&](const MetricRecord& record) { into.records.push_back(record); });
}

TEST(MetricsReader, ReadsWhatTheLogWrites) {
  const CheckpointFolder folder;
  MetricsReader reader(folder / "metrics.jsonl");
  Reading all;
  EXPECT_FALSE(read(reader, all));
  MetricsLog log(folder / "metrics.jsonl");
  const std::vector<std::pair<std::string, double>> values{{"loss", 0.25}, {"big", 1e300}, {"bad", NAN}};
  const std::vector<double> matrix{1, 2, 3, 4};
  log.append(7, 2, "train", values, std::vector<MetricsLog::List>{{"matrix", matrix, 2}});
  log.flush();
  EXPECT_TRUE(read(reader, all));
  ASSERT_EQ(all.records.size(), 1u);
  EXPECT_EQ(all.records[0].step, 7);
  EXPECT_EQ(all.records[0].epoch, 2);
  EXPECT_EQ(all.records[0].split, "train");
  ASSERT_EQ(all.records[0].values.size(), 3u);
  EXPECT_EQ(all.records[0].values[0], values[0]);
  EXPECT_EQ(all.records[0].values[1], values[1]);
  EXPECT_TRUE(std::isnan(all.records[0].values[2].second));
  ASSERT_EQ(all.records[0].lists.size(), 1u);
  EXPECT_EQ(all.records[0].lists[0].name, "matrix");
  EXPECT_EQ(all.records[0].lists[0].values, matrix);
  EXPECT_EQ(all.records[0].lists[0].columns, 2);
  log.append(8, 2, "eval", values);
  log.flush();
  EXPECT_TRUE(read(reader, all));
  ASSERT_EQ(all.records.size(), 2u);
  EXPECT_EQ(all.records[1].split, "eval");
  EXPECT_EQ(all.begins, 1);
}

TEST(MetricsReader, BeginsAnewWhenTheRunWentBack) {
  const CheckpointFolder folder;
  MetricsLog log(folder / "metrics.jsonl");
  const std::vector<std::pair<std::string, double>> values{{"loss", 1}};
  for (int step = 1; step <= 4; ++step) log.append(step, 1, "train", values);
  log.flush();
  MetricsReader reader(folder / "metrics.jsonl");
  Reading all;
  read(reader, all);
  log.drop_after(2);
  for (int step = 3; step <= 5; ++step) log.append(step, 1, "train", values);  // longer than before
  log.flush();
  all.records.clear();
  read(reader, all);
  EXPECT_EQ(all.begins, 2);
  ASSERT_EQ(all.records.size(), 5u);
  EXPECT_EQ(all.records[2].step, 3);
}

TEST(MetricsReader, WaitsForTheEndOfALineAndSkipsWhatIsNoRecord) {
  const CheckpointFolder folder;
  const std::string path = folder / "metrics.jsonl";
  std::ofstream(path) << "no json\n[1,2]\n{\"loss\":1}\n{\"step\":1,\"split\":\"train\",\"lo";
  MetricsReader reader(path);
  Reading all;
  read(reader, all);
  EXPECT_TRUE(all.records.empty());
  EXPECT_EQ(reader.odd_lines(), 3);
  std::ofstream(path, std::ios::app) << "ss\":5,\"deep\":{\"step\":9}}\n";
  read(reader, all);
  ASSERT_EQ(all.records.size(), 1u);
  EXPECT_EQ(all.records[0].step, 1);
  EXPECT_EQ(all.records[0].values, (std::vector<std::pair<std::string, double>>{{"loss", 5}}));
}

}  // namespace
}  // namespace lockstep
