// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Formulas of schedules: against the values of tests/reference/schedules.json (made by schedules.py next to
// it), and at their edges.
#include "optim/schedule.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "config/yaml_node.h"
#include "optim/scheduled_number.h"
#include "support/error_support.h"
#include "support/test_folders.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using Json = nlohmann::json;

ScheduledNumber schedule(const std::string& yaml) {
  return {parse_yaml(yaml, "test"), "learning_rate", kRateRange};
}
std::vector<double> values(const std::string& yaml, std::vector<std::int64_t> steps) {
  const ScheduledNumber number = schedule(yaml);
  std::vector<double> all;
  for (const std::int64_t step : steps) all.push_back(number.at(step));
  return all;
}
Json reference() {
  std::ifstream file(test_reference("schedules.json"));
  return Json::parse(file);
}

/// Formulas are computed in double: the distance to a float32 result is that result's rounding.
TEST(Schedule, MatchesTheReference) {
  const Json all = reference();
  ASSERT_GE(all["cases"].size(), 25U);
  for (const Json& entry : all["cases"]) {
    const std::string yaml = entry["yaml"];
    const ScheduledNumber number = schedule(yaml);
    const double tolerance = entry["source"] == "PyTorch 1.13" ? 1e-15 : 1e-7;  // of rates up to 0.1
    for (std::size_t i = 0; i < entry["steps"].size(); ++i) {
      const double found = number.at(entry["steps"][i]), expected = entry["values"][i];
      EXPECT_TRUE(std::abs(found - expected) <= tolerance + 1e-6 * (tolerance > 1e-8) * std::abs(expected))
          << yaml << " at " << entry["steps"][i] << ": " << found << ", not " << expected;
    }
  }
}

TEST(Schedule, EveryScheduleHasReferenceValues) {
  const Json all = reference();
  for (const ScheduleEntry& entry : schedule_table()) {
    bool found = false;
    for (const char* list : {"cases", "plateaus"})
      for (const Json& known : all[list])
        found = found || known["yaml"].get<std::string>().starts_with(std::string(entry.name) + ":");
    EXPECT_TRUE(found) << entry.name;
  }
}

TEST(Schedule, ANumberIsConstant) {
  for (const char* yaml : {"0.25", "constant: {value: 0.25}"})
    for (const double value : values(yaml, {0, 1, 1000000})) EXPECT_EQ(value, 0.25);
}

TEST(Schedule, StaircaseJumpsAtMultiplesOfDecaySteps) {
  const auto decay =
      schedule("exponential_decay: {initial: 0.8, decay_steps: 10, decay_rate: 0.25, staircase: true}");
  for (std::int64_t step = 0; step < 10; ++step) EXPECT_DOUBLE_EQ(decay.at(step), 0.8);
  for (std::int64_t step = 10; step < 20; ++step) EXPECT_DOUBLE_EQ(decay.at(step), 0.2);
  EXPECT_DOUBLE_EQ(decay.at(20), 0.05);
}

/// A boundary belongs to the value before it, as in TensorFlow, or to that after it, as in PyTorch.
TEST(Schedule, Boundaries) {
  EXPECT_EQ(values("piecewise_constant: {boundaries: [10, 20], values: [3, 2, 1]}", {0, 10, 11, 20, 21, 900}),
            (std::vector<double>{3, 3, 2, 2, 1, 1}));
  EXPECT_EQ(
      values("step_decay: {initial: 8, decay_rate: 0.5, boundaries: [10, 20]}", {0, 9, 10, 19, 20, 900}),
      (std::vector<double>{8, 8, 4, 4, 2, 2}));
  EXPECT_EQ(values("step_decay: {initial: 8, decay_rate: 0.5, decay_steps: 10}", {0, 9, 10, 20, 30}),
            (std::vector<double>{8, 8, 4, 2, 1}));
}

