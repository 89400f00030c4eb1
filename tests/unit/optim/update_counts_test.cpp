// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Updates are counted by variable: each rule sees a variable that begins late as one of a new run.
#include "optim/update_counts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "config/yaml_node.h"
#include "core/philox.h"
#include "core/thread_pool.h"
#include "optim/matrix_work.h"
#include "optim/optimizer.h"
#include "optim/optimizer_options.h"
#include "optim/scheduled_number.h"
#include "optim/update_context.h"

namespace lockstep {
namespace {

constexpr const char* kFalling = "{polynomial_decay: {initial: 0.95, last: 0.6, decay_steps: 9}}";

/// The rules with numbers that depend on t, without schedules and with them.
std::vector<std::string> constant_rules() {
  return {"adam: {amsgrad: true, weight_decay: 0.1}",
          "adamw: {learning_rate: 0.1}",
          "nadam: {learning_rate: 0.1}",
          "radam: {learning_rate: 0.1, beta2: 0.9}",
          "adagrad_da: {learning_rate: 0.1, l1: 0.01, l2: 0.1}",
          "lamb: {learning_rate: 0.1, adapt_vectors: true}",
          "muon: {learning_rate: 0.1}",
          "shampoo: {learning_rate: 0.1, root_every: 2}",
          "{adam: {learning_rate: 0.1}, groups: [{variables: second, rule: {nadam: {learning_rate: 0.1}}}]}"};
}
std::vector<std::string> all_rules() {
  std::vector<std::string> all = constant_rules();
  for (const char* form :
       {"adam: {{beta1: {0}, beta2: {0}}}", "adamw: {{beta1: {0}}}", "nadam: {{beta1: {0}, beta2: {0}}}",
        "radam: {{beta1: {0}, beta2: {0}}}", "lamb: {{learning_rate: 0.1, beta1: {0}, beta2: {0}}}",
        "muon: {{learning_rate: {0}, momentum: {0}}}"})
    all.push_back(fmt::format(fmt::runtime(form), kFalling));
  return all;
}

constexpr const char* kNames[] = {"first", "second", "third", "vector"};

/// Three matrices and a vector, with gradients that depend on the step's name `salt`.
struct Net {
  explicit Net(const std::string& yaml)
      : options(optimizer_options(parse_yaml(yaml, "test"))), optimizer(options.make()), pool(1), lanes(1) {
    for (const char* name : kNames)
      variables.declare(name, *name == 'v' ? Shape{21} : Shape{5, 7}, make_initializer("ones"));
    options.check(variables);
    variables.commit(cpu_device());
    variables.initialize(1);
    for (ScheduledNumber* number : optimizer->numbers())
      number->begin({.steps = 100, .clock = RunClock({.steps = 10, .samples = 80, .batch = 8})});
    optimizer->create_slots(cpu_device(), variables);
    work = optimizer->matrix_work(context());
    for (MatrixWork* const one : work) {
      std::vector<std::size_t> all(one->matrices().size());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
      one->own(all);
    }
  }
  UpdateContext context() { return {variables, cpu_kernels(), cpu_device(), pool, lanes}; }
  const Variable& variable(const char* name) const { return variables[variables.find(name)]; }
  std::int64_t updates(const char* name) const { return optimizer->updates(variable(name)); }
  void step(std::int64_t step, std::int64_t salt, const std::vector<std::int64_t>& cuts = {}) {
    std::vector<float> gradients(static_cast<std::size_t>(variables.trainable_elements()), 0.0F);
    for (const Variable& one : variables.variables())
      for (std::int64_t i = 0; i < one.shape.num_elements(); ++i)
        gradients[static_cast<std::size_t>(one.offset + i)] =
            philox_uniform(
                philox_words(1, 2, static_cast<std::uint32_t>(salt), 0, static_cast<std::uint32_t>(i))[0]) -
            0.4F;
    optimizer->begin_step(step);
    if (optimizer->measures()) optimizer->measure(context(), gradients.data());
    for (MatrixWork* const one : work) {
      for (std::size_t i = 0; i < one->matrices().size(); ++i) one->compute(lanes.front(), i);
      for (std::size_t i = 0; i < one->matrices().size(); ++i) one->finish(lanes.front(), i);
    }
    std::int64_t first = 0;
    std::vector<std::int64_t> ends = cuts;
    ends.push_back(variables.trainable_elements());
    for (const std::int64_t last : ends) {
      optimizer->update(cpu_kernels(), Lane{}, variables, gradients.data() + first, {first, last});
      first = last;
    }
  }
  std::vector<float> values(const char* name) const {
    const Tensor tensor = variables.tensor(variables.find(name));
    return {tensor.f32(), tensor.f32() + tensor.shape().num_elements()};
  }
  void set_values(const char* name, const std::vector<float>& values) {
    std::ranges::copy(values, variables.value(variables.find(name)));
  }
  /// Everything that a checkpoint has, but the state of matrices.
  void restore(const Net& from, std::int64_t step) {
    std::ranges::copy(from.variables.trainable_values(), variables.trainable_values().begin());
    for (std::size_t slot = 0; slot < optimizer->slot_names().size(); ++slot)
      std::memcpy(optimizer->slots().values(slot), from.optimizer->slots().values(slot),
                  static_cast<std::size_t>(variables.trainable_elements()) * sizeof(float));
    std::vector<std::vector<double>> kept;
    for (const Variable& one : from.variables.variables()) {
      const std::optional<Tensor> tensor = from.optimizer->kept_updates(one);
      kept.push_back({static_cast<double>(step)});
      if (tensor) kept.back().assign(tensor->data<double>(), tensor->data<double>() + tensor->shape()[0]);
    }
    std::vector<Optimizer::RestoredUpdates> all;
    for (std::size_t i = 0; i < kept.size(); ++i) all.push_back({&variables.variables()[i], kept[i]});
    optimizer->restore_updates(step, all);
  }

