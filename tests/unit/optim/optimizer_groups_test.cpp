// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Groups of variables: each variable moves as if its rule were alone.
#include <gmock/gmock.h>

#include <cstring>
#include <map>

#include "config/yaml_node.h"
#include "core/philox.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "optim/optimizer.h"
#include "optim/optimizer_options.h"
#include "optim/scheduled_number.h"
#include "optim/update_context.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kGroups =
    "{adamw: {learning_rate: {exponential_decay: {initial: 0.1, decay_steps: 2, decay_rate: 0.5}}}, groups: ["
    "{variables: [\"*/bias\", norm], weight_decay: 0}, "
    "{variables: \"head/*\", rule: {rmsprop: {learning_rate: 0.01, momentum: 0.5, centered: true}}}, "
    "{variables: \"re:table/.*\", rule: {momentum: {learning_rate: 0.1, lazy: true}}}, "
    "{variables: first, frozen: true}, "
    "{variables: \"mid?le\", learning_rate_factor: 0.25, weight_decay: {polynomial_decay: {initial: 0.5, "
    "decay_steps: "
    "4}}}]}";

OptimizerOptions options_of(const std::string& yaml) { return optimizer_options(parse_yaml(yaml, "test")); }

const std::pair<const char*, Shape> kVariables[] = {
    {"first/kernel", Shape{5, 7}}, {"first/bias", Shape{7}},       {"norm/gamma", Shape{7}},
    {"norm/beta", Shape{7}},       {"middle/kernel", Shape{7, 9}}, {"other/kernel", Shape{9, 9}},
    {"other/bias", Shape{9}},      {"head/kernel", Shape{9, 40}},  {"head/bias", Shape{40}}};

/// The variables with an optimizer, and a sparse table.
struct Net {
  explicit Net(const std::string& yaml, bool freezes = true)
      : options(options_of(yaml)), optimizer(options.make()) {
    if (freezes) variables.freeze(options.frozen_variables());
    for (const auto& [name, shape] : kVariables) variables.declare(name, shape, make_initializer("ones"));
    table = variables.declare_table("table/rows", Shape{6, 3}, make_initializer("ones"), {});
    variables.make_sparse(table);
    options.check(variables);
    variables.commit(cpu_device());
    variables.initialize(1);
    optimizer->create_slots(cpu_device(), variables);
  }
  float gradient(const std::string& name, std::int64_t i) const {
    return philox_uniform(
               philox_words(1, 2, static_cast<std::uint32_t>(steps),
                            static_cast<std::uint32_t>(name.size() + static_cast<unsigned char>(name[0])),
                            static_cast<std::uint32_t>(i))[0]) -
           0.4F;
  }
  void step(std::vector<std::int64_t> cuts = {}) {
    std::vector<float> gradients(static_cast<std::size_t>(variables.dense_elements()));
    for (const Variable& variable : variables.variables())
      for (std::int64_t i = 0;
           variable.trainable && variable.sparse_index < 0 && i < variable.shape.num_elements(); ++i)
        gradients[static_cast<std::size_t>(variable.offset + i)] = gradient(variable.name, i);
    optimizer->begin_step(steps);
    cuts.push_back(variables.dense_elements());
    std::int64_t first = 0;
    for (const std::int64_t last : cuts) {
      optimizer->update(cpu_kernels(), Lane{}, variables, gradients.data() + first, {first, last});
      first = last;
    }
    std::int32_t count = 2, rows[] = {1, 4};
    float values[] = {0.5F, 0.25F, -0.5F, 1.0F, 2.0F, 3.0F};
    for (const Range part : {Range{0, 3}, Range{3, 6}})
      optimizer->update_rows(cpu_kernels(), Lane{}, variables, variables[table], {&count, rows, values},
                             part);
    ++steps;
  }
  std::vector<float> values(const std::string& name) const {
    const VariableId id = variables.find(name);
    return {variables.value(id), variables.value(id) + variables[id].shape.num_elements()};
  }
  std::vector<std::string> slots(const std::string& name) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < optimizer->slot_names().size(); ++i)
      if (const auto slot = optimizer->slot_name(i, variables[variables.find(name)]); !slot.empty())
        names.emplace_back(slot);
    return names;
  }
  OptimizerOptions options;
  std::unique_ptr<Optimizer> optimizer;
  VariableStore variables;
  VariableId table{};
  std::int64_t steps = 0;
};