TEST(Schedule, PolynomialCyclesEndAtTheLastValue) {
  const auto cycle = schedule("polynomial_decay: {initial: 0.1, decay_steps: 100, cycle: true}");
  for (const std::int64_t multiple : {100, 200, 700}) {
    EXPECT_NEAR(cycle.at(multiple), 0.0001, 1e-15) << multiple;
    EXPECT_GT(cycle.at(multiple + 1), cycle.at(multiple)) << multiple;
  }
  EXPECT_NEAR(cycle.at(150), 0.025075, 1e-15);
  EXPECT_EQ(cycle.at(0), 0.1);
}

/// The logarithm of the formula misses some beginnings by a rounding: 3^5 / 3.
TEST(Schedule, RestartsBeginAtTheirBoundaries) {
  for (const char* t_mul : {"1", "1.5", "2", "3", "10"}) {
    const auto restarts = schedule(
        fmt::format("cosine_restarts: {{initial: 1, first_decay_steps: 64, t_mul: {}, m_mul: 0.5}}", t_mul));
    double begin = 0, period = 64, most = 1;
    for (int i = 0; i < 6; ++i) {
      EXPECT_NEAR(restarts.at(static_cast<std::int64_t>(begin)), most, 1e-3 * most) << t_mul << " " << i;
      if (i > 0) {
        EXPECT_LT(restarts.at(static_cast<std::int64_t>(std::ceil(begin)) - 1), 0.1 * most) << t_mul;
      }
      begin += period;
      period *= std::stod(t_mul);
      most *= 0.5;
    }
  }
}

TEST(Schedule, BeyondItsEndItStays) {
  for (const char* yaml :
       {"cosine_decay: {initial: 0.1, decay_steps: 10, alpha: 0.5}",
        "polynomial_decay: {initial: 0.1, decay_steps: 10}",
        "linear_cosine_decay: {initial: 0.1, decay_steps: 10}", "one_cycle: {peak: 0.1, total_steps: 10}"})
    EXPECT_EQ(schedule(yaml).at(10), schedule(yaml).at(1000000000000)) << yaml;
}

ScheduledNumber noisy(std::uint64_t seed, const std::string& option, std::string_view more = "") {
  ScheduledNumber number(
      parse_yaml(fmt::format("noisy_linear_cosine_decay: {{initial: 1, decay_steps: 100000{}}}", more),
                 "test"),
      option, at_least(0));
  number.begin({.steps = 10, .clock = RunClock({.steps = 5, .samples = 5, .batch = 1}), .seed = seed});
  return number;
}

TEST(Schedule, NoiseDependsOnSeedAndOption) {
  const auto a = noisy(1, "learning_rate"), again = noisy(1, "learning_rate"),
             seed = noisy(2, "learning_rate"), option = noisy(1, "momentum");
  int differ_seed = 0, differ_option = 0;
  for (std::int64_t step = 99; step >= 0; --step) {
    EXPECT_EQ(a.at(step), again.at(step));
    EXPECT_GE(a.at(step), 0);
    differ_seed += a.at(step) != seed.at(step);
    differ_option += a.at(step) != option.at(step);
  }
  EXPECT_GT(differ_seed, 70);
  EXPECT_GT(differ_option, 70);
}

TEST(Schedule, NoiseHasItsVariance) {
  const auto number = noisy(3, "learning_rate", ", initial_variance: 0.01, variance_decay: 0");
  const auto plain = schedule("linear_cosine_decay: {initial: 1, decay_steps: 100000}");
  double sum = 0, squares = 0;
  constexpr int kSteps = 4000;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const double noise = number.at(step) - plain.at(step);
    sum += noise;
    squares += noise * noise;
  }
  EXPECT_NEAR(sum / kSteps, 0, 0.006);
  EXPECT_NEAR(std::sqrt(squares / kSteps), 0.1, 0.005);
}

TEST(Schedule, PlateauMatchesTheReference) {
  for (const Json& entry : reference()["plateaus"]) {
    const std::string yaml = entry["yaml"];
    ScheduledNumber number = schedule(yaml);
    ASSERT_NE(number.follower(), nullptr);
    double before = number.at(0);
    int falls = 0;
    for (std::size_t i = 0; i < entry["metric"].size(); ++i) {
      const bool told = number.follower()->observe(entry["metric"][i]).has_value();
      const double now = number.at(static_cast<std::int64_t>(i)), expected = entry["values"][i];
      EXPECT_NEAR(now, expected, 1e-15) << yaml << " after " << i + 1;
      EXPECT_EQ(told, now != before) << yaml << " after " << i + 1;
      falls += told;
      before = now;
    }
    EXPECT_GT(falls, 0) << yaml;
  }
}

