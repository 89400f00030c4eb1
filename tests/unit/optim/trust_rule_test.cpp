// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// LARS and LAMB over several variables. The formulas are also in rule_vectors_test.cpp, over 50 steps.
#include "optim/trust_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "config/yaml_node.h"
#include "core/philox.h"
#include "core/thread_pool.h"
#include "optim/optimizer.h"
#include "optim/optimizer_options.h"
#include "optim/update_context.h"
#include "optim/update_rule.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

constexpr const char* kRules[] = {"lars: {learning_rate: 2, weight_decay: 0.1}",
                                  "lars: {learning_rate: 2, nesterov: true, adapt_vectors: true}",
                                  "lamb: {learning_rate: 0.1}",
                                  "lamb: {norm_limits: [1, 2], decay_vectors: true}"};

/// A matrix of several blocks, a vector and a matrix of zeros.
struct Three {
  Three(const std::string& yaml, int threads)
      : optimizer(optimizer_options(parse_yaml(yaml, "test")).make()), pool(threads) {
    lanes.resize(static_cast<std::size_t>(threads));
    zeros = variables.declare("zeros", Shape{3, 3}, make_initializer("zeros"));
    vector = variables.declare("vector", Shape{37}, make_initializer("ones"));
    matrix = variables.declare("matrix", Shape{97, 101}, make_initializer("ones"));
    variables.commit(cpu_device());
    variables.initialize(1);
    optimizer->create_slots(cpu_device(), variables);
  }
  /// `cuts`: of the flat range.
  void step(const std::vector<float>& gradients, std::vector<std::int64_t> cuts = {}) {
    optimizer->begin_step(steps++);
    optimizer->measure({variables, cpu_kernels(), cpu_device(), pool, lanes}, gradients.data());
    cuts.push_back(variables.trainable_elements());
    std::int64_t first = 0;
    for (const std::int64_t last : cuts) {
      optimizer->update(cpu_kernels(), Lane{}, variables, gradients.data() + first, {first, last});
      first = last;
    }
  }
  std::vector<float> gradients() const {
    std::vector<float> values(static_cast<std::size_t>(variables.trainable_elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = philox_uniform(philox_words(1, 2, static_cast<std::uint32_t>(steps), 0,
                                              static_cast<std::uint32_t>(i))[0]) -
                  0.5F;
    return values;
  }
  double value(VariableId id, int i = 0) const { return static_cast<double>(variables.value(id)[i]); }

  std::unique_ptr<Optimizer> optimizer;
  VariableStore variables;
  VariableId zeros{}, vector{}, matrix{};
  ThreadPool pool;
  std::vector<Lane> lanes;
  std::int64_t steps = 0;
};

TEST(TrustRule, AnyThreadsAndCutsGiveTheSameBits) {
  for (const char* yaml : kRules) {
    Three one(yaml, 1), two(yaml, 2), three(yaml, 3);
    for (int i = 0; i < 3; ++i) {
      one.step(one.gradients());
      two.step(two.gradients(), {1, 500, 2049, 9000});
      three.step(three.gradients(), {9840});
    }
    EXPECT_EQ(one.variables.hash(), two.variables.hash()) << yaml;
    EXPECT_EQ(one.variables.hash(), three.variables.hash()) << yaml;
  }
}

/// |w| = sqrt(97 * 101), |g| = 0.5 |w|: the rate of the matrix is lr 0.001 / 0.6.
TEST(TrustRule, VectorsHaveThePlainRateAndNoDecay) {
  Three lars(kRules[0], 1);
  lars.step(std::vector<float>(static_cast<std::size_t>(lars.variables.trainable_elements()), 0.5F));
  EXPECT_NEAR(lars.value(lars.matrix), 1 - 2 * 0.001 / 0.6 * 0.6, 1e-7);
  EXPECT_EQ(lars.value(lars.vector), 0.0);  // 1 - 2 * 0.5
  EXPECT_EQ(lars.value(lars.zeros), -1.0);  // a norm of zero: the plain rate

  Three adapted("lars: {learning_rate: 2, weight_decay: 0.1, adapt_vectors: true}", 1);
  adapted.step(std::vector<float>(static_cast<std::size_t>(adapted.variables.trainable_elements()), 0.5F));
  EXPECT_NEAR(adapted.value(adapted.vector), 1 - 2 * 0.001, 1e-7);

  Three decayed("lars: {learning_rate: 2, weight_decay: 0.1, decay_vectors: true}", 1);
  decayed.step(std::vector<float>(static_cast<std::size_t>(decayed.variables.trainable_elements()), 0.5F));
  EXPECT_NEAR(decayed.value(decayed.vector), 1 - 2 * 0.6, 1e-7);

  // The first direction is 1 for each element, and 1.01 with the decay.
  Three lamb("lamb: {learning_rate: 0.125, epsilon: 1e-12}", 1);
  lamb.step(std::vector<float>(static_cast<std::size_t>(lamb.variables.trainable_elements()), 0.5F));
  EXPECT_NEAR(lamb.value(lamb.matrix), 1 - 0.125, 2e-7);
  EXPECT_NEAR(lamb.value(lamb.vector), 1 - 0.125, 2e-7);
  EXPECT_NEAR(lamb.value(lamb.zeros), -0.125, 2e-7);

  Three limited("lamb: {learning_rate: 0.125, epsilon: 1e-12, norm_limits: [0, 9]}", 1);
  limited.step(std::vector<float>(static_cast<std::size_t>(limited.variables.trainable_elements()), 0.5F));
  EXPECT_NEAR(limited.value(limited.matrix), 1 - 0.125 * 9 / std::sqrt(97.0 * 101.0), 2e-7);
}

TEST(TrustRule, NaNShows) {
  for (const char* yaml : kRules) {
    Three three(yaml, 2);
    std::vector<float> gradients = three.gradients();
    gradients[static_cast<std::size_t>(three.variables[three.matrix].offset) + 5000] = std::nanf("");
    three.step(gradients);
    EXPECT_TRUE(std::isnan(three.value(three.matrix))) << yaml;
    EXPECT_FALSE(std::isnan(three.value(three.vector))) << yaml;
  }
}

TEST(TrustRule, BadOptionsAreErrors) {
  for (const char* yaml :
       {"lars: {}", "lars: {learning_rate: 1, trust_coefficient: 0}", "lamb: {lazy: true}",
        "lamb: {norm_limits: [2, 1]}", "lamb: {norm_limits: 3}", "lamb: {beta1: 0.99999999}",
        "lamb: {epsilon: 0}", "lars: {learning_rate: 1, weight_decay: -1}"})
    EXPECT_THROW(optimizer_options(parse_yaml(yaml, "test")).make(), Error) << yaml;
  const auto rule = optimizer_options(parse_yaml(kRules[0], "test")).make();
  EXPECT_EQ(
      rule->first().describe(),
      "lars: a = 0.9 a + r (g + 0.1 w), r = lr 0.001 |w| / (|g| + 0.1 |w|); w -= a; vectors: without decay, "
      "with rate lr; lr = 2");
}

}  // namespace
}  // namespace lockstep
