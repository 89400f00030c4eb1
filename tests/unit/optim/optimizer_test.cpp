// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizers against check vectors: w starts at 1, gradients 0.1, 0.2, -0.3, rate 0.1 (docs/optimizers.md has
// the rules).
#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "config/yaml_node.h"
#include "core/philox.h"
#include "core/range.h"
#include "core/sparse_rows.h"
#include "kernels/kernel_table.h"
#include "kernels/lane.h"
#include "optim/optimizer_options.h"
#include "optim/update_rule.h"

namespace lockstep {
namespace {

/// One variable of `count` elements that starts at 1, with an optimizer.
struct OneVariable {
  OneVariable(const std::string& yaml, std::int64_t count)
      : optimizer(optimizer_options(parse_yaml(yaml, "test")).make()) {
    id = variables.declare("w", Shape{count}, make_initializer("ones"));
    variables.commit(cpu_device());
    variables.initialize(1);
    optimizer->create_slots(cpu_device(), variables);
  }
  void update(const std::vector<float>& gradients, Range range, std::int64_t step) {
    if (step != begun) optimizer->begin_step(step);
    begun = step;
    optimizer->update(cpu_kernels(), Lane{}, variables, gradients.data() + range.first, range);
  }
  const Variable& variable() const { return variables[id]; }
  std::unique_ptr<Optimizer> optimizer;
  VariableStore variables;
  VariableId id = VariableId::none;
  std::int64_t begun = -1;
};

void expect_vector(const std::string& yaml, const std::vector<double>& expected) {
  OneVariable setup(yaml, 37);  // more than one vector, and a rest
  const float gradients[] = {0.1F, 0.2F, -0.3F};
  for (std::int64_t step = 0; step < 3; ++step) {
    std::vector<float> flat(static_cast<std::size_t>(setup.variables.trainable_elements()), 0.0F);
    std::fill_n(flat.begin(), 37, gradients[step]);
    setup.update(flat, {0, setup.variables.trainable_elements()}, step);
    for (int i = 0; i < 37; ++i)
      EXPECT_NEAR(static_cast<double>(setup.variables.value(setup.id)[i]),
                  expected[static_cast<std::size_t>(step)], 2.4e-7)
          << yaml << ", step " << step << ", element " << i;
    for (std::size_t gap = 37; gap < flat.size(); ++gap)
      EXPECT_EQ(setup.variables.trainable_values()[gap], 0.0F) << yaml;
  }
}

TEST(Optimizer, GradientDescent) {
  expect_vector("gradient_descent: {learning_rate: 0.1}", {0.99, 0.97, 1.0});
}
TEST(Optimizer, Momentum) {
  expect_vector("momentum: {learning_rate: 0.1, momentum: 0.9}", {0.99, 0.961, 0.9649});
}
TEST(Optimizer, Nesterov) {
  expect_vector("momentum: {learning_rate: 0.1, momentum: 0.9, nesterov: true}", {0.981, 0.9349, 0.96841});
}
TEST(Optimizer, Adam) { expect_vector("adam: {learning_rate: 0.1}", {0.900000316, 0.80348225, 0.810142146}); }

TEST(Optimizer, Adagrad) {
  expect_vector("adagrad: {learning_rate: 0.1}", {0.969848866, 0.918209088, 0.979446331});
}
TEST(Optimizer, Adadelta) {
  expect_vector("adadelta: {learning_rate: 0.1}", {0.999955279, 0.999898426, 0.99996687});
}
TEST(Optimizer, RmsProp) {
  expect_vector("rmsprop: {learning_rate: 0.1, momentum: 0.9}", {0.989464926, 0.957828048, 0.9641725});
}
TEST(Optimizer, RmsPropCentered) {
  expect_vector("rmsprop: {learning_rate: 0.1, momentum: 0.9, centered: true}",
                {0.989464341, 0.957815496, 0.964149534});
}
TEST(Optimizer, Ftrl) {
  expect_vector("ftrl: {learning_rate: 0.1}", {0.0163862763, -0.0352535017, 0.0259837419});
}
TEST(Optimizer, FtrlWithPenalties) {
  expect_vector("ftrl: {learning_rate: 0.1, l1: 0.001, l2: 0.1}",
                {0.0151699807, -0.0334430342, 0.0250000329});
}
TEST(Optimizer, ProximalGradientDescent) {
  expect_vector("proximal_gradient_descent: {learning_rate: 0.1, l1: 0.1, l2: 0.1}",
                {0.97029703, 0.930987158, 0.941571444});
}
TEST(Optimizer, AdagradDa) {
  expect_vector("adagrad_da: {learning_rate: 0.1, l1: 0.01, l2: 0.1}", {-0.0263417863, -0.0687456776, 0});
}

/// Every optimizer of the table, and forms of some by their options.
const std::vector<std::string>& all_rules() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> rules = {
        "gradient_descent: {learning_rate: 0.1, weight_decay: 0.1}",
        "momentum: {learning_rate: 0.1, nesterov: true}",
        "adam: {amsgrad: true, weight_decay: 0.1, decoupled_weight_decay: true}",
        "rmsprop: {learning_rate: 0.1, momentum: 0.9, centered: true}",
        "ftrl: {learning_rate: 0.1, learning_rate_power: -0.4, l2_shrinkage: 0.1}",
        "adamw: {beta1: {polynomial_decay: {initial: 0.95, last: 0.6, decay_steps: 9}}, "
        "beta2: {piecewise_constant: {boundaries: [3], values: [0.99, 0.9]}}}",
        "nadam: {beta1: {polynomial_decay: {initial: 0.95, last: 0.6, decay_steps: 9}}}",
        "rmsprop: {learning_rate: 0.1, momentum: {polynomial_decay: {initial: 0.95, last: 0.6, decay_steps: "
        "9}}}"};
    for (const OptimizerEntry& entry : optimizer_table())
      if (entry.name != "lars" && entry.name != "lamb")  // these measure before: trust_rule_test.cpp
        rules.push_back(std::string(entry.name) + ": {learning_rate: 0.1}");
    return rules;
  }();
  return all;
}