  OptimizerOptions options;
  std::unique_ptr<Optimizer> optimizer;
  VariableStore variables;
  ThreadPool pool;
  std::vector<Lane> lanes;
  std::vector<MatrixWork*> work;
};

TEST(UpdateCounts, VariablesOfOneNumberAreAClass) {
  Net net("adam: {}");
  std::vector<VariableId> own;
  for (const char* name : {"vector", "third", "second", "first"}) own.push_back(net.variables.find(name));
  UpdateCounts counts;
  counts.set_variables(net.variables, own, {1, 0});
  EXPECT_EQ(counts.classes().size(), 1U);
  const UpdateClass late{.updates = 3, .numbers = {0.5, 2}};
  counts.set(net.variable("second"), late);
  EXPECT_EQ(counts.classes().size(), 2U);
  counts.set(net.variable("first"), late);
  EXPECT_EQ(counts.classes().size(), 2U);
  EXPECT_EQ(counts.of(net.variable("second")), late);
  EXPECT_EQ(counts.of(net.variable("third")).updates, 0);
  EXPECT_EQ(counts.class_at(net.variable("second").offset + 34),
            counts.class_at(net.variable("first").offset));
  // Parts of the flat range, in which the last variable comes first.
  std::vector<std::int64_t> ends;
  const std::int64_t all = net.variables.trainable_elements();
  counts.for_each_part({3, all}, [&](Range part, std::size_t number) {
    ends.push_back(part.last);
    EXPECT_EQ(counts.classes()[number].updates, part.first == 3 ? 0 : 3);
  });
  EXPECT_EQ(ends, (std::vector<std::int64_t>{net.variable("second").offset, all}));
  const Tensor tensor = counts.tensor(net.variable("first"));
  EXPECT_EQ(std::vector<double>(tensor.data<double>(), tensor.data<double>() + 3),
            (std::vector<double>{3, 0.5, 2}));
  counts.set(net.variable("third"), late);
  counts.set(net.variable("vector"), late);
  EXPECT_EQ(counts.classes().size(), 1U);
  counts.reset();
  EXPECT_EQ(counts.of(net.variable("third")), counts.initial());
}

/// At any step of the run the first updates of a variable are those of a new run.
TEST(UpdateCounts, AVariableThatBeginsLateMovesAsInANewRun) {
  for (const std::string& yaml : constant_rules())
    for (const std::vector<std::int64_t>& cuts : {std::vector<std::int64_t>{}, {1, 33, 64, 90}}) {
      Net late(yaml), fresh(yaml), never(yaml);
      for (std::int64_t step = 0; step < 5; ++step) late.step(step, step), never.step(step, step);
      const VariableId anew[] = {late.variables.find("second"), late.variables.find("vector")};
      late.optimizer->begin_anew(late.variables, anew);
      EXPECT_EQ(late.updates("first"), 5);
      EXPECT_EQ(late.updates("second"), 0);
      for (const char* name : {"second", "vector"}) fresh.set_values(name, late.values(name));
      for (std::int64_t step = 0; step < 4; ++step) {
        late.step(5 + step, 5 + step, cuts);
        never.step(5 + step, 5 + step);
        fresh.step(step, 5 + step);
      }
      for (const char* name : {"second", "vector"}) {
        EXPECT_EQ(late.values(name), fresh.values(name)) << yaml << " " << name;
        EXPECT_NE(late.values(name), never.values(name)) << yaml << " " << name;
      }
      for (const char* name : {"first", "third"})
        EXPECT_EQ(late.values(name), never.values(name)) << yaml << " " << name;
    }
}

TEST(UpdateCounts, StepsWithoutAnUpdateDoNotCount) {
  for (const std::string& yaml : constant_rules()) {
    Net some(yaml), all(yaml);
    std::int64_t step = 0;
    for (std::int64_t update = 0; update < 7; ++update) {
      for (; step % 3 == 1; ++step) some.optimizer->leave_out_step(step);
      some.step(step++, update);
      all.step(update, update);
    }
    EXPECT_EQ(some.updates("first"), 7);
    EXPECT_EQ(some.variables.hash(), all.variables.hash()) << yaml;
  }
}

/// Also with products of schedules over the steps that updated, and with variables that began late.
TEST(UpdateCounts, AResumedRunGoesOn) {
  for (const std::string& yaml : all_rules()) {
    if (yaml.starts_with("shampoo")) continue;  // its state is more: shampoo_test.cpp
    for (const bool leaves_out : {false, true})
      for (const bool begins_late : {false, true}) {
        Net whole(yaml), resumed(yaml);
        for (std::int64_t step = 0; step < 6; ++step) {
          const VariableId third[] = {whole.variables.find("third")};
          if (begins_late && step == 3) whole.optimizer->begin_anew(whole.variables, third);
          if (leaves_out && step == 4)
            whole.optimizer->leave_out_step(step);
          else
            whole.step(step, step);
        }
        const bool has_schedule = yaml.find("polynomial") != std::string::npos && !yaml.starts_with("muon");
        EXPECT_EQ(whole.optimizer->kept_updates(whole.variable("first")).has_value(),
                  leaves_out || has_schedule)
            << yaml;
        EXPECT_EQ(whole.optimizer->kept_updates(whole.variable("third")).has_value(),
                  begins_late || leaves_out || has_schedule)
            << yaml;
        resumed.restore(whole, 6);
        for (std::int64_t step = 6; step < 9; ++step) whole.step(step, step), resumed.step(step, step);
        EXPECT_EQ(resumed.updates("third"), whole.updates("third"));
        EXPECT_EQ(whole.variables.hash(), resumed.variables.hash()) << yaml;
      }
  }
}

/// A file without updates is of a run that updated in each step up to it.
TEST(UpdateCounts, AFileWithoutThemIsKnown) {
  for (const std::string& yaml : all_rules()) {
    if (yaml.starts_with("shampoo")) continue;
    Net whole(yaml), resumed(yaml);
    for (std::int64_t step = 0; step < 6; ++step) whole.step(step, step);
    resumed.restore(whole, 6);
    const double steps[] = {6};
    std::vector<Optimizer::RestoredUpdates> all;
    for (const Variable& one : resumed.variables.variables()) all.push_back({&one, steps});
    resumed.optimizer->restore_updates(6, all);
    for (std::int64_t step = 6; step < 9; ++step) whole.step(step, step), resumed.step(step, step);
    EXPECT_EQ(whole.variables.hash(), resumed.variables.hash()) << yaml;
  }
}

TEST(UpdateCounts, ResetSlotsForgetsThem) {
  for (const std::string& yaml : constant_rules()) {
    Net net(yaml), fresh(yaml);
    for (std::int64_t step = 0; step < 3; ++step) net.step(step, step);
    net.variables.initialize(1);
    net.optimizer->reset_slots();
    for (MatrixWork* const one : net.work) one->reset();
    EXPECT_EQ(net.updates("second"), 0);
    net.step(0, 7);
    fresh.step(0, 7);
    EXPECT_EQ(net.variables.hash(), fresh.variables.hash()) << yaml;
  }
}

/// The rule of a table counts the steps that update; rows have no count of their own.
TEST(UpdateCounts, ALazyTableCountsEachUpdate) {
  VariableStore variables;
  const VariableId id = variables.declare_table("t", Shape{6, 3}, make_initializer("ones"), {});
  variables.make_sparse(id);
  variables.commit(cpu_device());
  variables.initialize(1);
  const auto optimizer =
      optimizer_options(parse_yaml("adam: {learning_rate: 0.5, lazy: true}", "test")).make();
  optimizer->create_slots(cpu_device(), variables);
  std::int32_t count = 0, rows[] = {4};
  float values[] = {1, 1, 1};
  for (std::int64_t step = 0; step < 5; ++step) {
    count = step == 4 ? 1 : 0;
    optimizer->begin_step(step);
    optimizer->update_rows(cpu_kernels(), Lane{}, variables, variables[id], {&count, rows, values}, {0, 6});
  }
  EXPECT_EQ(optimizer->updates(variables[id]), 5);
  const double c = std::sqrt(1 - std::pow(0.999, 5)) / (1 - std::pow(0.9, 5));
  EXPECT_NEAR(static_cast<double>(variables.value(id)[12]), 1 - 0.5 * c * 0.1 / std::sqrt(0.001), 1e-5);
  EXPECT_EQ(variables.value(id)[0], 1.0F);
}

}  // namespace
}  // namespace lockstep
