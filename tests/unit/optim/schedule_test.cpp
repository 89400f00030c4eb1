// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule.h"

#include <gtest/gtest.h>

#include "driver/config/yaml_node.h"

namespace lockstep {
namespace {

std::unique_ptr<Schedule> schedule(const std::string& yaml) {
  return make_schedule(parse_yaml(yaml, "test"));
}

TEST(Schedule, ANumberIsConstant) {
  for (const char* yaml : {"0.25", "constant: {value: 0.25}"})
    for (std::int64_t step : {0, 1, 1000000}) EXPECT_EQ(schedule(yaml)->rate(step), 0.25);
}

TEST(Schedule, ExponentialDecayIsSmooth) {
  const auto decay = schedule("exponential_decay: {initial: 0.8, decay_steps: 10, decay_rate: 0.25}");
  EXPECT_DOUBLE_EQ(decay->rate(0), 0.8);
  EXPECT_DOUBLE_EQ(decay->rate(5), 0.4);
  EXPECT_DOUBLE_EQ(decay->rate(10), 0.2);
  EXPECT_DOUBLE_EQ(decay->rate(15), 0.1);
  EXPECT_DOUBLE_EQ(decay->rate(20), 0.05);
}

TEST(Schedule, StaircaseJumpsAtMultiplesOfDecaySteps) {
  const auto decay =
      schedule("exponential_decay: {initial: 0.8, decay_steps: 10, decay_rate: 0.25, staircase: true}");
  for (std::int64_t step = 0; step < 10; ++step) EXPECT_DOUBLE_EQ(decay->rate(step), 0.8);
  for (std::int64_t step = 10; step < 20; ++step) EXPECT_DOUBLE_EQ(decay->rate(step), 0.2);
  EXPECT_DOUBLE_EQ(decay->rate(20), 0.05);
}

TEST(Schedule, BadOptionsAreErrors) {
  for (const char* yaml :
       {"0", "-0.1", "fast", "exponential_decy: {initial: 1}",
        "exponential_decay: {initial: 1, decay_steps: 10}",
        "exponential_decay: {initial: 1, decay_steps: 0, decay_rate: 0.5}", "constant: {value: 0}"})
    EXPECT_THROW(schedule(yaml), Error) << yaml;
}

}  // namespace
}  // namespace lockstep
