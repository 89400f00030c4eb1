// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A user's rule: a class derived from UpdateRule with an update of host memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "config/option.h"
#include "config/yaml_node.h"
#include "core/range.h"
#include "core/sparse_rows.h"
#include "kernels/kernel_table.h"
#include "kernels/lane.h"
#include "optim/optimizer.h"
#include "optim/optimizer_options.h"
#include "optim/update_rule.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

/// Moves each element by the rate, in the direction of the sum of its gradients; `start` is added to the sum.
class SumDescent final : public UpdateRule {
 public:
  struct Options {
    ScheduledNumber learning_rate;
    float start = 0;
    bool lazy = false;

    void check(const Params& p) const {
      if (lazy && start < 0) throw p.error(option_name<&Options::start>(p), "it is negative, and lazy");
    }
  };
  explicit SumDescent(Options o) : UpdateRule(std::move(o.learning_rate), o.lazy), start_(o.start) {
    ++constructed;
  }
  const char* kind() const override { return "sum_descent"; }
  std::span<const std::string_view> slot_names() const override {
    static constexpr std::string_view kNames[] = {"sum"};
    return kNames;
  }
  float initial_value(std::size_t) const override { return start_; }
  std::string formula() const override { return "s += g; w -= lr s"; }
  void update(const KernelTable&, const Lane&, const VariableStore& variables, const float* gradients,
              Range range) const override {
    const auto rate = static_cast<float>(learning_rate(step()));
    for (std::int64_t i = range.first; i < range.last; ++i) {
      slot(0)[i] += gradients[i - range.first];
      variables.trainable_address()[i] -= rate * slot(0)[i];
    }
  }
  static inline int constructed = 0;

 private:
  float start_;
};

using Options = SumDescent::Options;
constexpr ParamSpec kOptions[] = {
    option<&Options::learning_rate>("learning_rate", kRequired, kRateRange, "the rate"),
    option<&Options::start>("start", "0", {}, "first value of the sum"),
    option<&Options::lazy>("lazy", "false", {}, "leaves other rows alone")};
constexpr OptimizerEntry kEntry = {"sum_descent", "a rule of this test", kOptions, make_rule<SumDescent>};

void register_once() {
  for (const OptimizerEntry& entry : optimizer_table())
    if (entry.name == kEntry.name) return;
  optimizer_table().add(kEntry);
}

std::unique_ptr<Optimizer> sum_descent(const std::string& options) {
  register_once();
  return optimizer_options(parse_yaml("sum_descent: {" + options + "}", "test")).make();
}

TEST(RegisteredOptimizer, IsFoundByItsName) {
  const auto optimizer = sum_descent("learning_rate: 0.5, start: 2");
  EXPECT_EQ(optimizer->first().describe(), "sum_descent: s += g; w -= lr s; lr = 0.5");
  EXPECT_THROW(sum_descent("learning_rate: 0.5, begin: 2"), Error);
  const std::string taken = testing::message_of([] { optimizer_table().add(kEntry); });
  EXPECT_NE(taken.find("'sum_descent' exists already"), std::string::npos) << taken;
}

/// What reads a configuration checks all options and constructs no rule.
TEST(RegisteredOptimizer, IsConstructedOnce) {
  register_once();
  const auto options_of = [](const std::string& rule, const std::string& group) {
    return optimizer_options(parse_yaml(
        "{sum_descent: {learning_rate: 0.5" + rule + "}, groups: [{variables: w, " + group + "}]}", "test"));
  };
  const int before = SumDescent::constructed;
  const OptimizerOptions options = options_of("", "learning_rate_factor: 2");
  for (const auto& [rule, group] : {std::pair(", lazy: true, start: -1", "frozen: true"),
                                    std::pair("",
                                              "rule: {sum_descent: {learning_rate: 1, start: -1, lazy: "
                                              "true}}")}) {
    const std::string message = testing::message_of([&] { options_of(rule, group); });
    EXPECT_NE(message.find("optimizer sum_descent, start: it is negative, and lazy"), std::string::npos)
        << message;
    EXPECT_NE(message.find("test:1:"), std::string::npos) << message;
  }
  EXPECT_EQ(SumDescent::constructed, before);
  options.make();
  EXPECT_EQ(SumDescent::constructed, before + 2);  // the section's and the group's
}

/// Slots begin at the rule's value, and reset_slots() returns them to it.
TEST(RegisteredOptimizer, SlotsBeginAtTheRulesValue) {
  VariableStore variables;
  const VariableId id = variables.declare("w", Shape{3}, make_initializer("ones"));
  variables.commit(cpu_device());
  variables.initialize(1);
  const auto optimizer = sum_descent("learning_rate: 0.5, start: 2");
  optimizer->create_slots(cpu_device(), variables);
  const float gradients[] = {1, 2, 3};
  optimizer->begin_step(0);
  optimizer->update(cpu_kernels(), Lane{}, variables, gradients, {0, 3});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(optimizer->slots().values(0)[i], 3.0F + static_cast<float>(i));
    EXPECT_EQ(variables.value(id)[i], 1 - 0.5F * (3.0F + static_cast<float>(i)));
  }
  optimizer->reset_slots();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(optimizer->slots().values(0)[i], 2.0F);
}

/// Rows need no function of the rule's own: those without a gradient are updated with zeros unless it is
/// lazy.
TEST(RegisteredOptimizer, RowsAreUpdatedLikeADenseRange) {
  constexpr std::int64_t kRows = 700, kWidth = 3;  // stretches longer than the buffer of zeros
  for (const bool lazy : {false, true}) {
    VariableStore variables;
    const VariableId id = variables.declare_table("t", Shape{kRows, kWidth}, make_initializer("ones"), {});
    variables.make_sparse(id);
    variables.commit(cpu_device());
    variables.initialize(1);
    const auto optimizer =
        sum_descent(lazy ? "learning_rate: 0.5, start: 1, lazy: true" : "learning_rate: 0.5, start: 1");
    optimizer->create_slots(cpu_device(), variables);
    std::vector<std::int32_t> rows = {0, 4, 600};
    auto count = static_cast<std::int32_t>(rows.size());
    std::vector<float> values(rows.size() * kWidth, 2.0F);
    optimizer->begin_step(0);
    for (const Range part : {Range{0, 4}, Range{4, 5}, Range{5, kRows}})
      optimizer->update_rows(cpu_kernels(), Lane{}, variables, variables[id],
                             {&count, rows.data(), values.data()}, part);
    for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
      const bool touched = std::ranges::find(rows, i / kWidth) != rows.end();
      const float sum = touched ? 3 : 1;
      ASSERT_EQ(optimizer->slots().values(0)[i], sum) << i;
      ASSERT_EQ(variables.value(id)[i], touched || !lazy ? 1 - 0.5F * sum : 1.0F) << i;
    }
  }
}

}  // namespace
}  // namespace lockstep
