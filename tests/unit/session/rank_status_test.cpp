// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// ranks.json, and who counts as slow.
#include "session/rank_status.h"

#include <gtest/gtest.h>

#include "io/atomic_file.h"
#include "unit/io/checkpoint_testing.h"

namespace lockstep {
namespace {

RanksReport report_of(const std::vector<double>& work, double factor) {
  RanksReport report{.job_begin = 12.5, .time = 99.25, .step = 7, .steps = 3, .straggler_factor = factor};
  for (const double seconds : work)
    report.ranks.push_back({"host", {.step_seconds = 2 * seconds, .work_seconds = seconds}});
  return report;
}

TEST(RankStatus, ReadsWhatItWrites) {
  RanksReport report = report_of({0.1, 0.3}, 1.5);
  report.samples_per_second = 1e6 / 3;
  report.ranks[1] = {"n\"02", {0.1, 0.2, 0.3, 0.4, 5e9}};
  const std::optional<RanksReport> read = ranks_report(to_json(report));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(report));
  EXPECT_EQ(read->ranks[1].host, "n\"02");
  EXPECT_EQ(read->ranks[1].time.peak_memory_bytes, 5e9);
  EXPECT_EQ(read->job_begin, 12.5);
}

TEST(RankStatus, WhatIsNoReport) {
  for (const char* text : {"", "{", "[]", "{}", "{\"ranks\":1}", "{\"ranks\":[1]}"})
    EXPECT_FALSE(ranks_report(text)) << text;
  EXPECT_TRUE(ranks_report("{\"ranks\":[{\"rank\":0,\"new\":[1]}],\"other\":\"x\"}"));
  const testing::CheckpointFolder folder;
  EXPECT_FALSE(read_ranks(folder / ""));
  write_file_atomically(folder / "ranks.json", to_json(report_of({1}, 0)));
  EXPECT_EQ(read_ranks(folder / "").value().step, 7);
}

TEST(RankStatus, StragglersExceedTheMedianByFactorAndAMillisecond) {
  using Marks = std::vector<bool>;
  EXPECT_EQ(stragglers_of(report_of({1, 1, 1.3}, 1.2)), (Marks{false, false, true}));
  EXPECT_EQ(stragglers_of(report_of({1, 1, 1.1}, 1.2)), (Marks{false, false, false}));
  EXPECT_EQ(stragglers_of(report_of({1, 9, 1, 9, 1}, 1.2)), (Marks{false, true, false, true, false}));
  EXPECT_EQ(stragglers_of(report_of({1e-4, 1e-4, 9e-4}, 1.2)), (Marks{false, false, false}));
  EXPECT_EQ(stragglers_of(report_of({1, 2}, 1.2)), (Marks{false, true}));
  EXPECT_EQ(stragglers_of(report_of({1, 1, 9}, 0)), (Marks{false, false, false}));
  EXPECT_EQ(stragglers_of(report_of({9}, 1.2)), (Marks{false}));
}

}  // namespace
}  // namespace lockstep
