// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps between the passes of batch normalisation: moments and sums of microshards are merged and
// converted to per-channel coefficients. The test states the formulas again, in double.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/planned_merges.h"
#include "kernels/norm.h"
#include "unit/kernels/kernel_testing.h"

namespace lockstep {
namespace {

constexpr double kEpsilon = 1e-3, kMomentum = 0.9;

/// Memory for NormKernels::Coefficients.
struct Numbers {
  explicit Numbers(std::int64_t channels)
      : mean(channels),
        inverse_std(channels),
        scale(channels),
        shift(channels),
        a(channels),
        b(channels),
        d(channels),
        rest(static_cast<std::size_t>(channels)),
        precise(rest) {}
  NormKernels::Coefficients pointers() {
    return {mean.data(), inverse_std.data(), scale.data(), shift.data(), rest.data(), precise.data(), &count};
  }
  Floats mean, inverse_std, scale, shift, a, b, d;
  Values rest, precise;
  double count = -1.0;
};

Values leaf_of(const Level& level, std::int64_t rows, std::int64_t channels, const Values& x) {
  Values leaf(static_cast<std::size_t>(1 + 2 * channels), -1.0);
  const Floats data(x);
  level.norm.moments(TestLane(), rows, channels, data.data(), leaf.data());
  return leaf;
}

TEST(NormMerging, MomentsStartWithTheCountAndAreZeroWithoutRows) {
  for (const Level& level : levels())
    for (std::int64_t channels : {1, 3, 17, 64, 100}) {
      const Values leaf = leaf_of(level, 70, channels, random_values(70 * channels, 1));
      EXPECT_EQ(leaf[0], 70.0);
      EXPECT_EQ(leaf_of(level, 0, channels, {}), Values(leaf.size(), 0.0));
    }
}

/// The merged moments of leaves, one after another.
Values merged_moments(const Level& level, std::int64_t channels, const std::vector<Values>& leaves) {
  const std::int64_t width = 1 + 2 * channels;
  PlannedMerges plan;
  Values in, out(static_cast<std::size_t>(width));
  for (const Values& leaf : leaves) {
    plan.add_input(std::ssize(in));
    in.insert(in.end(), leaf.begin(), leaf.end());
  }
  for (int i = 1; i < static_cast<int>(leaves.size()); ++i) plan.add_step(0, i);
  plan.add_output(0, 0);
  plan.load(cpu_device());
  level.norm.merge_moments(TestLane(), channels, plan.tree(), in.data(), out.data());
  return out;
}

TEST(NormMerging, MergedMomentsAreThoseOfAllRows) {
  for (const Level& level : levels())
    for (std::int64_t channels : {1, 3, 17, 64}) {
      const std::int64_t left_rows = 37, right_rows = 5;
      const Values x = random_values((left_rows + right_rows) * channels, 2, -1.0, 5.0);
      const auto cut = x.begin() + left_rows * channels;
      const Values left = leaf_of(level, left_rows, channels, {x.begin(), cut}),
                   right = leaf_of(level, right_rows, channels, {cut, x.end()}),
                   empty = leaf_of(level, 0, channels, {});
      const Values merged = merged_moments(level, channels, {left, right});
      const auto expected = reference::moments(left_rows + right_rows, channels, x);
      EXPECT_EQ(merged[0], 42.0);
      const double error = (left_rows + 6) * kRounding;
      expect_close({merged.begin() + 1, merged.begin() + 1 + channels}, expected.mean,
                   Values(expected.mean.size(), 5.0), error, 0.0, "mean");
      expect_close({merged.begin() + 1 + channels, merged.end()}, expected.m2, expected.m2, 2 * error,
                   25.0 * 42.0 * error * error, "m2");
      EXPECT_EQ(merged_moments(level, channels, {left, empty}), left);
      EXPECT_EQ(merged_moments(level, channels, {empty, right}), right);
      EXPECT_EQ(merged_moments(level, channels, {empty, left, empty, right}), merged);
    }
}

TEST(NormMerging, SumsAreAddedAlongTheTree) {
  for (const Level& level : levels()) {
    const std::int64_t width = 37;
    Values in = random_values(5 * width, 3), out(static_cast<std::size_t>(2 * width), -1.0);
    const auto at = [&](int i, std::int64_t c) { return in[static_cast<std::size_t>(i * width + c)]; };
    Values expected(static_cast<std::size_t>(2 * width));
    for (std::int64_t c = 0; c < width; ++c) {
      expected[static_cast<std::size_t>(c)] = (at(0, c) + at(1, c)) + (at(2, c) + at(3, c));
      expected[static_cast<std::size_t>(width + c)] = at(4, c);
    }
    PlannedMerges plan;
    for (int i = 0; i < 5; ++i) plan.add_input(i * width);
    for (const auto& [into, from] : {std::pair(0, 1), {2, 3}, {0, 2}}) plan.add_step(into, from);
    plan.add_output(0, 0);
    plan.add_output(4, width);
    plan.load(cpu_device());
    EXPECT_EQ(plan.tree().levels, 2);
    level.norm.merge_sums(TestLane(), width, plan.tree(), in.data(), out.data());
    EXPECT_EQ(out, expected);
  }
}

TEST(NormMerging, CoefficientsWithAndWithoutGammaAndBeta) {
  for (const Level& level : levels())
    for (std::int64_t channels : {1, 3, 17, 100})
      for (double count : {0.0, 1.0, 42.0})
        for (bool learned : {false, true}) {
          const Floats gamma(random_values(channels, 5, 0.5, 1.5)), beta(random_values(channels, 6));
          Values total{count};
          for (double v : random_values(channels, 7)) total.push_back(count == 0.0 ? 0.0 : v / 3);
          for (double v : random_values(channels, 8, 0.1, 9.0)) total.push_back(count == 0.0 ? 0.0 : v);
          Numbers k(channels);
          level.norm.coefficients(TestLane(), channels, total.data(), kEpsilon,
                                  learned ? gamma.data() : nullptr, learned ? beta.data() : nullptr,
                                  k.pointers());
          const double rows = std::max(count, 1.0);
          EXPECT_EQ(k.count, rows);
          const Values sums = random_values(2 * channels, 9);
          level.norm.gradient_coefficients(TestLane(), channels, sums.data(),
                                           learned ? gamma.data() : nullptr, k.pointers(), k.a.data(),
                                           k.b.data(), k.d.data());
          for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
            const std::size_t width = static_cast<std::size_t>(channels);
            const double g = learned ? static_cast<double>(gamma[c]) : 1.0,
                         shift = learned ? static_cast<double>(beta[c]) : 0.0;
            const double mean = total[1 + c],
                         inverse = 1.0 / std::sqrt(total[1 + width + c] / rows + kEpsilon);
            const double rest = mean - static_cast<double>(static_cast<float>(mean));
            EXPECT_EQ(k.precise[c], inverse);
            EXPECT_EQ(k.mean[c], static_cast<float>(mean));
            EXPECT_EQ(k.rest[c], rest);
            EXPECT_EQ(k.inverse_std[c], static_cast<float>(inverse));
            EXPECT_EQ(k.scale[c], static_cast<float>(g * inverse));
            EXPECT_EQ(k.shift[c], static_cast<float>(shift - rest * g * inverse));
            const double factor = g * inverse, slope = -factor * sums[width + c] / rows * inverse;
            EXPECT_EQ(k.a[c], static_cast<float>(factor));
            EXPECT_EQ(k.b[c], static_cast<float>(slope));
            EXPECT_EQ(k.d[c], static_cast<float>(-factor * sums[c] / rows - slope * rest));
          }
        }
}

TEST(NormMerging, InferenceUsesMovingStatistics) {
  for (const Level& level : levels()) {
    const std::int64_t channels = 17;
    const Floats mean(random_values(channels, 10)), variance(random_values(channels, 11, 0.1, 2.0)),
        gamma(random_values(channels, 12)), beta(random_values(channels, 13));
    Numbers k(channels);
    NormKernels::Coefficients out = k.pointers();
    out.count = nullptr;
    level.norm.inference_coefficients(TestLane(), channels, mean.data(), variance.data(), kEpsilon,
                                      gamma.data(), beta.data(), out);
    for (std::size_t c = 0; c < mean.size(); ++c) {
      const double g = static_cast<double>(gamma[c]),
                   inverse = 1.0 / std::sqrt(static_cast<double>(variance[c]) + kEpsilon);
      EXPECT_EQ(k.mean[c], mean[c]);
      EXPECT_EQ(k.inverse_std[c], static_cast<float>(inverse));
      EXPECT_EQ(k.scale[c], static_cast<float>(g * inverse));
      EXPECT_EQ(k.rest[c], 0.0);
      EXPECT_EQ(k.shift[c], beta[c]);
    }
  }
}

TEST(NormMerging, MovingAverageUsesTheUnbiasedVariance) {
  for (const Level& level : levels())
    for (double count : {0.0, 1.0, 2.0, 42.0}) {
      const std::int64_t channels = 17;
      const Floats mean(random_values(channels, 14)), variance(random_values(channels, 15, 0.1, 2.0)),
          mean0 = mean.copy(), variance0 = variance.copy();
      Values total = random_values(1 + 2 * channels, 16, 0.5, 3.0);
      total[0] = count;
      level.norm.moving_average(TestLane(), channels, total.data(), kMomentum, mean.data(), variance.data());
      if (count <= 1.0) {  // one value has no variance
        EXPECT_TRUE(same_bits(mean, mean0));
        EXPECT_TRUE(same_bits(variance, variance0));
        continue;
      }
      for (std::size_t c = 0; c < mean.size(); ++c) {
        const double unbiased = total[1 + mean.size() + c] / (count - 1.0);
        EXPECT_EQ(mean[c], static_cast<float>(kMomentum * static_cast<double>(mean0[c]) +
                                              (1 - kMomentum) * total[1 + c]));
        EXPECT_EQ(variance[c], static_cast<float>(kMomentum * static_cast<double>(variance0[c]) +
                                                  (1 - kMomentum) * unbiased));
      }
    }
}

TEST(NormMerging, SumsAreRoundedToGradients) {
  for (const Level& level : levels()) {
    Values from = random_values(37, 17);
    for (double& value : from) value += 1e-9;
    Floats to(37);
    level.norm.to_float(TestLane(), 37, from.data(), to.data());
    for (std::size_t i = 0; i < from.size(); ++i) EXPECT_EQ(to[i], static_cast<float>(from[i]));
  }
}

}  // namespace
}  // namespace lockstep