TEST(Optimizer, TheTableHasTheRulesOfLockstep) {
  EXPECT_GE(optimizer_table().size(), 17U);
  EXPECT_GE(all_rules().size(), 23U);
}

/// Threads and ranks share the work: any cut of the range gives the same bits, also where nothing is aligned.
TEST(Optimizer, AnyCutOfTheRangeGivesTheSameBits) {
  const std::int64_t count = 1000;
  for (const std::string& yaml : all_rules())
    for (const std::vector<std::int64_t>& cuts :
         {std::vector<std::int64_t>{0, 1, 17, 500, 1000}, {0, 333, 334, 337, 1000}, {0, 16, 48, 992, 1000}}) {
      OneVariable whole(yaml, count), parts(yaml, count);
      for (std::int64_t step = 0; step < 3; ++step) {
        std::vector<float> gradients(static_cast<std::size_t>(whole.variables.trainable_elements()), 0.0F);
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
          gradients[i] = philox_uniform(philox_words(1, 2, static_cast<std::uint32_t>(step), 0,
                                                     static_cast<std::uint32_t>(i))[0]) -
                         0.5F;
        whole.update(gradients, {0, count}, step);
        for (std::size_t c = cuts.size() - 1; c > 0; --c)
          parts.update(gradients, {cuts[c - 1], cuts[c]}, step);
      }
      EXPECT_NE(whole.variables.value(whole.id)[999], 1.0F) << yaml;
      EXPECT_EQ(whole.variables.hash(), parts.variables.hash()) << yaml;
      for (std::size_t slot = 0; slot < whole.optimizer->slot_names().size(); ++slot)
        EXPECT_EQ(std::memcmp(whole.optimizer->slots().values(slot), parts.optimizer->slots().values(slot),
                              static_cast<std::size_t>(count) * sizeof(float)),
                  0)
            << yaml;
    }
}