TEST(OptimizerGroups, EachVariableMovesByItsRuleAlone) {
  const std::string rate = "{exponential_decay: {initial: 0.1, decay_steps: 2, decay_rate: 0.5}}";
  const std::string quarter = "{exponential_decay: {initial: 0.025, decay_steps: 2, decay_rate: 0.5}}";
  const std::string decay = "{polynomial_decay: {initial: 0.5, decay_steps: 4}}";
  const std::pair<std::string, std::string> kAlone[] = {
      {"adamw: {learning_rate: " + rate + "}", "other/kernel"},
      {"adamw: {weight_decay: 0, learning_rate: " + rate + "}",
       "other/bias norm/gamma norm/beta head/bias first/bias"},
      {"rmsprop: {learning_rate: 0.01, momentum: 0.5, centered: true}", "head/kernel"},
      {"momentum: {learning_rate: 0.1, lazy: true}", "table/rows"},
      {"adamw: {learning_rate: " + quarter + ", weight_decay: " + decay + "}", "middle/kernel"}};
  Net grouped(kGroups), cut(kGroups);
  for (int i = 0; i < 3; ++i) grouped.step();
  for (int i = 0; i < 3; ++i) cut.step({1, 33, 64, 90, 200, 333});
  EXPECT_EQ(grouped.variables.hash(), cut.variables.hash());
  for (const auto& [yaml, names] : kAlone) {
    Net alone(yaml);
    for (int i = 0; i < 3; ++i) alone.step();
    std::istringstream each(names);
    for (std::string name; each >> name;) {
      EXPECT_EQ(grouped.values(name), alone.values(name)) << name;
      EXPECT_NE(grouped.values(name).at(3), 1.0F) << name;
    }
  }
  EXPECT_EQ(grouped.values("first/kernel"), std::vector<float>(35, 1.0F));
  EXPECT_TRUE(grouped.variables[grouped.variables.find("first/kernel")].frozen);
}

TEST(OptimizerGroups, EachVariableHasTheSlotsOfItsRule) {
  Net net(kGroups);
  EXPECT_THAT(net.slots("other/kernel"), ElementsAre("m", "v"));
  EXPECT_THAT(net.slots("head/kernel"), ElementsAre("rms", "momentum", "mg"));
  EXPECT_THAT(net.slots("table/rows"), ElementsAre("momentum"));
  const auto begins_at = [&](const char* name, float value) {
    const Variable& variable = net.variables[net.variables.find(name)];
    const float* const slot = net.optimizer->slots().tensor(0, variable).f32();
    return std::all_of(slot, slot + variable.shape.num_elements(), [&](float v) { return v == value; });
  };
  EXPECT_TRUE(begins_at("head/kernel", 1.0F));
  EXPECT_TRUE(begins_at("other/kernel", 0.0F));
  net.step();
  EXPECT_FALSE(begins_at("other/kernel", 0.0F));
  net.optimizer->reset_slots();
  EXPECT_TRUE(begins_at("head/kernel", 1.0F));
  EXPECT_TRUE(begins_at("other/kernel", 0.0F));
  EXPECT_TRUE(net.optimizer->lazy());
}

/// Only numbers that follow nothing: one learning rate for all, and those of groups under their own names.
TEST(OptimizerGroups, SchedulesHaveTheirNamesOnce) {
  const auto optimizer = options_of(kGroups).make();
  std::vector<std::string> names;
  for (const ScheduledNumber* number : optimizer->numbers()) names.push_back(number->option());
  EXPECT_THAT(names, ElementsAre("learning_rate", "weight_decay", "beta1", "beta2", "group1/weight_decay",
                                 "group2/learning_rate", "group2/weight_decay", "group2/decay",
                                 "group2/momentum", "group3/learning_rate", "group3/weight_decay",
                                 "group3/momentum", "group5/weight_decay"));
}

TEST(OptimizerGroups, DescribesTheRuleOfEachVariable) {
  Net net(kGroups);
  const auto all = net.optimizer->describe(net.variables);
  std::map<std::string, std::string> rule_of;
  for (const auto& [rule, names] : all)
    for (const std::string& name : names) rule_of[name] = rule;
  EXPECT_EQ(rule_of.size(), std::size(kVariables) + 1);
  EXPECT_THAT(rule_of["other/kernel"], HasSubstr("adamw: w *= 1 - lr 0.01"));
  EXPECT_THAT(rule_of["other/bias"], HasSubstr("adamw: m +="));
  EXPECT_THAT(rule_of["middle/kernel"], HasSubstr("lr = 0.25 * {exponential_decay"));
  EXPECT_THAT(rule_of["middle/kernel"], HasSubstr("1 - lr group5/weight_decay"));
  EXPECT_THAT(rule_of["first/kernel"], HasSubstr("the variables keep their values"));
  EXPECT_THAT(rule_of["table/rows"], HasSubstr("lazy"));
}

