// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/sampling.h"

#include <set>

#include "kernel_testing.h"

namespace lockstep {
namespace {

/// P(c) proportional to 1 / (c + 1).
struct Zipf {
  explicit Zipf(std::size_t classes) {
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += 1.0 / static_cast<double>(c + 1);
    double below = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      probability.push_back(1.0 / static_cast<double>(c + 1) / sum);
      below += probability.back();
      cumulative.push_back(c + 1 == classes ? ~std::uint64_t{0} : static_cast<std::uint64_t>(below * 0x1p64));
    }
  }
  ClassDistribution get() const {
    return {static_cast<std::int64_t>(probability.size()), cumulative.data(), probability.data()};
  }
  std::vector<double> probability;
  std::vector<std::uint64_t> cumulative;
};

struct Drawn {
  std::vector<float> ids;
  double tries = 0;
};

Drawn distinct(const SamplingKernels& kernels, const Zipf& zipf, std::int64_t sampled, const DrawKey& key) {
  Drawn drawn{std::vector<float>(static_cast<std::size_t>(sampled))};
  std::vector<std::int64_t> workspace(kernels.draw_bytes(sampled) / sizeof(std::int64_t) + 1);
  kernels.draw_distinct(TestLane(), zipf.get(), key, sampled, workspace.data(), drawn.ids.data(),
                        &drawn.tries);
  return drawn;
}

/// Pearson's statistic for 9 degrees of freedom exceeds 27.9 once in a thousand; the seed is fixed.
TEST(SamplingKernels, DrawFrequenciesMatchTheProbabilities) {
  const Zipf zipf(10);
  const std::int64_t n = 4000, each = 5;
  for (const Level& level : levels()) {
    std::vector<float> ids(static_cast<std::size_t>(n * each));
    level.sampling.draw_each(TestLane(), zipf.get(), {3, 5, 7}, n, each, 100, ids.data());
    std::vector<double> counts(10);
    for (float id : ids) ++counts.at(static_cast<std::size_t>(id));
    double statistic = 0;
    for (std::size_t c = 0; c < 10; ++c) {
      const double expected = zipf.probability[c] * static_cast<double>(n * each);
      statistic += std::pow(counts[c] - expected, 2) / expected;
    }
    EXPECT_LT(statistic, 27.9) << level.name;
  }
}

/// After T tries, a class is among the drawn ones with probability 1 - (1 - p)^T. Over many steps, its
/// frequency matches the sum of this probability over the steps.
TEST(SamplingKernels, ExpectedCountsMatchDrawFrequencies) {
  const Zipf zipf(50);
  const std::int64_t sampled = 12;
  const SamplingKernels& kernels = levels().back().sampling;
  std::vector<double> seen(50), expected(50);
  const int steps = 20000;
  const std::vector<float> biases(50, 0.5F);
  for (int step = 0; step < steps; ++step) {
    const Drawn drawn = distinct(kernels, zipf, sampled, {1, 2, static_cast<std::uint32_t>(step)});
    for (float id : drawn.ids) seen.at(static_cast<std::size_t>(id)) += 1;
    for (std::size_t c = 0; c < 50; ++c) {
      const float id = static_cast<float>(c);
      float offset = 0;
      kernels.biases_of(TestLane(), zipf.get(), 1, &id, biases.data(), sampled, &drawn.tries, &offset);
      expected[c] += std::exp(0.5 - static_cast<double>(offset));
    }
  }
  // A step's T is a random outcome, which biases the formula slightly (Jean et al. 2015 use it as well).
  for (std::size_t c = 0; c < 50; ++c) EXPECT_NEAR(seen[c] / expected[c], 1.0, 0.1) << "class " << c;
}

TEST(SamplingKernels, DistinctClassesAreInOrderOfTheirFirstDraw) {
  const Zipf zipf(40);
  const std::vector<Level> all = levels();
  for (std::int64_t sampled : {1, 3, 20})
    for (std::uint32_t step : {0U, 9U}) {
      const DrawKey key{77, 4, step};
      std::vector<float> sequence(4000), expected;
      all.front().sampling.draw_each(TestLane(), zipf.get(), key, 1, 4000, 0, sequence.data());
      std::size_t tries = 0;
      std::set<float> known;
      while (static_cast<std::int64_t>(expected.size()) < sampled)
        if (const float id = sequence.at(tries++); known.insert(id).second) expected.push_back(id);
      for (const Level& level : all) {
        const Drawn drawn = distinct(level.sampling, zipf, sampled, key);
        EXPECT_EQ(drawn.ids, expected) << level.name;
        EXPECT_EQ(drawn.tries, static_cast<double>(tries)) << level.name;
      }
    }
}

TEST(SamplingKernels, WithoutRepetitionsExpectedCountsAreLinear) {
  const Zipf zipf(8);
  const float id = 2;
  float offset = 0;
  const double tries = 3;
  for (const Level& level : levels()) {
    level.sampling.biases_of(TestLane(), zipf.get(), 1, &id, nullptr, 3, &tries, &offset);
    EXPECT_NEAR(static_cast<double>(offset), -std::log(3 * zipf.probability[2]), 1e-6);
    level.sampling.biases_of(TestLane(), zipf.get(), 1, &id, nullptr, 2, &tries, &offset);
    EXPECT_NEAR(static_cast<double>(offset), -std::log(1 - std::pow(1 - zipf.probability[2], 3)), 1e-6);
    const float none = 8;
    level.sampling.biases_of(TestLane(), zipf.get(), 1, &none, nullptr, 3, nullptr, &offset);
    EXPECT_TRUE(std::isnan(offset));
  }
}

/// Extreme logits: nothing overflows, and NaN stays NaN.
TEST(SamplingKernels, LossesAreFiniteForLargeLogitsAndKeepNan) {
  for (const Level& level : levels())
    for (SampledLoss kind : {SampledLoss::softmax, SampledLoss::sigmoid}) {
      const std::vector<float> targets{0, 0, 0}, ids{1, 2};
      std::vector<float> truth{200, -200, 1}, sampled{-300, 250, 300, -300, 0, std::nanf("")}, loss(3);
      level.sampling.loss(TestLane(),
                          {.loss = kind,
                           .n = 3,
                           .num_true = 1,
                           .sampled = 2,
                           .targets = targets.data(),
                           .sampled_ids = ids.data()},
                          nullptr, truth.data(), sampled.data(), loss.data());
      EXPECT_NEAR(loss[0], kind == SampledLoss::softmax ? 50.0F : 250.0F, 1e-4F) << level.name;
      EXPECT_NEAR(loss[1], 500.0F, 1e-4F) << level.name;
      EXPECT_TRUE(std::isnan(loss[2])) << level.name;
      for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(sampled[i] >= 0.0F && sampled[i] <= 1.0F);
    }
}

}  // namespace
}  // namespace lockstep
