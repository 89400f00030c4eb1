// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/group_norm.h"

#include <gtest/gtest.h>

#include <limits>

#include "unit/kernels/group_norm_testing.h"
#include "unit/kernels/kernel_testing.h"

namespace lockstep {
namespace {

constexpr double kEpsilon = 1e-3;

struct Result {
  Floats y, statistics, dx, dgamma, dbeta;
};
Result run(const Level& level, const GroupNormShape& s, const Floats& x, const Floats& dy,
           const Floats& gamma, const Floats& beta) {
  const std::int64_t count = s.samples * s.positions * s.channels();
  Result r{Floats(count), Floats(2 * s.samples * s.groups), Floats(count), Floats(s.channels()),
           Floats(s.channels())};
  const TestLane lane(level.group_norm.scratch_bytes(s));
  level.group_norm.forward(lane, s, x.data(), kEpsilon, gamma.data(), beta.data(), r.statistics.data(),
                           r.y.data());
  level.group_norm.backward(lane, s, x.data(), dy.data(), gamma.data(), r.statistics.data(), r.dx.data(),
                            r.dgamma.data(), r.dbeta.data());
  return r;
}

TEST(GroupNorm, MatchesTheReferenceAtEveryLevel) {
  for (const GroupNormShape& s : all_norm_shapes()) {
    const std::int64_t count = s.samples * s.positions * s.channels();
    const Floats x(random_values(count, 1, -1.0, 3.0)), dy(random_values(count, 2)),
        gamma(random_values(s.channels(), 3)), beta(random_values(s.channels(), 4));
    const GroupNormReference expected =
        group_norm_reference(s, x.values(), dy.values(), gamma.values(), beta.values(), kEpsilon);
    std::vector<Result> runs;
    for (const Level& level : levels()) {
      const std::string what = level.name + " " + to_string(s);
      runs.push_back(run(level, s, x, dy, gamma, beta));
      const Result& r = runs.back();
      expect_close(r.y.values(), expected.y, Values(expected.y.size(), 3.0), 70 * kRounding, 0.0,
                   what + " y");
      // 1 / sqrt(variance + epsilon) is up to 32 if a group has one number.
      expect_close(r.dx.values(), expected.dx, Values(expected.dx.size(), expected.largest_dx),
                   70 * kRounding, 1e-7, what + " dx");
      expect_close(r.dgamma.values(), expected.dgamma, expected.dgamma_terms, 70 * kRounding, 0.0,
                   what + " dgamma");
      expect_close(r.dbeta.values(), expected.dbeta, expected.dbeta_terms, 70 * kRounding, 0.0,
                   what + " dbeta");
      EXPECT_TRUE(same_bits(r.y, runs[0].y) && same_bits(r.dx, runs[0].dx) &&
                  same_bits(r.dgamma, runs[0].dgamma) && same_bits(r.dbeta, runs[0].dbeta))
          << what;
      // Omitted outputs do not change the others.
      Floats alone(count), same(count);
      const TestLane lane(level.group_norm.scratch_bytes(s));
      level.group_norm.forward(lane, s, x.data(), kEpsilon, gamma.data(), beta.data(), nullptr, same.data());
      level.group_norm.backward(lane, s, x.data(), dy.data(), gamma.data(), r.statistics.data(), alone.data(),
                                nullptr, nullptr);
      EXPECT_TRUE(same_bits(same, r.y) && same_bits(alone, r.dx)) << what;
    }
  }
}

/// Mean 10,000 and deviation 0.6: E[x^2] - E[x]^2 in float32 would lose all digits of the variance.
TEST(GroupNorm, StatisticsSurviveALargeMean) {
  for (const GroupNormShape& s : group_norm_shapes()) {
    const std::int64_t count = s.samples * s.positions * s.channels();
    if (s.positions * s.width < 2) continue;
    const Floats x(random_values(count, 1, 9999.0, 10001.0)),
        ones(Values(static_cast<std::size_t>(s.channels()), 1.0)),
        zeros(Values(static_cast<std::size_t>(s.channels()), 0.0)), dy(random_values(count, 2));
    const GroupNormReference expected =
        group_norm_reference(s, x.values(), dy.values(), ones.values(), zeros.values(), kEpsilon);
    for (const Level& level : levels()) {
      const Result r = run(level, s, x, dy, ones, zeros);
      // The mean is rounded to float32. The error is 10,000 * 2^-24 in units of the deviation, which is at
      // least 0.05 here.
      expect_close(r.y.values(), expected.y, Values(expected.y.size(), 1.0), 0.02, 0.0,
                   level.name + " " + to_string(s));
    }
  }
}

TEST(GroupNorm, ANanStaysInItsGroup) {
  for (const Level& level : levels())
    for (const GroupNormShape& s : all_norm_shapes()) {
      const std::int64_t count = s.samples * s.positions * s.channels();
      Floats x(random_values(count, 1));
      const auto place = [&](std::size_t i) {  // sample and group
        const auto channels = static_cast<std::size_t>(s.channels());
        return std::pair{i / (static_cast<std::size_t>(s.positions) * channels),
                         i % channels / static_cast<std::size_t>(s.width)};
      };
      const std::size_t at = x.size() / 2;
      x[at] = std::numeric_limits<float>::quiet_NaN();
      const Result r = run(level, s, x, x, Floats(Values(static_cast<std::size_t>(s.channels()), 1.0)),
                           Floats(Values(static_cast<std::size_t>(s.channels()), 0.0)));
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(std::isnan(r.y[i]), place(i) == place(at)) << level.name << " " << to_string(s) << " " << i;
    }
}

TEST(L2Normalize, MatchesTheReferenceAtEveryLevel) {
  for (std::int64_t rows : {0, 1, 7})
    for (std::int64_t channels : {1, 3, 17, 64, 1500}) {
      Values x = random_values(rows * channels, 1);
      for (std::size_t i = 0; rows == 7 && i < static_cast<std::size_t>(channels); ++i)
        x[i] *= 1e-3;  // less than epsilon
      const Floats in(x), dy(random_values(rows * channels, 2));
      const L2Reference expected = l2_reference(rows, channels, in.values(), dy.values(), 1e-3);
      std::vector<Floats> ys, dxs;
      for (const Level& level : levels()) {
        Floats y(rows * channels), dx(rows * channels), kept(2 * rows), again(rows * channels);
        level.group_norm.l2_normalize(TestLane(), rows, channels, in.data(), 1e-3, kept.data(), y.data());
        level.group_norm.l2_normalize(TestLane(), rows, channels, in.data(), 1e-3, nullptr, again.data());
        level.group_norm.l2_normalize_backward(TestLane(), rows, channels, y.data(), dy.data(), kept.data(),
                                               dx.data());
        expect_close(y.values(), expected.y, absolute(expected.y), 4 * kRounding, 0.0, level.name + " y");
        expect_close(dx.values(), expected.dx, expected.terms, 70 * kRounding, 0.0, level.name + " dx");
        EXPECT_TRUE(same_bits(y, again));
        ys.push_back(y.copy()), dxs.push_back(dx.copy());
        EXPECT_TRUE(same_bits(y, ys[0]) && same_bits(dx, dxs[0])) << level.name;
      }
    }
}

TEST(L2Normalize, SquaresOfLargeNumbersDoNotOverflow) {
  for (const Level& level : levels()) {
    const Floats x(Values{3e30, -4e30});
    Floats y(2);
    level.group_norm.l2_normalize(TestLane(), 1, 2, x.data(), 1e-12, nullptr, y.data());
    expect_close(y.values(), {0.6, -0.8}, {1, 1}, 4 * kRounding, 0.0, level.name);
  }
}

}  // namespace
}  // namespace lockstep
