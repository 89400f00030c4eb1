// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What all schedules have in common: units, warm-up, scaling with the batch, ranges, registration.
#include "optim/scheduled_number.h"

#include <gmock/gmock.h>

#include "config/yaml_node.h"
#include "kernels/kernel_table.h"
#include "kernels/lane.h"
#include "optim/optimizer.h"
#include "optim/optimizer_options.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

const ScheduleRun kRun = {.steps = 40, .clock = RunClock({.steps = 8, .samples = 60, .batch = 8}), .seed = 5};

ScheduledNumber begun(const std::string& yaml, const OptionRange& range = kRateRange,
                      const ScheduleRun& run = kRun) {
  ScheduledNumber number(parse_yaml(yaml, "test"), "learning_rate", range);
  number.begin(run);
  return number;
}

TEST(ScheduledNumber, Units) {
  const auto epochs = begun("step_decay: {initial: 8, decay_rate: 0.5, boundaries: [1, 2.5], unit: epochs}");
  EXPECT_EQ(epochs.at(7), 8);
  EXPECT_EQ(epochs.at(8), 4);
  EXPECT_EQ(epochs.at(19), 4);
  EXPECT_EQ(epochs.at(20), 2);
  // The last batch of an epoch has 4 samples: step 8 comes after 60, step 9 after 68.
  const auto samples =
      begun("step_decay: {initial: 8, decay_rate: 0.5, boundaries: [56, 57, 60, 68], unit: samples}");
  EXPECT_EQ(samples.at(6), 8);
  EXPECT_EQ(samples.at(7), 4);
  EXPECT_EQ(samples.at(8), 1);
  EXPECT_EQ(samples.at(9), 0.5);
}

TEST(ScheduledNumber, WarmUpPrecedesTheSchedule) {
  const auto linear =
      begun("polynomial_decay: {initial: 1, last: 0, decay_steps: 10, warmup: {linear: {steps: 4}}}");
  EXPECT_EQ(linear.warmup_steps(), 4);
  for (std::int64_t step = 0; step < 4; ++step)
    EXPECT_DOUBLE_EQ(linear.at(step), 0.25 * static_cast<double>(step));
  EXPECT_EQ(linear.at(4), 1);
  EXPECT_DOUBLE_EQ(linear.at(9), 0.5);
  EXPECT_EQ(linear.at(14), 0);

  const auto over = begun(
      "polynomial_decay: {initial: 1, last: 0, decay_steps: 10, "
      "warmup: {linear: {steps: 4, start_factor: 0.5, overlap: true}}}");
  EXPECT_DOUBLE_EQ(over.at(0), 0.5);
  EXPECT_DOUBLE_EQ(over.at(2), 0.8 * 0.75);
  EXPECT_DOUBLE_EQ(over.at(4), 0.6);
  EXPECT_EQ(over.at(10), 0);
}

