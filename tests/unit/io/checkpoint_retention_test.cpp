// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints that are kept: the newest, one per interval, the best. A new process continues as the
// previous one would have.
#include "io/checkpoint_retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "checkpoint_testing.h"
#include "io/atomic_file.h"
#include "io/checkpoint_state.h"
#include "io/checkpoint_store.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::CheckpointFolder;
using testing::test_header;
using testing::test_tensors;

constexpr double kHour = 3600, kBegin = 1.7e9;

std::vector<std::int64_t> steps_in(const CheckpointFolder& folder) {
  std::vector<std::int64_t> steps;
  for (const KeptCheckpoint& kept : CheckpointStore(folder.path(), 0).list()) steps.push_back(kept.step);
  return steps;
}

/// A store whose clock returns `now`; each call simulates a new process.
CheckpointStore store_at(const CheckpointFolder& folder, const RetentionRules& rules, const double& now) {
  return CheckpointStore(folder.path(), rules, [&now] { return now; });
}

void save(CheckpointStore& store, int step) {
  store.save(test_header(step), test_tensors(static_cast<unsigned>(step)).get());
}

TEST(CheckpointRetention, OnePerIntervalIsKeptPermanently) {
  const CheckpointFolder folder;
  double now = kBegin;
  CheckpointStore store = store_at(folder, {.keep = 2, .keep_every_hours = 1}, now);
  for (int step = 1; step <= 12; ++step) {
    now += kHour / 4;
    save(store, step);
  }
  EXPECT_THAT(steps_in(folder), ElementsAre(4, 8, 11, 12));
}

TEST(CheckpointRetention, IntervalRuleSurvivesRestarts) {
  const CheckpointFolder folder;
  double now = kBegin;
  for (int step = 1; step <= 12; ++step) {
    CheckpointStore store = store_at(folder, {.keep = 2, .keep_every_hours = 1}, now);
    now += kHour / 4;
    save(store, step);
  }
  EXPECT_THAT(steps_in(folder), ElementsAre(4, 8, 11, 12)) << "like one uninterrupted process";
  now += 100 * kHour;  // after a long pause at most one is due
  for (int step = 13; step <= 16; ++step) {
    CheckpointStore store = store_at(folder, {.keep = 2, .keep_every_hours = 1}, now);
    now += kHour / 10;
    save(store, step);
  }
  EXPECT_THAT(steps_in(folder), ElementsAre(4, 8, 12, 13, 15, 16));
}

TEST(CheckpointRetention, FileTimesReplaceAMissingStateFile) {
  const CheckpointFolder folder;
  double now = kBegin;
  {
    CheckpointStore all(folder.path(), 0);
    for (int step = 1; step <= 6; ++step) save(all, step);
    for (int step = 1; step <= 6; ++step)  // one hour apart, the last one at `now`
      std::filesystem::last_write_time(
          all.path_of(step), std::filesystem::file_time_type::clock::now() - std::chrono::hours(6 - step));
  }
  std::filesystem::remove(folder / "checkpoint");
  now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  CheckpointStore store = store_at(folder, {.keep = 1, .keep_every_hours = 1.9}, now);
  save(store, 7);
  EXPECT_THAT(steps_in(folder), ElementsAre(3, 5, 7));
}

TEST(CheckpointRetention, KeepsTheBestByAMetric) {
  for (const bool larger : {false, true}) {
    const CheckpointFolder folder;
    double now = kBegin;
    const RetentionRules rules{.keep = 1, .keep_best = 2, .larger_is_better = larger};
    const double values[] = {0.5, 0.2, 0.9, 0.2, 0.7, 0.8};
    for (int step = 1; step <= 6; ++step) {
      CheckpointStore store = store_at(folder, rules, now);
      store.note_metric(step, values[step - 1]);
      save(store, step);
    }
    if (larger)
      EXPECT_THAT(steps_in(folder), ElementsAre(3, 6));
    else
      EXPECT_THAT(steps_in(folder), ElementsAre(2, 4, 6));
  }
}

TEST(CheckpointRetention, MetricMayFollowItsCheckpoint) {
  const CheckpointFolder folder;
  double now = kBegin;
  const RetentionRules rules{.keep = 1, .keep_best = 1};
  {
    CheckpointStore store = store_at(folder, rules, now);
    save(store, 1);
    store.note_metric(1, 0.5);
    store.note_metric(1, std::numeric_limits<double>::quiet_NaN());
    EXPECT_THAT(read_whole_file(folder / "checkpoint"),
                HasSubstr("checkpoint_metric: \"checkpoints/step-00000001.h5\" 0.5\n"));
  }
  CheckpointStore store = store_at(folder, rules, now);
  save(store, 2);
  save(store, 3);
  EXPECT_THAT(steps_in(folder), ElementsAre(1, 3));
  const std::vector<KeptCheckpoint> kept = store.list();
  EXPECT_TRUE(kept[0].best && !kept[0].recent && kept[1].recent && !kept[1].best);
}