TEST(Optimizer, OutsideTheRangeNothingMoves) {
  for (const std::string& yaml : all_rules()) {
    OneVariable setup(yaml, 100);
    setup.update(std::vector<float>(112, 1.0F), {40, 60}, 0);
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(setup.variables.value(setup.id)[i] != 1.0F, i >= 40 && i < 60) << yaml << " " << i;
  }
}

TEST(Optimizer, NaNInGradientsShows) {
  for (const std::string& yaml : all_rules()) {
    OneVariable setup(yaml, 20);
    std::vector<float> gradients(32, 0.5F);
    gradients[3] = std::nanf("");
    setup.update(gradients, {0, 20}, 0);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(std::isnan(setup.variables.value(setup.id)[i]), i == 3) << yaml;
  }
}

TEST(Optimizer, BadOptionsAreErrors) {
  for (const char* yaml : {"adm: {}",
                           "gradient_descent: {}",
                           "gradient_descent: {learning_rate: 0}",
                           "gradient_descent: {learning_rate: -1}",
                           "momentum: {learning_rate: 0.1, momentum: 1}",
                           "adam: {beta: 0.9}",
                           "adam: {epsilon: 0}",
                           "adam: {beta1: 0.99999999}",
                           "adam: {beta2: 0.99999999}",
                           "adam: {weight_decay: -0.1}",
                           "adamw: {decoupled_weight_decay: true}",
                           "nadam: {beta1: 0.99999999}",
                           "nadam: {momentum_decay: -1}",
                           "adagrad: {learning_rate: 0.1, initial_accumulator: 0}",
                           "adagrad: {learning_rate: 0.1, initial_accumulator: -1}",
                           "adadelta: {rho: 1}",
                           "adam: {beta1: {reduce_on_plateau: {initial: 0.9}}}",
                           "nadam: {beta2: {reduce_on_plateau: {initial: 0.9}}}",
                           "lamb: {beta1: {reduce_on_plateau: {initial: 0.9}}}",
                           "rmsprop: {learning_rate: 0.1, momentum: 1}",
                           "rmsprop: {learning_rate: 0.1, momentum: -0.1}",
                           "rmsprop: {}",
                           "rmsprop: {learning_rate: 0.1, decay: 1}",
                           "rmsprop: {learning_rate: 0.1, nesterov: true}",
                           "ftrl: {learning_rate: 0.1, learning_rate_power: 0.5}",
                           "ftrl: {learning_rate: 0.1, l1: -1}",
                           "ftrl: {learning_rate: 0.1, weight_decay: 0.1}",
                           "ftrl: {learning_rate: 0.1, initial_accumulator: -1}",
                           "proximal_adagrad: {learning_rate: 0.1, initial_accumulator: 0}",
                           "adagrad_da: {learning_rate: 0.1, initial_accumulator: 0}",
                           "lion: {learning_rate: -1}",
                           "lion: {momentum: 0.9}"})
    EXPECT_THROW(optimizer_options(parse_yaml(yaml, "test")).make(), Error) << yaml;
}

