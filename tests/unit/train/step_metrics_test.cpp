// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Metrics by name: values that are set, values that are read when they are asked for, and what a trainer
// publishes.
#include "train/step_metrics.h"

#include <gmock/gmock.h>

#include "comm/self_communicator.h"
#include "support/tiny_run.h"
#include "train/step_numbers.h"

namespace lockstep {
namespace {

std::vector<std::string> names_of(const StepMetrics& metrics, StepMetrics::Use use) {
  std::vector<std::string> names;
  for (const StepMetrics::Metric& metric : metrics.metrics())
    if (metric.use == use) names.push_back(metric.name);
  return names;
}

TEST(StepMetrics, ValuesBySetAndByRead) {
  StepMetrics metrics;
  const StepMetrics::Id loss = metrics.add("loss");
  const std::vector<std::string> parts = {"a", "b"};
  const StepMetrics::Id first = metrics.add(parts);
  double norm = 3;
  const StepMetrics::Id read =
      metrics.add({.name = "norm", .read = [&] { return std::optional(norm); }, .may_wait = true});
  EXPECT_FALSE(metrics.value(loss).has_value()) << "no step yet";
  metrics.set(loss, 0.5);
  metrics.set(first + 1, 2);
  norm = 4;
  EXPECT_EQ(metrics.value("loss"), 0.5);
  EXPECT_EQ(metrics.value("b"), 2);
  EXPECT_FALSE(metrics.value("a").has_value());
  EXPECT_EQ(metrics.value(read), 4);
  EXPECT_TRUE(metrics.may_wait(read));
  EXPECT_EQ(metrics.find("c"), StepMetrics::kNone);
  EXPECT_FALSE(metrics.value("c").has_value());
  metrics.clear();
  EXPECT_FALSE(metrics.value(loss).has_value());
}

TEST(StepMetrics, RefusesANameTwice) {
  StepMetrics metrics;
  metrics.add("loss");
  try {
    metrics.add("loss");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bug);
  }
}

TEST(StepMetrics, TrainerPublishesItsStep) {
  SelfCommunicator self;
  TinyRun run(self, {.layers = "[flatten, dense: {units: 3}]",
                     .clip = {.by = ClipRule::By::global_norm, .limit = 0.01, .record_norm = true}});
  const StepMetrics& metrics = run.trainer().metrics();
  EXPECT_THAT(names_of(metrics, StepMetrics::Use::summary),
              testing::ElementsAre("loss", "accuracy", "learning_rate", "gradient_norm", "clipped"));
  EXPECT_FALSE(metrics.value("loss").has_value());
  EXPECT_FALSE(metrics.value("gradient_norm").has_value());
  const StepResult result = run.trainer().compute();
  EXPECT_EQ(metrics.value("loss"), result.loss);
  EXPECT_EQ(metrics.value("accuracy"), result.accuracy);
  EXPECT_EQ(metrics.value("learning_rate"), result.learning_rate);
  EXPECT_EQ(metrics.value("samples"), 16);
  EXPECT_GT(metrics.value("gradient_norm").value_or(0), 0.01);
  EXPECT_EQ(metrics.value("clipped"), 1) << "both variables";
  EXPECT_GE(metrics.value("communication_seconds").value_or(-1), 0);
  EXPECT_GT(metrics.value("input_seconds").value_or(-1), 0);
  run.trainer().apply(true);

  StepResult earlier;
  earlier.loss = 7;
  run.trainer().numbers().publish(earlier);
  EXPECT_EQ(metrics.value("loss"), 7) << "a step of an earlier job";
}

}  // namespace
}  // namespace lockstep
