// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/moving_average.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "config/yaml_node.h"
#include "core/thread_pool.h"

namespace lockstep {
namespace {

AverageRule rule(const std::string& text, std::int64_t steps_per_epoch = 10) {
  return average_options(parse_yaml(text, "test"))
      ->resolved(RunClock({.steps = steps_per_epoch, .samples = steps_per_epoch, .batch = 1}));
}

std::string mistake(const std::string& text) {
  try {
    average_options(parse_yaml(text, "test"));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// The averages of a number that is values[0] at step `first`, then values[1], ... after each step.
std::vector<double> averages(const AverageRule& rule, const std::vector<double>& values) {
  double average = values.front();
  std::vector<double> found;
  AverageProgress progress = AverageProgress::beginning(rule, 0);
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (const auto weight = progress.next_weight(rule, rule.first + static_cast<std::int64_t>(i)))
      average += static_cast<double>(*weight) * (values[i] - average);
    found.push_back(average);
  }
  return found;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-6 * std::fabs(expected[i])) << i;
}

const std::vector<double> kValues = {1, 3, -2, 5, 4, 8};

TEST(AverageRule, EmaFollowsItsRecurrence) {
  std::vector<double> expected;
  double shadow = kValues[0];
  for (std::size_t i = 1; i < kValues.size(); ++i)
    expected.push_back(shadow -= (1 - 0.75) * (shadow - kValues[i]));
  expect_near(averages(rule("ema: {decay: 0.75}"), kValues), expected);
}

TEST(AverageRule, DecayFollowsASchedule) {
  std::vector<double> expected;
  double shadow = kValues[0];
  for (std::size_t i = 1; i < kValues.size(); ++i) {
    const double decay =
        0.5 + 0.1 * std::min(4.0, static_cast<double>(i - 1));  // the first update has step 0
    expected.push_back(shadow -= (1 - decay) * (shadow - kValues[i]));
  }
  const AverageRule scheduled =
      rule("ema: {decay: {polynomial_decay: {initial: 0.5, last: 0.9, decay_steps: 4}}}");
  expect_near(averages(scheduled, kValues), expected);
  EXPECT_THAT(scheduled.describe(), testing::HasSubstr("decay by polynomial_decay"));
  EXPECT_THAT(mistake("ema: {zero_debias: true, decay: {polynomial_decay: {initial: 0.5, last: 0.9, "
                      "decay_steps: 4}}}"),
              testing::HasSubstr("zero_debias needs a decay that stays the same"));
}

TEST(AverageRule, EmaWithNumUpdatesLimitsTheDecay) {
  std::vector<double> expected;
  double shadow = kValues[0];
  for (std::size_t i = 1; i < kValues.size(); ++i) {
    const double n = static_cast<double>(i), decay = std::min(0.3, (1 + n) / (10 + n));
    expected.push_back(shadow -= (1 - decay) * (shadow - kValues[i]));
  }
  expect_near(averages(rule("ema: {decay: 0.3, num_updates: true}"), kValues), expected);
}

TEST(AverageRule, ZeroDebiasDividesByOneMinusThePower) {
  std::vector<double> expected;
  double biased = 0, power = 1;
  for (std::size_t i = 1; i < kValues.size(); ++i) {
    biased -= (1 - 0.9) * (biased - kValues[i]);
    power *= 0.9;
    expected.push_back(biased / (1 - power));
  }
  expect_near(averages(rule("ema: {decay: 0.9, zero_debias: true}"), kValues), expected);
}

TEST(AverageRule, SwaIsTheMean) {
  std::vector<double> expected;
  double sum = kValues[0];
  for (std::size_t i = 1; i < kValues.size(); ++i)
    expected.push_back((sum += kValues[i]) / static_cast<double>(i + 1));
  expect_near(averages(rule("swa: {start_step: 7, every_steps: 1}"), kValues), expected);
}

TEST(AverageRule, StartAndIntervalInEpochs) {
  const AverageRule swa = rule("swa: {start_epoch: 3, every_epochs: 2}", 10);
  EXPECT_EQ(swa.first, 30);
  EXPECT_EQ(swa.every, 20);
  AverageProgress progress = AverageProgress::beginning(swa, 0);
  EXPECT_FALSE(progress.next_weight(swa, 30).has_value());
  EXPECT_FALSE(progress.has_begun(30));
  EXPECT_FALSE(progress.next_weight(swa, 49).has_value());
  EXPECT_EQ(progress.next_weight(swa, 50), 0.5F);
  EXPECT_EQ(progress.next_weight(swa, 70), static_cast<float>(1.0 / 3));
  EXPECT_EQ(rule("swa: {start_epoch: 3}", 10).every, 10);
  using enum AverageRule::Statistics;
  EXPECT_EQ(swa.statistics, recompute);
  EXPECT_EQ(swa.batches, 0);
  EXPECT_EQ(rule("ema").statistics, last);
  EXPECT_EQ(rule("ema: {statistics: average}").statistics, average);
  EXPECT_EQ(rule("ema: {statistics: recompute, statistics_batches: 7}").batches, 7);
}

/// A rule that is added at step 400 with a begin before it.
TEST(AverageProgress, AnAverageThatIsAddedLaterCountsFromThere) {
  const AverageRule swa = rule("swa: {start_step: 100, every_steps: 1}");
  AverageProgress added = AverageProgress::beginning(swa, 400);
  EXPECT_FALSE(added.has_begun(400));
  EXPECT_EQ(added.next_weight(swa, 401), 0.5F);
  EXPECT_EQ(added.next_weight(swa, 402), static_cast<float>(1.0 / 3));
  AverageProgress old = AverageProgress::at(swa, 400);
  EXPECT_EQ(old.next_weight(swa, 401), static_cast<float>(1.0 / 302));
}

/// Updates stay at ends of epochs when the batch, and with it an epoch's steps, change in the middle of one.
TEST(AverageProgress, UpdatesLieAtEndsOfEpochsOfAnotherLength) {
  RunClock clock({.steps = 10, .samples = 100, .batch = 10});
  clock.change(35, 4, {.steps = 3, .samples = 50}, {.steps = 5, .samples = 100, .batch = 20});
  const AverageRule swa =
      average_options(parse_yaml("swa: {start_epoch: 2, every_epochs: 2}", "test"))->resolved(clock);
  EXPECT_EQ(swa.first, 20);
  AverageProgress progress{.first = 20, .updates = 0, .last = 20};
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 36; step <= 60; ++step)
    if (progress.next_weight(swa, step)) steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{38, 48, 58}));  // epochs 4, 6 and 8
}

