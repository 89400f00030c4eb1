// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/young_averages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml_node.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> warnings(const std::string& layers, const RunLength& run,
                                  const std::string& average = "null") {
  const auto options = average_options(parse_yaml(average, "test"));
  std::optional<AverageRule> rule;
  if (options) rule = options->resolved(RunClock({.steps = 1, .samples = 1, .batch = 1}));
  Graph graph = graph_from_config(parse_yaml(layers, "test"), Shape{4});
  VariableStore variables;
  graph.finish(variables);
  return young_averages(graph, rule, run);
}

const std::string kSlow = "[dense: {units: 3}, batch_norm: {name: bn, momentum: 0.99}, dense: {units: 2}]";
const std::string kDefault = "[dense: {units: 3}, batch_norm: {name: bn}, dense: {units: 2}]";

TEST(YoungAverages, StatisticsThatAShortRunLeavesAtTheirInitialValuesAreNamed) {
  EXPECT_THAT(warnings(kSlow, {.steps = 150}),
              ElementsAre(AllOf(HasSubstr("bn: "), HasSubstr("22 %"), HasSubstr("momentum: 0.96"))));
  EXPECT_THAT(warnings(kSlow, {.steps = 1000}), IsEmpty());
  EXPECT_THAT(warnings(kSlow, {.steps = 150, .warm = true}), IsEmpty());
}

TEST(YoungAverages, TheDefaultSuitsSomeDozenSteps) {
  EXPECT_THAT(warnings(kDefault, {.steps = 50}), IsEmpty());
}

TEST(YoungAverages, TheAdviceEndsTheWarning) {
  EXPECT_THAT(
      warnings("[dense: {units: 3}, batch_norm: {momentum: 0.96}, dense: {units: 2}]", {.steps = 150}),
      IsEmpty());
  EXPECT_THAT(warnings(kDefault, {.steps = 150}, "{ema: {decay: 0.96}}"), IsEmpty());
  EXPECT_THAT(warnings(kDefault, {.steps = 150}, "{ema: {num_updates: true}}"), IsEmpty());
}

TEST(YoungAverages, FrozenStatisticsDoNotCount) {
  Graph graph = graph_from_config(parse_yaml(kSlow, "test"), Shape{4});
  VariableStore variables;
  graph.freeze({{NamePattern("bn"), "test"}});
  graph.finish(variables);
  EXPECT_THAT(young_averages(graph, {}, {.steps = 10}), IsEmpty());
}

TEST(YoungAverages, AnAverageOfTheVariablesThatStaysWithTheFirstOnesIsNamed) {
  EXPECT_THAT(warnings(kDefault, {.steps = 150}, "ema"),
              ElementsAre(AllOf(HasSubstr("average.ema"), HasSubstr("86 %"), HasSubstr("decay: 0.96"))));
  EXPECT_THAT(warnings(kDefault, {.steps = 150}, "{ema: {zero_debias: true}}"), IsEmpty());
  EXPECT_THAT(warnings(kDefault, {.steps = 150}, "{swa: {start_step: 100}}"), IsEmpty());
  EXPECT_THAT(warnings(kDefault, {.steps = 9000}, "ema"), IsEmpty());
}

TEST(YoungAverages, ManyLayersAreCut) {
  std::string layers = "[";
  for (int i = 0; i < 30; ++i) layers += "batch_norm: {momentum: 0.99}, ";
  layers += "dense: {units: 2}]";
  EXPECT_THAT(warnings(layers, {.steps = 10}),
              ElementsAre(AllOf(HasSubstr("and 20 more"), Not(HasSubstr("norm30")))));
}

}  // namespace
}  // namespace lockstep
