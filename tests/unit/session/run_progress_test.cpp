// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "io/atomic_file.h"
#include "session/run_status.h"

namespace lockstep {
namespace {

const IsAlive kYes = [](const JobRecord&) { return true; };
const IsAlive kNo = [](const JobRecord&) { return false; };
const IsAlive kUnknown = [](const JobRecord&) -> std::optional<bool> { return std::nullopt; };

/// A job of 100 s from `begin` on: 10 s of start, 80 s of steps, 4 of them waiting for checkpoints, 10 s of
/// end.
JobRecord job(double begin, std::int64_t begin_step, std::int64_t step, const std::string& state) {
  return {.state = state,
          .total_steps = 1000,
          .begin_step = begin_step,
          .step = step,
          .begin = begin,
          .first_step = begin + 10,
          .last_step = begin + 90,
          .heartbeat = begin + 98,
          .end = begin + 100,
          .saving_seconds = 4};
}

/// Killed: the last sign of life is 98 s behind its begin.
JobRecord killed(double begin, std::int64_t begin_step, std::int64_t step) {
  JobRecord record = job(begin, begin_step, step, "running");
  record.end = 0;
  return record;
}

TEST(RunProgress, SplitsTimeIntoEffectiveAndLost) {
  // 200 steps; then 400 of which a kill cost 100; then the rest of a second.
  const std::vector<JobRecord> jobs{job(1000, 0, 200, "requeue"), killed(2000, 200, 600),
                                    job(3000, 500, 700, "requeue")};
  const RunProgress run = run_progress(jobs, 3500, kNo);
  EXPECT_EQ(run.state, RunState::waiting);
  EXPECT_EQ(run.jobs, 3);
  EXPECT_EQ(run.step, 700);
  EXPECT_DOUBLE_EQ(run.job_seconds, 100 + 98 + 100);
  EXPECT_DOUBLE_EQ(run.between_seconds, 900 + 902);
  EXPECT_DOUBLE_EQ(run.starting_seconds, 30);
  EXPECT_DOUBLE_EQ(run.saving_seconds, 12);
  EXPECT_DOUBLE_EQ(run.repeated_seconds, 76.0 / 4);  // 100 of 400 steps
  EXPECT_DOUBLE_EQ(run.stopping_seconds, 20);
  EXPECT_DOUBLE_EQ(run.effective_share(), 1 - (30 + 12 + 19 + 20) / 298.0);
  EXPECT_DOUBLE_EQ(run.steps_per_second, 2.5);
  EXPECT_DOUBLE_EQ(run.left_seconds, 120);
  EXPECT_DOUBLE_EQ(run.finish_time, 3500 + 300 * 2100.0 / 700) << "at the pace of the chain, queue and all";
}

TEST(RunProgress, StatesOfJobsThatHaveEnded) {
  for (const auto& [word, state] :
       {std::pair("finished", RunState::finished), std::pair("requeue", RunState::waiting),
        std::pair("stopped", RunState::stopped), std::pair("failed", RunState::failed)})
    EXPECT_EQ(run_progress({job(0, 0, 10, word)}, 1e6, kNo).state, state) << word;
  EXPECT_EQ(run_progress({job(0, 0, 1000, "finished")}, 1e6, kNo).left_seconds, 0);
}

TEST(RunProgress, StateOfAJobThatHasNotEnded) {
  const std::vector<JobRecord> jobs{killed(0, 0, 10)};
  EXPECT_EQ(run_progress(jobs, 1000, kYes).state, RunState::running);
  EXPECT_EQ(run_progress(jobs, 99, kNo).state, RunState::crashed);
  EXPECT_EQ(run_progress(jobs, 98 + kSilentSeconds - 1, kUnknown).state, RunState::running);
  EXPECT_EQ(run_progress(jobs, 98 + kSilentSeconds + 1, kUnknown).state, RunState::crashed);
  EXPECT_DOUBLE_EQ(run_progress(jobs, 1000, kNo).job_seconds, 98)
      << "a crashed job ended with its last sign of life";
}

TEST(RunProgress, JobWithoutAStepIsAllStarting) {
  JobRecord starting = killed(0, 5, 5);
  starting.state = "starting";
  starting.first_step = starting.last_step = 0;
  const RunProgress run = run_progress({starting}, 50, kYes);
  EXPECT_EQ(run.state, RunState::starting);
  EXPECT_DOUBLE_EQ(run.starting_seconds, 50);
  EXPECT_EQ(run.steps_per_second, 0);
  EXPECT_EQ(run.left_seconds, -1);
}

TEST(RunRecord, KnowsProcessesOfThisHostOnly) {
  JobRecord mine = this_job(1, 0, "");
  EXPECT_EQ(is_alive_here(mine), true);
  ++mine.process_start;  // the number belongs to another process now
  EXPECT_EQ(is_alive_here(mine), false);
  mine.host = "elsewhere";
  EXPECT_EQ(is_alive_here(mine), std::nullopt);
  mine = this_job(1, 0, "");
  mine.pid_namespace = "pid:[1]";
  EXPECT_EQ(is_alive_here(mine), std::nullopt);
}

TEST(RunRecord, AsJsonAndBack) {
  JobRecord before = job(1e9 + 0.125, 7, 9, "requeue");
  before.reason = "a \"quoted\" word";
  before.data = {"one", "two"};
  before.loss = std::numeric_limits<double>::quiet_NaN();
  const auto after = job_record(to_json(before));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->reason, before.reason);
  EXPECT_EQ(after->begin, before.begin);
  EXPECT_EQ(after->data, before.data);
  EXPECT_EQ(after->step, 9);
  EXPECT_EQ(after->loss, 0) << "null: unknown";
  for (const char* text : {"", "{", "[]", "{}", "{\"format\":2}", "{\"format\":1,\"step\":\"x\"}"})
    EXPECT_FALSE(job_record(text)) << text;
}

TEST(RunRecord, DataAreComparedWithThoseOfTheCheckpoint) {
  const auto with = [](std::int64_t begin_step, const char* train, const char* eval) {
    return JobRecord{.begin_step = begin_step, .data = {train, eval}};
  };
  const auto change = [](const std::vector<JobRecord>& jobs, const JobData& mine) {
    const DataChange found = data_change(jobs, 5, mine);
    return std::string(found.train ? "train " : "") + (found.eval ? "eval " : "") +
           (found.unknown ? "unknown " : "");
  };
  EXPECT_EQ(change({with(0, "", "")}, {"a", "b"}), "unknown ");
  EXPECT_EQ(change({with(0, "a", "b")}, {"a", "b"}), "");
  EXPECT_EQ(change({with(0, "a", "b")}, {"a", "c"}), "eval ");
  EXPECT_EQ(change({with(0, "a", "b"), with(5, "", "")}, {"c", "d"}), "train eval ")
      << "a job that failed early";
  EXPECT_EQ(change({with(0, "a", ""), with(5, "c", "")}, {"c", ""}), "")
      << "accepted, without a checkpoint since";
  EXPECT_EQ(change({with(0, "a", ""), with(5, "c", "")}, {"a", ""}), "") << "and taken back";
  EXPECT_EQ(change({with(0, "a", ""), with(3, "c", "")}, {"a", ""}), "train ");
}

TEST(RunRecord, JobsWithoutGain) {
  const auto at = [](std::int64_t step, const char* state = "requeue") {
    return JobRecord{.state = state, .begin_step = step};
  };
  EXPECT_EQ(jobs_without_gain({at(0)}, 5), 0);
  EXPECT_EQ(jobs_without_gain({at(0)}, 0), 1);
  EXPECT_EQ(jobs_without_gain({at(0), at(5)}, 5), 1) << "the first one gained five";
  EXPECT_EQ(jobs_without_gain({at(0), at(5), at(5, "running"), at(5)}, 5), 3) << "a killed one counts";
  EXPECT_EQ(jobs_without_gain({at(0), at(5), at(5, "stopped"), at(5, "failed"), at(5)}, 5), 2);
}

class StatusFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("lockstep-status-" + std::to_string(::getpid()))).string();
};