TEST(AverageRule, MistakesAreNamed) {
  EXPECT_THAT(mistake("ema: {decay: 1}"), testing::HasSubstr("decay"));
  EXPECT_THAT(mistake("ema: {decay: 0.99999999999}"), testing::HasSubstr("1 when rounded to float32"));
  EXPECT_THAT(mistake("ema: {num_updates: true, zero_debias: true}"), testing::HasSubstr("both given"));
  EXPECT_THAT(mistake("swa"), testing::HasSubstr("neither start_epoch nor start_step"));
  EXPECT_THAT(mistake("swa: {start_epoch: 1, start_step: 2}"), testing::HasSubstr("both start_epoch"));
  EXPECT_THAT(mistake("swa: {start_epoch: 1, every_epochs: 1, every_steps: 2}"),
              testing::HasSubstr("both every_epochs"));
  EXPECT_THAT(mistake("swa: {start_epoch: 1, statistics: average, statistics_batches: 2}"),
              testing::HasSubstr("no effect with statistics: average"));
  EXPECT_THAT(mistake("ema: {statistics: true}"), testing::HasSubstr("statistics"));
  EXPECT_THAT(mistake("exponential"), testing::HasSubstr("unknown average 'exponential'"));
  EXPECT_FALSE(average_options(parse_yaml("null", "test")).has_value());
}