/// A key next to one known rule belongs to the section.
TEST(Optimizer, UnknownKeysBesideTheRuleAreNamed) {
  try {
    optimizer_options(parse_yaml("{adam: {}, rounds: 3}", "test"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("section optimizer"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("rounds"), std::string::npos) << error.what();
  }
  EXPECT_THROW(optimizer_options(parse_yaml("{adam: {}, momentum: {learning_rate: 1}}", "test")), Error);
}

TEST(Optimizer, DescriptionsHaveTheNumbers) {
  const std::pair<const char*, const char*> kExpected[] = {
      {"momentum: {learning_rate: 0.1, momentum: 0.8}", "momentum: a = 0.8 a + g; w -= lr a; lr = 0.1"},
      {"gradient_descent: {learning_rate: {exponential_decay: {initial: 0.1, decay_steps: 3, decay_rate: "
       "0.9}}, "
       "weight_decay: 0.01}",
       "gradient_descent: g += 0.01 w; w -= lr g; lr = {exponential_decay: {initial: 0.1, decay_steps: 3, "
       "decay_rate: 0.9}}"},
      {"lion: {weight_decay: 0.5, lazy: true}",
       "lion: w *= 1 - lr 0.5; w -= lr sign(0.9 m + (1 - 0.9) g); m = 0.99 m + (1 - 0.99) g; lr = 1e-4; "
       "lazy: "
       "rows that a step does not touch stay as they are"},
      {"adamw: {weight_decay: 0, beta1: {polynomial_decay: {initial: 0.95, last: 0.6, decay_steps: 9}}}",
       "adamw: m += (1 - beta1) (g - m); v += (1 - 0.999) (g^2 - v); w -= lr m / (1 - (beta1_1 ... beta1_t)) "
       "/ "
       "(sqrt(v / (1 - 0.999^t)) + 1e-08); lr = 0.001"},
  };
  for (const auto& [yaml, expected] : kExpected)
    EXPECT_EQ(optimizer_options(parse_yaml(yaml, "test")).make()->first().describe(), expected);
  for (const std::string& yaml : all_rules()) {
    const std::string text = optimizer_options(parse_yaml(yaml, "test")).make()->first().describe();
    EXPECT_NE(text.find("w"), std::string::npos) << text;
    EXPECT_EQ(text.find("{0}"), std::string::npos) << text;
  }
}

/// A resumed run knows its updates, also from the number of steps alone.
TEST(Optimizer, AResumedRunHasTheSameNumbers) {
  for (const std::string& yaml : all_rules()) {
    OneVariable whole(yaml, 20), resumed(yaml, 20);
    const std::vector<float> gradients(32, 0.25F);
    for (std::int64_t step = 0; step < 7; ++step) {
      if (step == 6) {
        std::ranges::copy(whole.variables.trainable_values(), resumed.variables.trainable_values().begin());
        for (std::size_t s = 0; s < whole.optimizer->slot_names().size(); ++s)
          std::memcpy(resumed.optimizer->slots().values(s), whole.optimizer->slots().values(s),
                      20 * sizeof(float));
        const double updates[] = {6};
        resumed.optimizer->restore_updates(
            6, std::vector<Optimizer::RestoredUpdates>{{&resumed.variable(), updates}});
      }
      whole.update(gradients, {0, 20}, step);
    }
    resumed.update(gradients, {0, 20}, 6);
    EXPECT_EQ(whole.variables.hash(), resumed.variables.hash()) << yaml;
  }
}

/// A number and a schedule that stays at it: the same bits, although the correction of bias is then a
/// product.
TEST(Optimizer, AConstantScheduleHasTheBitsOfItsNumber) {
  const auto constant = [](double value) { return fmt::format("{{constant: {{value: {}}}}}", value); };
  for (const char* form :
       {"adam: {{learning_rate: 0.1, beta1: {0}, beta2: {1}}}", "adamw: {{beta1: {0}, beta2: {1}}}",
        "nadam: {{beta1: {0}, beta2: {1}}}", "radam: {{beta1: {0}, beta2: {1}}}",
        "lion: {{beta1: {0}, beta2: {1}}}", "adadelta: {{rho: {0}}}",
        "rmsprop: {{learning_rate: 0.1, decay: {0}, momentum: {1}}}"}) {
    OneVariable number(fmt::format(fmt::runtime(form), 0.87, 0.997), 20),
        schedule(fmt::format(fmt::runtime(form), constant(0.87), constant(0.997)), 20),
        other(fmt::format(fmt::runtime(form), 0.99, 0.9), 20);
    for (std::int64_t step = 0; step < 40; ++step)
      for (OneVariable* one : {&number, &schedule, &other})
        one->update(std::vector<float>(32, step % 3 == 0 ? -0.4F : 0.25F), {0, 20}, step);
    EXPECT_EQ(number.variables.hash(), schedule.variables.hash()) << form;
    EXPECT_NE(number.variables.hash(), other.variables.hash()) << form;
  }
}

/// RMSProp without momentum has no slot for it; a momentum that begins with 0 has one.
TEST(Optimizer, AScheduleOfTheMomentumHasASlot) {
  const auto slots = [](const std::string& momentum) {
    const std::string yaml = "rmsprop: {learning_rate: 0.1, momentum: " + momentum + "}";
    return optimizer_options(parse_yaml(yaml, "test")).make()->slot_names().size();
  };
  EXPECT_EQ(slots("0"), 1U);
  EXPECT_EQ(slots("0.9"), 2U);
  EXPECT_EQ(slots("{polynomial_decay: {initial: 0, last: 0.9, decay_steps: 5}}"), 2U);
}

/// Whether the rule of `yaml` has the option `lazy`.
bool can_be_lazy(const std::string& yaml) {
  for (const OptimizerEntry& entry : optimizer_table())
    if (yaml.starts_with(std::string(entry.name) + ":"))
      return std::ranges::find(entry.table, "lazy", &ParamSpec::name) != entry.table.end();
  return false;
}

/// A table of 5 rows whose gradient is sparse, and one whose gradient is dense, through three steps.
TEST(Optimizer, LazyLeavesRowsThatAStepDoesNotTouch) {
  constexpr std::int64_t kRows = 5, kWidth = 3;
  std::vector<std::string> cases = all_rules();
  for (const std::string& yaml : all_rules())  // a copy with `lazy`
    if (can_be_lazy(yaml)) cases.push_back(yaml.substr(0, yaml.size() - 1) + ", lazy: true}");
  for (const std::string& yaml : cases) {
    VariableStore variables;
    const VariableId id = variables.declare_table("t", Shape{kRows, kWidth}, make_initializer("ones"), {});
    variables.make_sparse(id);
    variables.commit(cpu_device());
    variables.initialize(1);
    const auto optimizer = optimizer_options(parse_yaml(yaml, "test")).make();
    optimizer->create_slots(cpu_device(), variables);
    OneVariable dense(yaml, kRows * kWidth);
    std::vector<std::vector<std::int32_t>> touched = {{1, 3}, {3}, {0, 4}};
    for (std::int64_t step = 0; step < 3; ++step) {
      std::vector<std::int32_t>& rows = touched[static_cast<std::size_t>(step)];
      std::vector<float> values, flat(16, 0.0F);
      for (const std::int32_t row : rows)
        for (int c = 0; c < kWidth; ++c) {
          values.push_back(static_cast<float>(row + c) + 0.5F);
          flat[static_cast<std::size_t>(row * kWidth + c)] = values.back();
        }
      auto count = static_cast<std::int32_t>(rows.size());
      const std::vector<float> before(variables.value(id), variables.value(id) + kRows * kWidth);
      optimizer->begin_step(step);
      for (const Range part : {Range{0, 2}, Range{2, kRows}})  // as two threads do it
        optimizer->update_rows(cpu_kernels(), Lane{}, variables, variables[id],
                               {&count, rows.data(), values.data()}, part);
      dense.update(flat, {0, kRows * kWidth}, step);
      for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
        const bool is_touched = std::ranges::find(rows, i / kWidth) != rows.end();
        if (!optimizer->lazy())
          EXPECT_EQ(variables.value(id)[i], dense.variables.value(dense.id)[i]) << yaml << " " << step;
        else if (!is_touched)
          EXPECT_EQ(variables.value(id)[i], before[static_cast<std::size_t>(i)]) << yaml << " " << step;
        else
          EXPECT_NE(variables.value(id)[i], before[static_cast<std::size_t>(i)]) << yaml << " " << step;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
