// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Steps of a trainer that clips: what the optimizer gets is what brute force makes of the summed gradients.
#include "optim/gradient_clip.h"

#include <gmock/gmock.h>

#include <cmath>

#include "comm/self_communicator.h"
#include "config/yaml_node.h"
#include "support/error_support.h"
#include "support/tiny_run.h"
#include "train/step_metrics.h"
#include "train/step_sums.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using By = ClipRule::By;

constexpr float kRate = 0.5F;
constexpr const char* kDense = "[flatten, dense: {units: 40}, relu, dense: {units: 3}]";
constexpr const char* kTable = "[embedding: {rows: 20000, units: 9}, flatten, dense: {units: 3}]";

TinyRunOptions options_of(const ClipRule& rule, bool sparse, int threads) {
  TinyRunOptions options{.layers = kDense, .optimizer = "gradient_descent: {learning_rate: 0.5}"};
  options.clip = rule;
  options.threads = threads;
  if (!sparse) return options;
  options.layers = kTable;
  options.features = {6};
  options.ids = 20000;  // not every block of the table is touched in every step
  return options;
}

/// The summed gradient of a variable, whichever its form.
std::vector<float> gradient_of(Trainer& trainer, const Variable& variable) {
  const auto count = static_cast<std::size_t>(variable.shape.num_elements());
  if (variable.sparse_index < 0) {
    const float* begin = trainer.sums().gradients() + variable.offset;
    return {begin, begin + count};
  }
  std::vector<float> values(count);
  const SparseRows& rows = trainer.sums().sparse()->total(variable.sparse_index);
  const std::int64_t width = variable.shape[1];
  for (std::int32_t k = 0; k < *rows.count; ++k)
    std::copy_n(rows.values + k * width, width, values.begin() + rows.rows[k] * width);
  return values;
}

double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

/// By the rules' own words; how many variables are clipped.
int clip(const ClipRule& rule, std::vector<std::vector<float>>& gradients, double& norm) {
  double squares = 0;
  for (const auto& gradient : gradients) squares += norm_of(gradient) * norm_of(gradient);
  norm = std::sqrt(squares);
  int clipped = 0;
  for (auto& gradient : gradients) {
    const double of = rule.by == By::global_norm ? norm : norm_of(gradient);
    const double n = static_cast<double>(gradient.size());
    double factor = rule.limit / std::max(of, rule.limit);
    if (rule.by == By::average_norm) factor = rule.limit * std::min(n / of, 1 / rule.limit);
    clipped += factor < 1 ? 1 : 0;
    for (float& value : gradient)
      value = rule.by == By::value ? std::max(std::min(value, rule.high), rule.low)
                                   : static_cast<float>(factor * static_cast<double>(value));
  }
  return clipped;
}

void expect_steps_of(const ClipRule& rule, bool sparse, int threads, bool expect_clipping) {
  SelfCommunicator self;
  TinyRun run(self, options_of(rule, sparse, threads));
  Trainer& trainer = run.trainer();
  const StepMetrics& metrics = trainer.metrics();
  EXPECT_EQ(metrics.find("gradient_norm") != StepMetrics::kNone, rule.measures());
  EXPECT_EQ(metrics.find("clipped") != StepMetrics::kNone, rule.clips_norm());
  EXPECT_FALSE(metrics.value("gradient_norm").has_value()) << "before the first step";
  const std::span<const Variable> variables = run.variables().variables();
  ASSERT_EQ(run.variables().sparse().size(), sparse ? 1U : 0U);
  bool clipped_once = false;
  for (int step = 0; step < 3; ++step) {
    trainer.compute();
    std::vector<std::vector<float>> gradients, before;
    for (std::size_t id = 0; id < variables.size(); ++id) {
      gradients.push_back(gradient_of(trainer, variables[id]));
      const float* values = run.variables().value(static_cast<VariableId>(id));
      before.emplace_back(values, values + variables[id].shape.num_elements());
    }
    const auto unclipped = gradients;
    double norm = 0;
    const int clipped = clip(rule, gradients, norm);
    trainer.apply(true);
    if (rule.measures()) {
      EXPECT_NEAR(metrics.value("gradient_norm").value(), norm, 1e-12 * norm);
      if (rule.clips_norm()) {
        EXPECT_EQ(metrics.value("clipped"),
                  static_cast<double>(clipped) / static_cast<double>(variables.size()));
      }
    }
    for (std::size_t id = 0; id < variables.size(); ++id)
      for (std::size_t i = 0; i < before[id].size(); ++i) {
        const float after = run.variables().value(static_cast<VariableId>(id))[i];
        const float expected = before[id][i] - kRate * gradients[id][i];
        // The factor's last bit is that of a sum in another order.
        ASSERT_LE(std::abs(after - expected),
                  0x1p-22F * (std::abs(before[id][i]) + std::abs(gradients[id][i])))
            << variables[id].name << " " << i << ": " << unclipped[id][i] << " clipped to "
            << gradients[id][i];
        clipped_once = clipped_once || gradients[id][i] != unclipped[id][i];
      }
  }
  EXPECT_EQ(clipped_once, expect_clipping);
}

TEST(GradientClip, TheOptimizerGetsWhatTheRulesSay) {
  for (const bool sparse : {false, true})
    for (const int threads : {1, 3}) {
      expect_steps_of({.by = By::global_norm, .limit = 0.1}, sparse, threads, true);
      expect_steps_of({.by = By::global_norm, .limit = 1e6}, sparse, threads, false);
      expect_steps_of({.by = By::norm, .limit = 0.05}, sparse, threads, true);
      expect_steps_of({.by = By::average_norm, .limit = 1e-3}, sparse, threads, true);
      expect_steps_of({.by = By::value, .low = -0.01F, .high = 0.02F}, sparse, threads, true);
      expect_steps_of({.by = By::value, .low = -0.01F, .high = 0.02F, .record_norm = true}, sparse, threads,
                      true);
    }
}