/// The same as with the length of the run, or of what is left of it after the warm-up.
TEST(ScheduledNumber, ADecayWithoutALengthLastsUntilTheEndOfTheRun) {
  const auto expect_same = [](const std::string& name, const std::string& options, const std::string& length,
                              const ScheduleRun& run) {
    const auto open = begun(name + ": {" + options + "}", kRateRange, run),
               given = begun(name + ": {" + options + ", " + length + "}", kRateRange, run);
    for (std::int64_t step = 0; step < run.steps; ++step) EXPECT_EQ(open.at(step), given.at(step)) << name;
  };
  ScheduleRun longer = kRun;
  longer.steps = 80;
  for (const char* const name :
       {"cosine_decay", "polynomial_decay", "linear_cosine_decay", "noisy_linear_cosine_decay"}) {
    expect_same(name, "initial: 0.8", "decay_steps: 40", kRun);
    expect_same(name, "initial: 0.8", "decay_steps: 80", longer);
    expect_same(name, "initial: 0.8, unit: epochs", "decay_steps: 5", kRun);
    expect_same(name, "initial: 0.8, unit: samples", "decay_steps: 300", kRun);
    expect_same(name, "initial: 0.8, warmup: {linear: {steps: 4}}", "decay_steps: 36", kRun);
    expect_same(name, "initial: 0.8, warmup: {linear: {steps: 4, overlap: true}}", "decay_steps: 40", kRun);
    expect_same(name, "initial: 0.8, unit: epochs, warmup: {linear: {steps: 1}}", "decay_steps: 4", kRun);
    const auto all_warm_up = begun(std::string(name) + ": {initial: 0.8, warmup: {linear: {steps: 50}}}");
    EXPECT_GT(all_warm_up.at(39), all_warm_up.at(38)) << name;
  }
  expect_same("polynomial_decay", "initial: 0.8, power: 2, cycle: true", "decay_steps: 40", kRun);
  expect_same("one_cycle", "peak: 0.8", "total_steps: 40", kRun);
  expect_same("one_cycle", "peak: 0.8, unit: epochs, three_phases: true", "total_steps: 5", kRun);
  EXPECT_NEAR(begun("cosine_decay: {initial: 0.8}").at(20), 0.4, 1e-15);
  EXPECT_THAT(message_of([] { (void)begun("one_cycle: {peak: 0.8}", kRateRange, {.steps = 2}); }),
              HasSubstr("a cycle of 2 steps, until the end of the run, has no room"));
}

TEST(ScheduledNumber, ShapesOfWarmUps) {
  const auto exponential =
      begun("constant: {value: 0.5, warmup: {exponential: {steps: 4, start_factor: 0.0001}}}");
  EXPECT_DOUBLE_EQ(exponential.at(0), 0.5e-4);
  EXPECT_DOUBLE_EQ(exponential.at(2), 0.5e-2);
  EXPECT_EQ(exponential.at(4), 0.5);
  const auto constant = begun("constant: {value: 0.5, warmup: {constant: {steps: 3}}}");
  EXPECT_DOUBLE_EQ(constant.at(2), 0.05);
  EXPECT_EQ(constant.at(3), 0.5);
}

TEST(ScheduledNumber, WarmUpInItsOwnUnit) {
  const auto number = begun(
      "step_decay: {initial: 1, boundaries: [1], unit: epochs, "
      "warmup: {linear: {steps: 10, unit: samples}}}");
  EXPECT_EQ(number.warmup_steps(), 2);  // 16 samples come before step 2
  EXPECT_DOUBLE_EQ(number.at(1), 0.8);
  EXPECT_EQ(number.at(2), 1);
  EXPECT_EQ(number.at(9), 1);
  EXPECT_DOUBLE_EQ(number.at(10), 0.1);  // an epoch after the warm-up
  EXPECT_EQ(begun("constant: {value: 1, unit: epochs, warmup: {constant: {steps: 1.5}}}").warmup_steps(), 12);
}

TEST(ScheduledNumber, ScalesWithTheBatch) {
  EXPECT_EQ(begun("constant: {value: 0.5, scaling: linear, base_batch: 2}").at(0), 2);
  EXPECT_EQ(begun("constant: {value: 0.5, scaling: square_root, base_batch: 2}").at(0), 1);
  EXPECT_EQ(begun("constant: {value: 0.5}").at(0), 0.5);
  EXPECT_EQ(
      begun("constant: {value: 0.5, scaling: linear, base_batch: 2, warmup: {linear: {steps: 4}}}").at(2), 1);
}

/// A schedule may end at 0, where a plain learning rate may not be 0.
TEST(ScheduledNumber, ValuesStayInTheRange) {
  EXPECT_EQ(begun("polynomial_decay: {initial: 1, last: 0, decay_steps: 10}").at(30), 0);
  const auto message = [](const char* yaml, const OptionRange& range, std::int64_t steps) {
    ScheduleRun run = kRun;
    run.steps = steps;
    return message_of([&] { begun(yaml, range, run); }, ErrorKind::config);
  };
  const char* const growing = "exponential_decay: {initial: 0.5, decay_steps: 10, decay_rate: 2}";
  EXPECT_EQ(begun(growing, kShareRange, {.steps = 10}).at(9), 0.5 * std::pow(2, 0.9));
  EXPECT_THAT(message(growing, kShareRange, 11),
              HasSubstr("must be [0, 1), but schedule exponential_decay gives 1 at step 10"));
  EXPECT_THAT(message(growing, kRateRange, 1000000), HasSubstr("at step 1007"));
  EXPECT_THAT(message("constant: {value: 0.9, scaling: linear, base_batch: 4}", kShareRange, 9),
              HasSubstr("gives 1.8"));
}