/// Weight decay of a group counts for its vectors too.
TEST(OptimizerGroups, LarsInGroups) {
  const char* const yaml =
      "{lars: {learning_rate: 2, weight_decay: 0.5}, groups: [{variables: head/bias, weight_decay: 0.25}, "
      "{variables: other, rule: gradient_descent: {learning_rate: 0.1}}]}";
  EXPECT_THROW(options_of(yaml), Error);  // a map needs braces
  const auto optimizer =
      options_of(
          "{lars: {learning_rate: 2, weight_decay: 0.5}, groups: [{variables: head/bias, weight_decay: "
          "0.25}, {variables: other, rule: {gradient_descent: {learning_rate: 0.1}}}]}")
          .make();
  EXPECT_TRUE(optimizer->measures());
  EXPECT_FALSE(optimizer->takes_rows("head/kernel"));
  EXPECT_TRUE(optimizer->takes_rows("other/kernel"));
  VariableStore variables;
  for (const auto& [name, shape] : kVariables) variables.declare(name, shape, make_initializer("ones"));
  variables.commit(cpu_device());
  variables.initialize(1);
  optimizer->create_slots(cpu_device(), variables);
  ThreadPool pool(2);
  std::vector<Lane> lanes(2);
  const std::vector<float> gradients(static_cast<std::size_t>(variables.trainable_elements()), 0.5F);
  optimizer->begin_step(0);
  optimizer->measure({variables, cpu_kernels(), cpu_device(), pool, lanes}, gradients.data());
  optimizer->update(cpu_kernels(), Lane{}, variables, gradients.data(), {0, variables.trainable_elements()});
  const auto value = [&](const char* name) {
    return static_cast<double>(*variables.value(variables.find(name)));
  };
  EXPECT_NEAR(value("head/bias"), 1 - 2 * 0.75, 1e-6);  // the plain rate, with decay
  EXPECT_NEAR(value("first/bias"), 1 - 2 * 0.5, 1e-6);  // the plain rate, without decay
  EXPECT_NEAR(value("first/kernel"), 1 - 2 * 0.001, 1e-6);
  EXPECT_NEAR(value("other/bias"), 1 - 0.1 * 0.5, 1e-6);
}

TEST(OptimizerGroups, BadGroupsAreErrors) {
  const std::pair<const char*, const char*> kBad[] = {
      {"{variables: haed, weight_decay: 0}", "Did you mean 'head'?"},
      {"{variables: [head, xyz], weight_decay: 0}", "'xyz' matches no variable"},
      {"{variables: head}", "the group changes nothing"},
      {"{variables: [], weight_decay: 0}", "there is no pattern"},
      {"{variables: \"[head\", weight_decay: 0}", "variables"},
      {"{weight_decay: 0}", "variables"},
      {"{variables: head, weight_decay: -1}", "weight_decay"},
      {"{variables: head, frozen: true, learning_rate_factor: 2}", "it has no meaning beside frozen"},
      {"{variables: head, rule: lion, weight_decay: 2}", "it has no meaning beside rule"},
      {"{variables: head, rule: {momentum: {}}}", "learning_rate"},
      {"{variables: head, rule: {momentum: {learning_rate: 1}, groups: []}}", "name of one optimizer"},
      {"{variables: head, lr_mult: 2}", "It is called 'learning_rate_factor' here"},
      {"{match: head, frozen: true}", "It is called 'variables' here"},
      {"{variables: \"*\", weight_decay: 0}, {variables: head, learning_rate_factor: 2}",
       "group 2 has no variable: earlier groups take all"},
  };
  for (const auto& [group, expected] : kBad)
    EXPECT_THAT(testing::message_of([&] { Net net(fmt::format("{{adam: {{}}, groups: [{}]}}", group)); }),
                HasSubstr(expected));
  EXPECT_THAT(testing::message_of([] {
                options_of("{ftrl: {learning_rate: 1}, groups: [{variables: head, weight_decay: 0}]}");
              }),
              HasSubstr("the rule ftrl has no weight decay"));
  EXPECT_THAT(testing::message_of([] { options_of("{adam: {}, groups: 3}"); }), HasSubstr("must be a list"));
  EXPECT_THAT(testing::message_of([] { options_of("{adam: {}, param_groups: []}"); }), HasSubstr("'groups'"));
}

}  // namespace
}  // namespace lockstep
