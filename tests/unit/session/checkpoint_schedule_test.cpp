// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/checkpoint_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "config/yaml_node.h"
#include "session/checkpoint_options.h"
#include "session/saver.h"

namespace lockstep {
namespace {

Params section(const std::string& yaml) {
  return Params(parse_yaml(yaml, "test"), checkpoint_table(), "section checkpoint");
}

TEST(CheckpointInterval, IsDalysFormula) {
  // 5 minutes to write, a failure a day: Young's sqrt(2 * 300 * 86400) = 7200, and Daly's terms.
  EXPECT_NEAR(optimal_checkpoint_interval(300, 86400),
              7200 * (1 + std::sqrt(300.0 / 172800) / 3 + 300.0 / 172800 / 9) - 300, 1e-9);
  EXPECT_EQ(optimal_checkpoint_interval(0, 86400), 0);
  EXPECT_EQ(optimal_checkpoint_interval(200, 100), 100);
  EXPECT_EQ(optimal_checkpoint_interval(1000, 100), 100);
  EXPECT_LT(optimal_checkpoint_interval(1, 3600), optimal_checkpoint_interval(2, 3600));
  EXPECT_LT(optimal_checkpoint_interval(1, 3600), optimal_checkpoint_interval(1, 7200));
}

/// Expected time to do `work` seconds of training, writing every `interval`, failures at random
/// (exponential), restart at once: e^(tau/M) - 1 per segment of tau = interval + cost (Daly 2006, equation 20
/// without restart time).
double expected_time(double work, double interval, double cost, double mtbf) {
  return work / interval * mtbf * std::expm1((interval + cost) / mtbf);
}

TEST(CheckpointInterval, LosesLeastTime) {
  for (const double cost : {0.05, 1.0, 20.0, 300.0})
    for (const double mtbf : {600.0, 3600.0, 86400.0}) {
      if (cost > mtbf / 8) continue;
      const double best = optimal_checkpoint_interval(cost, mtbf);
      const double least = expected_time(1e6, best, cost, mtbf);
      for (const double factor : {0.7, 0.85, 1.2, 1.4})
        EXPECT_LT(least, expected_time(1e6, factor * best, cost, mtbf))
            << cost << " " << mtbf << " " << factor;
    }
}

TEST(CheckpointSchedule, ByStepsAndEpochs) {
  const CheckpointSchedule schedule(checkpoint_options(section("{every_steps: 3, every_epochs: 2}")).triggers,
                                    0);
  EXPECT_FALSE(schedule.due_by_count(2, false, 0));
  EXPECT_TRUE(schedule.due_by_count(3, false, 0));
  EXPECT_FALSE(schedule.due_by_count(4, true, 1));
  EXPECT_TRUE(schedule.due_by_count(8, true, 2));
  EXPECT_FALSE(schedule.due_by_count(8, false, 2));
  EXPECT_FALSE(schedule.due_by_time(1e9));
  const CheckpointSchedule none(checkpoint_options(section("{every_epochs: 0}")).triggers, 0);
  EXPECT_FALSE(none.due_by_count(6, true, 1));
}

TEST(CheckpointSchedule, BySeconds) {
  CheckpointSchedule schedule(checkpoint_options(section("every_seconds: 10")).triggers, 100);
  EXPECT_FALSE(schedule.due_by_time(109.9));
  EXPECT_TRUE(schedule.due_by_time(110));
  schedule.began(112);
  EXPECT_FALSE(schedule.due_by_time(121.9));
  EXPECT_TRUE(schedule.due_by_time(122));
  EXPECT_FALSE(schedule.due_by_count(1, false, 0));
}

TEST(CheckpointSchedule, ByTheTimeBetweenFailures) {
  CheckpointSchedule schedule(checkpoint_options(section("mtbf_hours: 8")).triggers, 0);
  EXPECT_DOUBLE_EQ(*schedule.interval_seconds(), optimal_checkpoint_interval(1, 8 * 3600))
      << "before any is measured";
  schedule.measured(0.2, 3);
  EXPECT_DOUBLE_EQ(*schedule.interval_seconds(), optimal_checkpoint_interval(0.2, 8 * 3600));
  schedule.measured(0.001, 60);
  EXPECT_EQ(*schedule.interval_seconds(), 60) << "the disk needs longer";
  CheckpointSchedule both(checkpoint_options(section("{mtbf_hours: 8, every_seconds: 20}")).triggers, 0);
  EXPECT_EQ(*both.interval_seconds(), 20);
}

TEST(CheckpointSchedule, OptionsOutOfRangeAreRefused) {
  for (const char* yaml : {"every_seconds: 0", "mtbf_hours: -1", "keep_every_hours: 0", "keep_best: -1",
                           "best_mode: less", "timeout_seconds: 0"})
    EXPECT_THROW(section(yaml), Error) << yaml;
  EXPECT_TRUE(checkpoint_options(section("at_start: true")).triggers.at_start);
  const SaverOptions options =
      checkpoint_options(section("{keep: 3, keep_every_hours: 2.5, keep_best: 4, best_mode: max, background: "
                                 "false, timeout_seconds: 9}"))
          .saver;
  EXPECT_EQ(options.retention.keep, 3);
  EXPECT_EQ(options.retention.keep_every_hours, 2.5);
  EXPECT_EQ(options.retention.keep_best, 4);
  EXPECT_TRUE(options.retention.larger_is_better);
  // Without a mode the metric says what is better.
  EXPECT_TRUE(checkpoint_options(section("best_metric: accuracy")).saver.retention.larger_is_better);
  EXPECT_TRUE(checkpoint_options(section("best_metric: eval/a/accuracy")).saver.retention.larger_is_better);
  EXPECT_FALSE(checkpoint_options(section("best_metric: loss/head")).saver.retention.larger_is_better);
  EXPECT_FALSE(checkpoint_options(section("keep_best: 1")).saver.retention.larger_is_better);
  EXPECT_FALSE(options.background);
  EXPECT_EQ(options.timeout_seconds, 9);
}

}  // namespace
}  // namespace lockstep