TEST(ScheduledNumber, OptionsOfRulesFollowSchedules) {
  const auto optimizer =
      optimizer_options(
          parse_yaml("momentum: {learning_rate: 0.1, momentum: {one_cycle: {peak: 0.85, initial: 0.95, "
                     "last: 0.95, total_steps: 40}}}",
                     "test"))
          .make();
  ASSERT_EQ(optimizer->numbers().size(), 3U);  // weight_decay is one too
  ScheduledNumber& momentum = *optimizer->numbers()[2];
  momentum.begin(kRun);
  EXPECT_EQ(momentum.option(), "momentum");
  EXPECT_EQ(momentum.schedule(), "one_cycle");
  EXPECT_EQ(momentum.at(0), 0.95);
  EXPECT_NEAR(momentum.at(11), 0.85, 1e-15);
}

/// w after two steps with a gradient of 1, from 1.
float moved(const char* yaml) {
  const auto rule = optimizer_options(parse_yaml(yaml, "test")).make();
  for (ScheduledNumber* const number : rule->numbers()) number->begin(kRun);
  VariableStore variables;
  variables.declare("w", Shape{1}, make_initializer("ones"));
  variables.commit(cpu_device());
  variables.initialize(1);
  rule->create_slots(cpu_device(), variables);
  for (const std::int64_t step : {0, 1}) {
    const float gradient[16] = {1};
    rule->begin_step(step);
    rule->update(cpu_kernels(), Lane{}, variables, gradient, {0, 1});
  }
  return variables.trainable_values()[0];
}

TEST(ScheduledNumber, EachStepHasItsValue) {
  EXPECT_EQ(moved("momentum: {learning_rate: 0.5, momentum: {piecewise_constant: {boundaries: [0], values: "
                  "[0, 0.5]}}}"),
            1 - 0.5F - 0.5F * 1.5F);
  EXPECT_EQ(
      moved("gradient_descent: {learning_rate: 0.5, weight_decay: {piecewise_constant: {boundaries: [0], "
            "values: [0, 0.5]}}}"),
      1 - 0.5F - 0.5F * (1 + 0.5F * 0.5F));
}

TEST(ScheduledNumber, AnOptionThatTakesNoSchedule) {
  const auto message = message_of(
      [] {
        optimizer_options(
            parse_yaml("adam: {epsilon: {cosine_decay: {initial: 1, decay_steps: 9}}}", "test"));
      },
      ErrorKind::config);
  EXPECT_THAT(message, HasSubstr("optimizer adam, epsilon: must be a finite number, but is a map"));
  EXPECT_THAT(message, HasSubstr("This option takes no schedule."));
}

class Halving final : public Schedule {
 public:
  explicit Halving(const Params& p) : value_(p.real("value")) {}
  double at(double time) const override { return value_ / (1 + time); }

 private:
  double value_;
};

TEST(ScheduledNumber, UsersRegisterTheirOwn) {
  static constexpr ParamSpec kTable[] = {{"value", ParamType::real, kRequired, above(0), "value at time 0"}};
  const auto make = [](const Params& p) -> std::unique_ptr<Schedule> { return std::make_unique<Halving>(p); };
  schedule_table().add({"halving", "value / (1 + time)", kTable, make});
  EXPECT_EQ(begun("halving: {value: 1, unit: epochs, warmup: {linear: {steps: 1}}}").at(16), 0.5);
  EXPECT_THAT(message_of(
                  [&] {
                    schedule_table().add({"cosine_decay", "", kTable, make});
                  },
                  ErrorKind::config),
              HasSubstr("a schedule named 'cosine_decay' exists already"));
}

}  // namespace
}  // namespace lockstep