TEST(CheckpointRetention, RewrittenStepLosesItsOldState) {
  const CheckpointFolder folder;
  double now = kBegin;
  const RetentionRules rules{.keep = 1, .keep_best = 1};
  {
    CheckpointStore store = store_at(folder, rules, now);
    save(store, 1);
    store.note_metric(1, 0.5);
  }
  CheckpointStore store = store_at(folder, rules, now);
  save(store, 1);
  EXPECT_FALSE(store.list()[0].metric) << "the metric of the file that was overwritten";
}

TEST(CheckpointRetention, PreservedOnesStayWhenARunIsSetBack) {
  const CheckpointFolder folder;
  double now = kBegin;
  const RetentionRules rules{.keep = 1, .keep_every_hours = 1};
  {
    CheckpointStore store = store_at(folder, rules, now);
    for (int step = 10; step <= 40; step += 10) {
      now += kHour;
      save(store, step);
    }
  }
  EXPECT_THAT(steps_in(folder), ElementsAre(10, 20, 30, 40));
  write_file_atomically(folder / "checkpoint",
                        read_whole_file(folder / "checkpoint")
                            .replace(0, 54, "model_checkpoint_path: \"checkpoints/step-00000020.h5\"\n"));
  CheckpointStore store = store_at(folder, rules, now);
  ASSERT_EQ(store.newest_intact(nullptr), store.path_of(20));
  save(store, 25);
  EXPECT_THAT(steps_in(folder), ElementsAre(10, 20, 25, 30, 40))
      << "40 was due to be preserved when 25 replaced it";
  save(store, 26);
  EXPECT_THAT(steps_in(folder), ElementsAre(10, 20, 26, 30, 40));
}

TEST(CheckpointRetention, RunDirectoryCanBeMoved) {
  const CheckpointFolder folder;
  double now = kBegin;
  const RetentionRules rules{.keep = 1, .keep_every_hours = 1, .keep_best = 1};
  std::filesystem::create_directory(folder / "a");
  {
    CheckpointStore store(folder / "a", rules, [&] { return now; });
    for (int step = 1; step <= 3; ++step) {
      store.note_metric(step, step);
      now += 0.6 * kHour;
      save(store, step);
    }
  }
  std::filesystem::rename(folder / "a", folder / "b");
  CheckpointStore moved(folder / "b", rules, [&] { return now; });
  EXPECT_EQ(moved.newest_intact(nullptr), moved.path_of(3));
  const std::vector<KeptCheckpoint> kept = moved.list();
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_TRUE(kept[0].best);
  EXPECT_TRUE(kept[1].preserved);
  EXPECT_EQ(kept[2].time, now);
}

TEST(CheckpointRetention, RequiresRoomForAllKeptAndOneMore) {
  const CheckpointFolder folder;
  const std::size_t free = free_bytes(folder.path());
  CheckpointStore store(folder.path(), RetentionRules{.keep = 3, .keep_best = 1});
  store.require_room(free / 100);
  try {
    store.require_room(free / 4);  // five do not fit
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::checkpoint);
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr(folder.path()), HasSubstr("5 more checkpoints"),
                                               HasSubstr("MB are free")));
  }
  for (int step = 1; step <= 3; ++step) save(store, step);
  store.require_room(free / 4);  // two do fit: the others already exist
  EXPECT_THROW(store.require_room(free), Error);
  EXPECT_NO_THROW(CheckpointStore(folder.path(), 0).require_room(free / 2));
}

TEST(CheckpointState, RoundTrip) {
  CheckpointState state;
  state.newest = "checkpoints/step-00000300.h5";
  state.paths = {"checkpoints/step-00000200.h5", "checkpoints/step-00000300.h5"};
  state.times = {1700000000.25, 0.1};
  state.last_preserved = 3.5;
  state.preserved = {"checkpoints/step-00000200.h5"};
  state.metrics = {{"checkpoints/step-00000300.h5", -1e-300}};
  const std::string text = format_checkpoint_state(state);
  const CheckpointState read = parse_checkpoint_state(text);
  EXPECT_EQ(format_checkpoint_state(read), text);
  EXPECT_EQ(read.times, state.times);
  EXPECT_EQ(read.metrics, state.metrics);
  EXPECT_EQ(read.last_preserved, 3.5);
  EXPECT_EQ(read.preserved, state.preserved);
}

TEST(CheckpointState, SkipsTextThatCannotBeParsed) {
  const CheckpointState state = parse_checkpoint_state(
      "# by hand\r\n\n  model_checkpoint_path: \"a\"\r\nmodel_checkpoint_path: "
      "\"b\"\nall_model_checkpoint_paths: \"a\"\n"
      "all_model_checkpoint_timestamps: x\nlast_preserved_timestamp: nan\npreserved_checkpoint_path: a\n"
      "checkpoint_metric: \"a\"\ncheckpoint_metric: 3\nunknown: 4\ncheckpoint_metric: \"a\" inf\nnonsense");
  EXPECT_EQ(state.newest, "a");
  EXPECT_THAT(state.paths, ElementsAre("a"));
  EXPECT_THAT(state.times, IsEmpty());
  EXPECT_FALSE(state.last_preserved);
  EXPECT_THAT(state.preserved, IsEmpty());
  EXPECT_THAT(state.metrics, IsEmpty());
}

}  // namespace
}  // namespace lockstep