TEST_F(StatusFiles, EachJobBeginsWhereTheLastOneEnded) {
  for (int i = 0; i < 3; ++i) {
    RunStatus status(folder, this_job(2, 10 * i, ""));
    EXPECT_EQ(static_cast<int>(status.before().size()), i);
    status.first_step_begins();
    status.step_done(10 * i + 10, 0.5);
    status.end("requeue", 75, "a test");
    status.end("failed", 1, "too late");
  }
  const std::vector<JobRecord> jobs = read_jobs(folder);
  ASSERT_EQ(jobs.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(jobs[static_cast<std::size_t>(i)].step, 10 * i + 10);
    EXPECT_EQ(jobs[static_cast<std::size_t>(i)].state, "requeue");
  }
}

TEST_F(StatusFiles, StartKilledBetweenFilesCountsNoJobTwice) {
  { RunStatus(folder, this_job(1, 0, "")).end("requeue", 75, ""); }
  write_file_atomically(folder + "/jobs.jsonl", read_whole_file(folder + "/status.json"));
  EXPECT_EQ(read_jobs(folder).size(), 1U);
  { RunStatus(folder, this_job(1, 0, "")).end("requeue", 75, ""); }
  EXPECT_EQ(read_jobs(folder).size(), 2U);
}

TEST_F(StatusFiles, DamagedFileIsNamedAndEndsNoTraining) {
  write_file_atomically(folder + "/status.json", "{\"format\":1,");
  EXPECT_THROW(read_jobs(folder), Error);
  RunStatus status(folder, this_job(1, 0, ""));
  status.end("finished", 0, "");
  EXPECT_EQ(read_jobs(folder).size(), 1U);
}

}  // namespace
}  // namespace lockstep
