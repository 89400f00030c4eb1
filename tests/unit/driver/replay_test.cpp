// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/step_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "driver/commands/replay.h"
#include "io/atomic_file.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

StepRecord sample() {
  StepRecord record;
  record.step = 5;
  record.loss = 0.1;
  record.accuracy = 0.75;
  record.environment = {{"instruction set", "avx512"}, {"training data", "abc"}};
  record.hosts = {"a", "b"};
  record.samples = {3, 3, 2, 0};
  record.rows = {{"input", "", "features", true, {1, 2, 3, 0}},
                 {"forward", "c1 + r1", "output", true, {4, 5, 0xfedcba9876543210, 0}},
                 {"backward", "c1 + r1", "gradient of c1/kernel", true, {7, 8, 9, 0}},
                 {"sum", "", "gradient of c1/kernel", false, {10}},
                 {"update", "", "c1/kernel", false, {11, 12}}};
  return record;
}

TEST(StepRecord, ComesBackFromItsText) {
  StepRecord record = sample();
  record.updated = false;
  const StepRecord read = record_from_json(to_json(record), "here");
  EXPECT_EQ(read.step, 5);
  EXPECT_EQ(read.loss, 0.1);
  EXPECT_EQ(read.accuracy, 0.75);
  EXPECT_FALSE(read.updated);
  EXPECT_EQ(read.environment, record.environment);
  EXPECT_EQ(read.hosts, record.hosts);
  EXPECT_EQ(read.samples, record.samples);
  ASSERT_EQ(read.rows.size(), record.rows.size());
  for (std::size_t i = 0; i < read.rows.size(); ++i) {
    EXPECT_EQ(row_text(read.rows[i]), row_text(record.rows[i]));
    EXPECT_EQ(read.rows[i].per_microshard, record.rows[i].per_microshard);
    EXPECT_EQ(read.rows[i].hashes, record.rows[i].hashes);
  }
  EXPECT_TRUE(differences(record, read).empty());
}

TEST(StepRecord, KeepsALossThatIsNotFinite) {
  StepRecord record = sample();
  record.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(record_from_json(to_json(record), "here").loss));
}

TEST(StepRecord, InvalidRecordNamesTheFile) {
  const std::string good = to_json(sample());
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text :
       {std::string(), std::string("{}"), good.substr(0, good.size() / 2),
        replaced("\"format\": 1", "\"format\": 2"), replaced("fedcba9876543210", "fedcba987654321x"),
        replaced("\"samples\"", "\"sample\""),
        replaced("\"000000000000000a\"", "\"000000000000000a\", \"00\", \"00\"")}) {
    try {
      record_from_json(text, "runs/x/records/step-00000005.json");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::checkpoint);
      EXPECT_THAT(error.what(), HasSubstr("runs/x/records/step-00000005.json: this is no record"));
    }
  }
}

TEST(StepRecord, DifferencesAreInOrderOfExecution) {
  StepRecord repeated = sample();
  repeated.rows[4].hashes = {11};
  repeated.rows[1].hashes[0] = 40;
  repeated.rows[1].hashes[2] = 60;
  const auto found = differences(sample(), repeated);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].row, 1U);
  EXPECT_THAT(found[0].places, ElementsAre(0, 2));
  EXPECT_EQ(found[1].row, 4U);
  EXPECT_THAT(found[1].places, ElementsAre(1));  // rank 1 had another value
}

TEST(StepRecord, ComparesAnUnfinishedStepAsFarAsItCame) {
  StepRecord recorded = sample();
  recorded.rows.pop_back();
  EXPECT_TRUE(differences(recorded, sample()).empty());
  EXPECT_THAT(replay_report(recorded, sample(), false), HasSubstr("did not come to the end"));
}

TEST(StepRecord, AnotherModelOrBatchIsAnError) {
  StepRecord other = sample();
  other.rows[1].layer = "c2";
  EXPECT_THROW(differences(sample(), other), Error);
  other = sample();
  other.samples = {3, 3, 3, 0};
  EXPECT_THROW(differences(sample(), other), Error);
}

TEST(ReplayReport, NamesTheFirstDifferenceWithRankAndHost) {
  StepRecord repeated = sample();
  repeated.hosts = {"laptop"};
  repeated.rows[2].hashes[0] = 70;
  repeated.rows[1].hashes[2] = 60;
  const std::string text = replay_report(sample(), repeated, false);
  EXPECT_THAT(text, HasSubstr("step 5, recorded on 2 ranks, repeated on 1 rank: it differs"));
  EXPECT_THAT(text, HasSubstr("first in order of execution: forward of c1 + r1: output\n    microshard 2 of "
                              "4, computed by rank 1 on host b\n"));
  EXPECT_THAT(text, HasSubstr("2 of 5 rows differ; what ran before is equal"));
  EXPECT_THAT(text, HasSubstr("libraries and data are as they were"));
}

TEST(ReplayReport, SaysWhatMayExplainIt) {
  StepRecord repeated = sample();
  repeated.rows[1].hashes[0] = 1;
  repeated.environment[0].second = "avx2";
  EXPECT_THAT(replay_report(sample(), repeated, false),
              HasSubstr("instruction set: avx512 there, avx2 here"));
  repeated = sample();
  repeated.environment[0].second = "avx2";
  EXPECT_THAT(replay_report(sample(), repeated, false), HasSubstr("although these are not as they were"));
  EXPECT_THAT(replay_report(sample(), sample(), false), Not(HasSubstr("not as they were")));
  repeated = sample();
  repeated.rows[0].hashes[0] = 5;
  EXPECT_THAT(replay_report(sample(), repeated, false), HasSubstr("samples differ"));
}

TEST(StepRecord, FindsTheStepsOfARun) {
  const std::string run = testing::TempDir() + "/lockstep_recorded_steps";
  std::filesystem::remove_all(run);
  EXPECT_TRUE(recorded_steps(run).empty());
  std::filesystem::create_directories(run + "/records");
  for (const std::int64_t step : {12, 3}) {
    write_file_atomically(record_path(run, step), "{}");
    write_file_atomically(record_state_path(run, step), "");
  }
  write_file_atomically(record_state_path(run, 99), "");  // begun only
  EXPECT_THAT(recorded_steps(run), ElementsAre(3, 12));
  std::filesystem::remove_all(run);
}

}  // namespace
}  // namespace lockstep