TEST(GradientClip, ThreadsChangeNoBitAndNeitherDoesLooking) {
  for (const bool sparse : {false, true})
    for (const ClipRule& rule :
         {ClipRule{}, ClipRule{.record_norm = true}, ClipRule{.by = By::global_norm, .limit = 0.1},
          ClipRule{.by = By::norm, .limit = 0.05}, ClipRule{.by = By::average_norm, .limit = 1e-3},
          ClipRule{.by = By::value, .low = -0.01F, .high = 0.02F}}) {
      SelfCommunicator self;
      TinyRun one(self, options_of(rule, sparse, 1)), three(self, options_of(rule, sparse, 3)),
          plain(self, options_of({}, sparse, 1));
      EXPECT_EQ(plain.trainer().metrics().find("gradient_norm"), StepMetrics::kNone);
      for (int i = 0; i < 5; ++i) {
        one.trainer().minimize();
        three.trainer().minimize();
        plain.trainer().minimize();
        if (!rule.measures()) continue;
        EXPECT_EQ(one.trainer().metrics().value("gradient_norm").value(),
                  three.trainer().metrics().value("gradient_norm").value());
      }
      EXPECT_EQ(one.variables().hash(), three.variables().hash());
      EXPECT_EQ(one.variables().hash() == plain.variables().hash(), !rule.clips());
    }
}

TEST(GradientClip, AnUpdateThatIsLeftOutLeavesTheGradientsAlone) {
  SelfCommunicator self;
  TinyRun run(self, options_of({.by = By::global_norm, .limit = 0.1}, false, 1));
  run.trainer().compute();
  const std::int64_t count = run.variables().dense_elements();
  const std::vector<float> before(run.trainer().sums().gradients(), run.trainer().sums().gradients() + count);
  const std::uint64_t hash = run.variables().hash();
  run.trainer().apply(false);
  EXPECT_EQ(std::memcmp(before.data(), run.trainer().sums().gradients(), before.size() * sizeof(float)), 0);
  EXPECT_EQ(run.variables().hash(), hash);
}

ClipRule rule_of(const std::string& yaml) {
  return clip_rule(Params(parse_yaml(yaml, "test.yaml"), clip_table(), "section gradients"));
}

TEST(GradientClip, ReadsItsRule) {
  EXPECT_FALSE(rule_of("").clips());
  EXPECT_FALSE(rule_of("").measures());
  EXPECT_TRUE(rule_of("{record_norm: true}").measures());
  const ClipRule global = rule_of("{clip_global_norm: 2.5}");
  EXPECT_EQ(global.by, By::global_norm);
  EXPECT_EQ(global.limit, 2.5);
  EXPECT_TRUE(global.measures());
  EXPECT_EQ(rule_of("{clip_norm: 1}").by, By::norm);
  EXPECT_EQ(rule_of("{clip_average_norm: 1e-4}").by, By::average_norm);
  const ClipRule value = rule_of("{clip_value: 0.25}");
  EXPECT_EQ(value.by, By::value);
  EXPECT_FALSE(value.measures());
  EXPECT_EQ(value.low, -0.25F);
  EXPECT_EQ(value.high, 0.25F);
  const ClipRule range = rule_of("{clip_value: [-1, 0]}");
  EXPECT_EQ(range.low, -1.0F);
  EXPECT_EQ(range.high, 0.0F);
}

TEST(GradientClip, MistakesAreNamedWithTheirPlace) {
  const auto error_of = [](const std::string& gradients) {
    return testing::message_of([&] { rule_of("{" + gradients + "}"); });
  };
  EXPECT_THAT(error_of("clip_norm: 1, clip_value: 2"), HasSubstr("test.yaml:1:"));
  EXPECT_THAT(error_of("clip_norm: 1, clip_value: 2"), HasSubstr("clip_value: clip_norm is given, too"));
  EXPECT_THAT(error_of("clip_global_norm: 0"), HasSubstr("clip_global_norm"));
  EXPECT_THAT(error_of("clip_global_norm: -1"), HasSubstr("must be (0, 1e30]"));
  EXPECT_THAT(error_of("clip_global_norm: .inf"), HasSubstr("finite"));
  EXPECT_THAT(error_of("clip_global_norm: .nan"), HasSubstr("clip_global_norm"));
  EXPECT_THAT(error_of("clip_average_norm: much"), HasSubstr("number"));
  EXPECT_THAT(error_of("clip_value: 0"), HasSubstr("no range around 0"));
  EXPECT_THAT(error_of("clip_value: -1"), HasSubstr("no range around 0"));
  EXPECT_THAT(error_of("clip_value: [0.5, 1]"), HasSubstr("a gradient of 0 stays 0"));
  EXPECT_THAT(error_of("clip_value: [1, -1]"), HasSubstr("no range around 0"));
  EXPECT_THAT(error_of("clip_value: [-1, 0, 1]"), HasSubstr("there are 3 numbers"));
  EXPECT_THAT(error_of("clip_value: 1e39"), HasSubstr("must be [-1e30, 1e30]"));
  EXPECT_THAT(error_of("clip_values: 1"), HasSubstr("Did you mean 'clip_value'"));
}

}  // namespace
}  // namespace lockstep