TEST(Schedule, PlateauContinuesFromItsState) {
  const char* const yaml = "reduce_on_plateau: {initial: 0.1, patience: 1, cooldown: 1}";
  ScheduledNumber whole = schedule(yaml), first = schedule(yaml), second = schedule(yaml);
  const std::vector<double> losses = {3, 2, 2, 2.5, 2.5, std::nan(""), 2, 1, 1, 1, 1, 1};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    whole.follower()->observe(losses[i]);
    if (i == 4) {
      EXPECT_NE(first.at(0), second.at(0));
      std::ranges::copy(first.follower()->state(), second.follower()->state().begin());
    }
    (i < 4 ? first : second).follower()->observe(losses[i]);
  }
  EXPECT_LT(whole.at(0), 0.01);
  EXPECT_EQ(whole.at(0), second.at(0));
}

TEST(Schedule, BadOptionsAreErrors) {
  const std::pair<const char*, const char*> all[] = {
      {"0", "must be (0, 1e30]"},
      {"-0.1", "must be (0, 1e30]"},
      {".nan", "must be a finite number"},
      {"'0.1'", "Remove the quotes"},
      {"10%", "Write 0.1"},
      {"fast", "unknown schedule 'fast'"},
      {"exponential_decy: {initial: 1}", "exponential_decay"},
      {"exponential_decay: {initial: 1, decay_steps: 10}", "needs 'decay_rate'"},
      {"exponential_decay: {initial: 1, decay_steps: 0, decay_rate: 0.5}",
       "decay_steps: must be (0, 1e15], but is 0"},
      {"cosine_decay: {initial: 1, decay_steps: -3}", "decay_steps"},
      {"cosine_restarts: {initial: 1, first_decay_steps: 9, t_mul: 0.5}", "t_mul: must be [1, 1e6]"},
      {"constant: {value: 0}", "must be (0, 1e30]"},
      {"piecewise_constant: {boundaries: [5], values: [1, 2, 3]}", "there are 3 values for 1 boundaries"},
      {"piecewise_constant: {boundaries: [5, 5], values: [1, 2, 3]}", "5 does not come after 5"},
      {"step_decay: {initial: 1}", "exactly one of decay_steps and boundaries"},
      {"step_decay: {initial: 1, decay_steps: 3, boundaries: [4]}",
       "exactly one of decay_steps and boundaries"},
      {"step_decay: {initial: 1, boundaries: [4, 3]}", "3 does not come after 4"},
      {"one_cycle: {peak: 1, total_steps: 2}", "no room for a rise"},
      {"one_cycle: {peak: 1, total_steps: 100, share_up: 0.6, three_phases: true}", "below 0.5"},
      {"reduce_on_plateau: {initial: 1, last: 2}", "above initial"},
      {"cosine_decay: {initial: 1, decay_steps: 9, unit: hours}", "steps, epochs, samples"},
      {"cosine_decay: {initial: 1, decay_steps: 9, scaling: linear}", "base_batch is missing"},
      {"cosine_decay: {initial: 1, decay_steps: 9, base_batch: 8}", "no effect without scaling"},
      {"cosine_decay: {initial: 1, decay_steps: 9, warmup: 5}", "warm-up"},
      {"cosine_decay: {initial: 1, decay_steps: 9, warmup: {liner: {steps: 5}}}", "Did you mean 'linear'"},
      {"cosine_decay: {initial: 1, decay_steps: 9, warmup: {linear: {steps: 0}}}",
       "steps: must be (0, 1e12]"},
  };
  for (const auto& [yaml, part] : all)
    EXPECT_THAT(message_of([&, yaml = yaml] { schedule(yaml); }, ErrorKind::config), HasSubstr(part)) << yaml;
}

}  // namespace
}  // namespace lockstep