/// Two variables, a moving statistic and a frozen variable on the CPU with two threads.
class MovingAverageTest : public testing::Test {
 protected:
  MovingAverageTest() {
    for (const char* name : {"a", "b"})
      ids_.push_back(variables_.declare(name, Shape{40}, make_initializer("ones")));
    ids_.push_back(variables_.declare("mean", Shape{3}, make_initializer("zeros"), false));
    variables_.commit(cpu_device());
    variables_.initialize(1);
  }
  MovingAverage average(const std::string& text) {
    return {rule(text), UpdateContext{variables_, cpu_kernels(), cpu_device(), pool_, lanes_}};
  }
  void set(int variable, float value) {
    const Tensor tensor = variables_.tensor(ids_[static_cast<std::size_t>(variable)]);
    std::fill_n(tensor.f32(), tensor.num_elements(), value);
  }
  float value(int variable) { return variables_.tensor(ids_[static_cast<std::size_t>(variable)]).f32()[2]; }
  float averaged(const MovingAverage& of, int variable) {
    return of.tensor(variables_[ids_[static_cast<std::size_t>(variable)]]).f32()[2];
  }

  VariableStore variables_;
  std::vector<VariableId> ids_;
  ThreadPool pool_{2};
  std::vector<Lane> lanes_{2};
};

TEST_F(MovingAverageTest, FollowsTheVariablesUntilItBegins) {
  MovingAverage ema = average("ema: {decay: 0.5, start_step: 3}");
  set(0, 7);
  ema.follow(3);
  EXPECT_EQ(averaged(ema, 0), 7);
  set(0, 9);
  ema.follow(4);  // it has begun
  EXPECT_EQ(averaged(ema, 0), 7);
  ema.update(lanes_[0], {0, variables_.trainable_elements()}, 0.5F);
  EXPECT_EQ(averaged(ema, 0), 8);
  EXPECT_EQ(value(0), 9);
}

TEST_F(MovingAverageTest, ExchangeTwiceRestoresBoth) {
  MovingAverage ema = average("ema: {decay: 0.5, statistics: average}");
  ema.follow(0);
  set(0, 5);
  set(1, 6);
  set(2, 2);
  ema.exchange();
  EXPECT_EQ(value(0), 1);
  EXPECT_EQ(value(2), 0);
  EXPECT_EQ(averaged(ema, 1), 6);
  EXPECT_EQ(averaged(ema, 2), 2);
  ema.exchange();
  EXPECT_EQ(value(0), 5);
  EXPECT_EQ(value(2), 2);
  EXPECT_EQ(averaged(ema, 1), 1);
}

TEST_F(MovingAverageTest, StatisticsStayUnlessTheyAreAveraged) {
  MovingAverage ema = average("ema: {decay: 0.5}");
  EXPECT_FALSE(ema.has(variables_[ids_[2]]));
  set(2, 4);
  ema.exchange();
  EXPECT_EQ(value(2), 4);
  EXPECT_TRUE(average("swa: {start_step: 0}").has(variables_[ids_[2]]));
}

TEST_F(MovingAverageTest, StatisticsThatAreComputedAnewDoNotFollow) {
  MovingAverage averages = average("ema: {decay: 0.5, statistics: average}"),
                recomputes = average("swa: {start_step: 0}");
  for (MovingAverage* one : {&averages, &recomputes}) one->follow(0);
  set(2, 4);
  for (MovingAverage* one : {&averages, &recomputes}) one->update_statistics(lanes_[0], 0.5F);
  EXPECT_EQ(averaged(averages, 2), 2);
  EXPECT_EQ(averaged(recomputes, 2), 0);
}

TEST_F(MovingAverageTest, AnyCutHasTheSameBits) {
  MovingAverage whole = average("ema: {decay: 0.9}"), parts = average("ema: {decay: 0.9}");
  const std::span<float> values = variables_.trainable_values();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  for (MovingAverage* one : {&whole, &parts}) one->follow(0);
  for (float& value : values) value = value * 1.7F + 0.1F;
  const std::int64_t count = variables_.trainable_elements();
  whole.update(lanes_[0], {0, count}, 0.1F);
  for (std::int64_t first = 0; first < count; first += 7)
    parts.update(lanes_[0], {first, std::min(first + 7, count)}, 0.1F);
  for (int variable : {0, 1}) {
    const Variable& of = variables_[ids_[static_cast<std::size_t>(variable)]];
    for (int i = 0; i < 40; ++i) EXPECT_EQ(whole.tensor(of).f32()[i], parts.tensor(of).f32()[i]);
  }
}

}  // namespace
}  // namespace lockstep
